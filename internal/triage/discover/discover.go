// Package discover finds mail accounts in the files of a person's programs: mail
// clients, the desktop, git and MCP clients. It also finds the provider of an
// address. It reads files and the environment alone, and asks for one MX record.
// It never returns a password: only whether a file has one.
package discover

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"net/mail"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Kind is the kind of an account that was found.
type Kind string

// The kinds. Address is an address without a mailbox.
const (
	IMAP    Kind = "imap"
	Maildir Kind = "maildir"
	Address Kind = "address"
)

// Security is the protection of a connection.
type Security string

// The protections.
const (
	TLS      Security = "tls"
	StartTLS Security = "starttls"
	Plain    Security = "plain"
)

// Server is a mail server.
type Server struct {
	Host     string   `json:"host"`
	Port     int      `json:"port,omitzero"`
	Security Security `json:"security,omitzero"`
}

// Origin is the place of a finding.
type Origin struct {
	// Program is the program that the file belongs to.
	Program string `json:"program"`
	// File is relative to the home folder; empty for a variable.
	File string `json:"file,omitzero"`
	// Key is the setting, the section or the variable.
	Key string `json:"key,omitzero"`
}

// String returns the place for people.
func (o Origin) String() string {
	if o.File == "" {
		return strings.TrimSpace(o.Program + " " + o.Key)
	}
	return strings.TrimSpace(o.Program + " ~/" + o.File + " " + o.Key)
}

// Finding is a mail account that was found.
type Finding struct {
	Kind    Kind   `json:"kind"`
	Address string `json:"address,omitzero"`
	// Server, User and SMTP are of IMAP accounts, Path of a Maildir.
	Server Server `json:"server,omitzero"`
	User   string `json:"user,omitzero"`
	SMTP   Server `json:"smtp,omitzero"`
	Path   string `json:"path,omitzero"`
	// OAuth is set if the program logs in with OAuth, and Stored if its file has a
	// password, which is not read.
	OAuth  bool `json:"oauth,omitzero"`
	Stored bool `json:"password_in_file,omitzero"`
	// Default is set if the program is the one for mailto links, or the account is
	// the default of its program.
	Default bool     `json:"default,omitzero"`
	Origins []Origin `json:"origins"`
}

// Skipped is a file that could not be read.
type Skipped struct {
	Origin Origin `json:"origin"`
	Reason string `json:"reason"`
}

// Report is the result of a search.
type Report struct {
	// Findings are sorted: the most probable account of the person first.
	Findings []Finding `json:"findings"`
	Skipped  []Skipped `json:"skipped,omitempty"`
}

// Places are where to search.
type Places struct {
	// Home is the home folder, and HomePath its path.
	Home     fs.FS
	HomePath string
	Getenv   func(string) string
}

// maxFile bounds the size of a file that is read.
const maxFile = 8 << 20

// search is one search.
type search struct {
	Places
	found   []Finding
	skipped []Skipped
	// handler is the program for mailto links.
	handler string
}

// Find searches all places. It does not follow links out of the home folder.
func Find(in Places) Report {
	if in.Getenv == nil {
		in.Getenv = func(string) string { return "" }
	}
	s := &search{Places: in}
	for _, look := range []func(*search){desktop, thunderbird, appleMail, mutt, mbsync, himalaya, mcpClients, git, environment} {
		look(s)
	}
	return Report{Findings: s.merged(), Skipped: s.skipped}
}

// read returns a file; nil if it is missing or cannot be read.
func (s *search) read(program, name string) []byte {
	file, err := s.Home.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil
	}
	if err == nil {
		defer func() { _ = file.Close() }() // it is only read
		var raw []byte
		if raw, err = io.ReadAll(io.LimitReader(file, maxFile+1)); err == nil && len(raw) <= maxFile {
			return raw
		}
	}
	reason := "cannot be read"
	if err == nil {
		reason = "is too large"
	}
	s.skip(Origin{Program: program, File: name}, reason)
	return nil
}

func (s *search) skip(o Origin, reason string) {
	s.skipped = append(s.skipped, Skipped{o, reason})
}

// add adds a finding that has enough to be one.
func (s *search) add(f Finding, from Origin) {
	f.Address = address(f.Address)
	if f.Address == "" {
		f.Address = address(f.User)
	}
	f.Server.Host, f.SMTP.Host = strings.ToLower(f.Server.Host), strings.ToLower(f.SMTP.Host)
	switch {
	case f.Kind == IMAP && f.Server.Host == "":
		f.Kind = Address
	case f.Kind == Maildir && f.Path == "":
		f.Kind = Address
	}
	if f.Kind == Address && f.Address == "" || f.Kind == IMAP && f.User == "" && f.Address == "" {
		return
	}
	if f.Kind == IMAP && f.User == "" {
		f.User = f.Address
	}
	f.Origins = []Origin{from}
	f.Default = f.Default || s.handler != "" && from.Program == s.handler
	s.found = append(s.found, f)
}

// address returns an e-mail address in lower case; "" for other texts.
func address(text string) string {
	parsed, err := mail.ParseAddress(strings.TrimSpace(text))
	if err != nil || !strings.Contains(parsed.Address, ".") || strings.HasSuffix(parsed.Address, ".local") || strings.Contains(parsed.Address, "noreply") {
		return ""
	}
	return strings.ToLower(parsed.Address)
}

// merged joins the findings of one account, and sorts them.
func (s *search) merged() []Finding {
	var all []Finding
	into := func(same func(Finding) bool, f Finding) bool {
		i := slices.IndexFunc(all, same)
		if i < 0 {
			return false
		}
		all[i] = join(all[i], f)
		return true
	}
	for _, f := range s.found {
		if f.Kind == Address {
			continue
		}
		if !into(func(o Finding) bool { return o.Kind == f.Kind && same(o, f) }, f) {
			all = append(all, f)
		}
	}
	for _, f := range s.found {
		if f.Kind == Address && !into(func(o Finding) bool { return o.Address == f.Address }, f) {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(len(b.Origins), len(a.Origins)), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Path, b.Path))
	})
	return all
}

// same reports whether two findings of one kind are of the same mailbox.
func same(a, b Finding) bool {
	switch {
	case a.Kind == Maildir:
		return a.Path == b.Path
	case a.Address != "" && b.Address != "":
		return a.Address == b.Address
	}
	return a.Server.Host == b.Server.Host && a.User == b.User
}

// join adds the details of another finding of the account.
func join(a, b Finding) Finding {
	a.Address = cmp.Or(a.Address, b.Address)
	if a.SMTP.Host == "" {
		a.SMTP = b.SMTP
	}
	a.OAuth, a.Stored, a.Default = a.OAuth || b.OAuth, a.Stored || b.Stored, a.Default || b.Default
	for _, o := range b.Origins {
		if !slices.Contains(a.Origins, o) {
			a.Origins = append(a.Origins, o)
		}
	}
	return a
}

// weight returns how probable it is that a finding is the account of the person.
func weight(f Finding) int {
	n := 0
	if f.Kind != Address {
		n += 2
	}
	if f.Default {
		n++
	}
	return n
}

// expand returns the absolute path of a text in a configuration; "" if it names
// none.
func (s *search) expand(text string) string {
	for _, home := range []string{"~", "$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(text, home); ok && (rest == "" || rest[0] == '/') {
			text = s.HomePath + rest
		}
	}
	if !strings.HasPrefix(text, "/") || strings.Contains(text, "$") {
		return ""
	}
	return path.Clean(text)
}

// isMaildir reports whether a path is a Maildir below the home folder.
func (s *search) isMaildir(at string) bool {
	below, ok := strings.CutPrefix(at, s.HomePath+"/")
	if !ok {
		return false
	}
	for _, part := range []string{"cur", "new"} {
		if info, err := fs.Stat(s.Home, path.Join(below, part)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// port returns the number of a port; 0 for other texts.
func port(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 65535 {
		return 0
	}
	return n
}
