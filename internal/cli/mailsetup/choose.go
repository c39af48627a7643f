package mailsetup

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/discover"
)

// mailbox is the mailbox to set up.
type mailbox struct {
	discover.Finding
	provider discover.Provider
	// name is that of the account, auth its method of authentication.
	name, auth string
	// domain is the domain of the owner's organisation, or "".
	domain string
}

// connection returns the connection of the mailbox for triage.
func (m mailbox) connection() wire.TriageConnection {
	if m.Kind == discover.Maildir {
		return wire.TriageConnection{Path: m.Path}
	}
	return wire.TriageConnection{
		Host: m.Server.Host, Port: m.Server.Port, User: m.User, Security: string(cmp.Or(m.Server.Security, discover.TLS)), Auth: m.auth,
		TrustedHost: m.provider.TrustedHost,
	}
}

// find searches this machine.
func (s *setup) find() (discover.Report, error) {
	home := s.app.Getenv("HOME")
	if home == "" {
		return discover.Report{}, nil
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return discover.Report{}, err
	}
	return discover.Find(discover.Places{Home: os.DirFS(home), HomePath: home, Getenv: s.app.Getenv}), nil
}

// showFound lists the accounts of this machine, or those of an address.
func (s *setup) showFound(named string) error {
	r, err := s.find()
	if err != nil {
		return err
	}
	if named != "" {
		r.Findings = slices.DeleteFunc(r.Findings, func(f discover.Finding) bool { return !strings.EqualFold(f.Address, named) })
	}
	if s.app.JSON {
		return s.app.WriteJSON(r)
	}
	for _, skipped := range r.Skipped {
		s.say("%s %s", skipped.Origin, skipped.Reason)
	}
	return command.View[discover.Finding]{
		Empty: "No mail accounts were found.", Head: []string{"ADDRESS", "KIND", "WHERE", "FOUND IN"}, Whole: true,
		Row: func(f discover.Finding) []string { return []string{f.Address, string(f.Kind), where(f), origins(f)} },
	}.Show(s.app)(r.Findings, nil)
}

func where(f discover.Finding) string {
	if f.Server.Host == "" {
		return f.Path
	}
	return f.User + " at " + f.Server.Host
}

func origins(f discover.Finding) string {
	var all []string
	for _, o := range f.Origins {
		all = append(all, o.String())
	}
	return strings.Join(all, "; ")
}

// choose returns the mailbox that is named, or one that is found.
func (s *setup) choose(ctx context.Context, named string) (m mailbox, err error) {
	r, err := s.find()
	if err != nil {
		return m, err
	}
	switch {
	case named != "" && !strings.Contains(named, "@"):
		if m.Finding, err = maildirAt(named); err != nil {
			return m, err
		}
	case named != "":
		m.Finding = discover.Finding{Kind: discover.Address, Address: strings.ToLower(named), Origins: []discover.Origin{{Program: "the command line"}}}
	case len(r.Findings) == 0:
		return m, command.Misuse("no mail account was found on this machine; name an address, or the folder of a Maildir")
	default:
		i, err := s.pick(r.Findings)
		if err != nil {
			return m, err
		}
		m.Finding = r.Findings[i]
	}
	for _, f := range r.Findings {
		same := m.Kind == discover.Maildir && f.Path == m.Path || m.Kind == discover.Address && f.Kind == discover.IMAP && f.Address == m.Address
		if same && named != "" {
			m.Finding = f
		}
	}
	if m.Kind != discover.Maildir {
		s.setServer(ctx, &m)
	}
	m.name = cmp.Or(s.flags.name, nameOf(m.Finding))
	s.result.Account, s.result.Mailbox, s.result.Provider = m.name, m.Finding, m.provider
	s.say("Mailbox: %s (found in %s)", cmp.Or(m.Address, m.Path), origins(m.Finding))
	if m.Kind == discover.IMAP {
		s.say("Server:  %s, %s:%d, %s", m.provider.Title, m.Server.Host, m.Server.Port, m.provider.From)
	}
	return m, nil
}

// maildirAt returns the Maildir of a path.
func maildirAt(path string) (discover.Finding, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return discover.Finding{}, command.Misuse("%s: %v", path, err)
	}
	for _, part := range []string{"cur", "new"} {
		if info, err := os.Stat(filepath.Join(path, part)); err != nil || !info.IsDir() {
			return discover.Finding{}, command.Misuse("%s is not a Maildir: it has no folder %s", path, part)
		}
	}
	return discover.Finding{Kind: discover.Maildir, Path: path, Origins: []discover.Origin{{Program: "the command line"}}}, nil
}

// setServer sets the provider and the server: of the flags, else as found, else the
// provider's.
func (s *setup) setServer(ctx context.Context, m *mailbox) {
	m.Kind = discover.IMAP
	var dns discover.Resolver
	if s.flags.host == "" {
		dns = net.DefaultResolver
	}
	m.provider = discover.ProviderOf(ctx, m.Address, dns)
	if m.Server.Host == "" {
		m.Server, m.SMTP = m.provider.IMAP, m.provider.SMTP
	}
	if s.flags.host != "" {
		m.Server, m.SMTP = discover.Server{Host: s.flags.host, Security: discover.TLS}, discover.Server{}
	}
	m.Server.Security = cmp.Or(discover.Security(s.flags.security), m.Server.Security, discover.TLS)
	m.Server.Port = cmp.Or(s.flags.port, m.Server.Port)
	if m.Server.Port == 0 {
		m.Server.Port = 143
		if m.Server.Security == discover.TLS {
			m.Server.Port = 993
		}
	}
	m.User = cmp.Or(s.flags.user, m.User, m.Address)
	if m.Server.Host != m.provider.IMAP.Host { // the hints are of another server
		m.provider = discover.Provider{Name: "other", Title: m.Server.Host, IMAP: m.Server, SMTP: m.SMTP, Public: m.provider.Public, From: "as configured"}
	}
}

var notInNames = regexp.MustCompile(`[^a-z0-9._-]+`)

// nameOf returns the name of an account.
func nameOf(f discover.Finding) string {
	text := cmp.Or(f.Address, f.User, filepath.Base(f.Path))
	if f.Kind == discover.Maildir {
		text = cmp.Or(f.Address, strings.TrimLeft(filepath.Base(f.Path), "."))
	}
	text = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-._")
	const most = 60
	return cmp.Or(text[:min(len(text), most)], "mail")
}

// pick returns the index of the finding that the person chooses.
func (s *setup) pick(all []discover.Finding) (int, error) {
	if len(all) == 1 || s.flags.yes {
		return 0, nil
	}
	s.say("Mail accounts on this machine:\n")
	for i, f := range all {
		s.say("  %d  %-32s  %s", i+1, cmp.Or(f.Address, where(f)), origins(f))
	}
	text, err := s.ask("Which", "1")
	if err != nil {
		return 0, err
	}
	for i := range all {
		if text == fmt.Sprint(i+1) || text == all[i].Address {
			return i, nil
		}
	}
	return 0, command.Misuse("no account %s in the list", command.Safe(text))
}

// ownDomain returns the domain of the address if it is the organisation's: if a known
// provider serves it, or else if the person confirms.
func (s *setup) ownDomain(m mailbox) string {
	_, domain, ok := strings.Cut(m.Address, "@")
	switch {
	case !ok || m.provider.Public || discover.ProviderOf(context.Background(), m.Address, nil).Public:
		return ""
	case m.provider.Name != "" && m.provider.Name != "other":
		return domain
	case s.flags.yes:
		return ""
	}
	text, err := s.ask("Is "+domain+" the domain of your organisation, with no strangers (y/n)", "n")
	if err != nil || !strings.HasPrefix(strings.ToLower(text), "y") {
		return ""
	}
	return domain
}
