package account

import (
	"cmp"
	"maps"
	"net/mail"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/draft"
	"github.com/countersign-dev/countersign/internal/triage/mcpmail"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// Limits of an account.
const (
	maxFolders      = 50
	maxEntries      = 1000
	minEvery        = 5 * time.Second
	maxEvery        = 24 * time.Hour
	maxBackfillDays = 36500
	maxMessageBytes = 256 << 20
	maxURL          = 2000
)

var (
	nameForm       = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	hostForm       = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.:-]{0,252}[A-Za-z0-9])?$`)
	domainForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}\.)*[a-z0-9-]{1,63}$`)
	secretNameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,99}$`)
	sourceForm     = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,99}$`)
	secretForm     = regexp.MustCompile(`^(env:COUNTERSIGN_TRIAGE_SECRET_[A-Z0-9_]{1,60}|file:/[^\x00-\x1f]{1,1000})$`)
)

// Check returns an error with every invalid field, with pointers into the
// account in the API.
func (a Account) Check() error {
	var p check.Problems
	if !nameForm.MatchString(a.Name) {
		p.Add("/name", envelope.RulePattern, "must be 1 to 63 of a-z, 0-9, dot, - and _, and start with a letter or a digit")
	}
	a.Connection.check(a.Kind, &p)
	checkSettings(a.Settings, &p)
	checkProposals(a.Proposals, &p)
	if b := a.Proposals.Brief; b != nil {
		if err := b.Check(a.Settings.Addresses); err != nil {
			p.Add("/proposals/brief", envelope.RuleFormat, "%s", err)
		}
	}
	checkTexts(a.Texts, a.Connection.Folders, &p)
	if a.SecretFrom != "" && !secretForm.MatchString(a.SecretFrom) {
		p.Add("/secret_from", envelope.RulePattern, "must be env:COUNTERSIGN_TRIAGE_SECRET_ and a name in A-Z, 0-9 and _, or file: and an absolute path")
	}
	if a.SecretFrom != "" && len(a.Secret) > 0 {
		p.Add("/secret", envelope.RuleUnknownField, "must be left out if secret_from is set")
	}
	if a.Kind != IMAP && a.Kind != MCP && (a.SecretFrom != "" || len(a.Secret) > 0) {
		p.Add("/secret_from", envelope.RuleUnknownField, "an account of this kind needs no password")
	}
	if a.Every < minEvery || a.Every > maxEvery || a.Every%time.Second != 0 {
		p.Add("/every", envelope.RuleFormat, "must be whole seconds from 5s to 24h")
	}
	p.Within("/backfill_days", a.BackfillDays, 0, maxBackfillDays)
	return p.Err()
}

// field is a field of a connection that only some kinds have.
type field struct {
	pointer string
	set     bool
}

func (c Connection) check(kind Kind, p *check.Problems) {
	server := []field{{"/connection/host", c.Host != ""}, {"/connection/user", c.User != ""}}
	optional := []field{{"/connection/port", c.Port != 0}, {"/connection/auth", c.Auth != ""}, {"/connection/security", c.Security != ""}}
	path := []field{{"/connection/path", c.Path != ""}}
	mcp := []field{
		{"/connection/url", c.URL != ""}, {"/connection/command", len(c.Command) > 0}, {"/connection/secret_name", c.SecretName != ""},
		{"/connection/server", c.Server != ""}, {"/connection/names", len(c.Names) > 0},
	}
	switch kind {
	case IMAP:
		require(p, server, kind)
		forbid(p, append(path, mcp...), kind)
		c.checkServer(p)
	case MCP:
		forbid(p, slices.Concat(server, optional, path), kind)
		c.checkMCP(p)
	case Maildir, Mbox, EML:
		require(p, path, kind)
		forbid(p, slices.Concat(server, optional, mcp), kind)
		if c.Path != "" && (!filepath.IsAbs(c.Path) || filepath.Clean(c.Path) != c.Path || strings.ContainsFunc(c.Path, unicode.IsControl)) {
			p.Add("/connection/path", envelope.RuleFormat, "must be an absolute path on the machine that triage runs on, without .. and a / at its end")
		}
	default:
		p.Add("/kind", envelope.RuleEnum, "must be imap, maildir, mbox, eml or mcp")
	}
	if len(c.Folders) > maxFolders {
		p.Add("/connection/folders", envelope.RuleMaxItems, "must have at most %d names", maxFolders)
	}
	for i, name := range c.Folders {
		if name == "" || len(name) > 500 || strings.ContainsFunc(name, unicode.IsControl) || slices.Contains(c.Folders[:i], name) {
			p.Add("/connection/folders/"+strconv.Itoa(i), envelope.RuleFormat, "must be the name of a folder, each once")
		}
	}
	if c.TrustedHost != "" && !hostForm.MatchString(c.TrustedHost) {
		p.Add("/connection/trusted_host", envelope.RuleFormat, "must be the name by which your mail server signs its Authentication-Results, such as mx.example.com")
	}
	if c.MaxMessageBytes < 0 || c.MaxMessageBytes > maxMessageBytes {
		p.Add("/connection/max_message_bytes", check.RuleMaximum, "must be 0 to %d", maxMessageBytes)
	}
}

func (c Connection) checkServer(p *check.Problems) {
	if c.Host != "" && !hostForm.MatchString(c.Host) {
		p.Add("/connection/host", envelope.RuleFormat, "must be the name or address of a server, without a port")
	}
	p.Within("/connection/port", c.Port, 0, 65535)
	if len(c.User) > 320 || strings.ContainsFunc(c.User, unicode.IsControl) {
		p.Add("/connection/user", envelope.RuleFormat, "must be one line of at most 320 bytes")
	}
	switch c.auth() {
	case Password, OAuthBearer, XOAuth2:
	default:
		p.Add("/connection/auth", envelope.RuleEnum, "must be plain, oauthbearer or xoauth2")
	}
	switch c.security() {
	case TLS, StartTLS, Plain:
	default:
		p.Add("/connection/security", envelope.RuleEnum, "must be tls, starttls or plain")
	}
}

// checkMCP checks the fields for an MCP server.
func (c Connection) checkMCP(p *check.Problems) {
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "" && len(c.Command) == 0:
		p.Add("/connection/url", envelope.RuleRequired, "is required for an account of kind %s, or else a command", MCP)
	case c.URL != "" && len(c.Command) > 0:
		p.Add("/connection/command", envelope.RuleUnknownField, "must be left out where there is a url")
	case c.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || len(c.URL) > maxURL):
		p.Add("/connection/url", envelope.RuleFormat, "must be an https address without a password, or an http address on the machine of triage")
	}
	for i, text := range c.Command {
		if text == "" || len(text) > maxURL || len(c.Command) > maxFolders || strings.ContainsFunc(text, unicode.IsControl) {
			p.Add("/connection/command/"+strconv.Itoa(i), envelope.RuleFormat, "must be the program or one of at most %d arguments, each one line", maxFolders)
			break
		}
	}
	if c.SecretName != "" && !secretNameForm.MatchString(c.SecretName) {
		p.Add("/connection/secret_name", envelope.RulePattern, "must be the name of a header, or of a variable of the program")
	}
	if !slices.Contains(mcpmail.Servers(), cmp.Or(c.Server, mcpmail.Generic)) {
		p.Add("/connection/server", envelope.RuleEnum, "must be one of %s", strings.Join(mcpmail.Servers(), ", "))
	} else if _, err := mcpmail.ProfileOf(c.Server, c.Names); err != nil {
		p.Add("/connection/names", envelope.RuleFormat, "%s", err)
	}
	if c.TrustedHost != "" && c.Server != "" && c.Server != mcpmail.Generic {
		p.Add("/connection/trusted_host", envelope.RuleUnknownField, "does not apply to this kind of server, which returns no originals of messages")
	}
}

func require(p *check.Problems, fields []field, kind Kind) {
	for _, f := range fields {
		if !f.set {
			p.Add(f.pointer, envelope.RuleRequired, "is required for an account of kind %s", kind)
		}
	}
}

func forbid(p *check.Problems, fields []field, kind Kind) {
	for _, f := range fields {
		if f.set {
			p.Add(f.pointer, envelope.RuleUnknownField, "does not apply to an account of kind %s", kind)
		}
	}
}

func checkSettings(s decide.Settings, p *check.Problems) {
	address := func(text string) bool {
		parsed, err := mail.ParseAddress(text)
		return err == nil && parsed.Address == text
	}
	domain := func(text string) bool { return domainForm.MatchString(text) }
	either := func(text string) bool { return address(text) || domain(text) }
	label := func(text string) bool {
		return text != "" && len(text) <= 100 && !strings.ContainsFunc(text, unicode.IsControl)
	}
	for _, list := range []struct {
		pointer string
		values  []string
		valid   func(string) bool
		message string
	}{
		{"/settings/addresses", s.Addresses, address, "must be an e-mail address"},
		{"/settings/domains", s.Domains, domain, "must be a domain in lower case"},
		{"/settings/vip", s.VIP, either, "must be an e-mail address or a domain in lower case"},
		{"/settings/muted", s.Muted, either, "must be an e-mail address or a domain in lower case"},
		{"/settings/newsletters", s.Newsletters, domain, "must be a domain in lower case"},
		{"/settings/social", s.Social, domain, "must be a domain in lower case"},
		{"/settings/task_labels", s.TaskLabels, label, "must be a label of at most 100 bytes"},
	} {
		if len(list.values) > maxEntries {
			p.Add(list.pointer, envelope.RuleMaxItems, "must have at most %d entries", maxEntries)
			continue
		}
		for i, value := range list.values {
			if !list.valid(value) {
				p.Add(list.pointer+"/"+strconv.Itoa(i), envelope.RuleFormat, "%s", list.message)
			}
		}
	}
	for _, cohort := range slices.Sorted(maps.Keys(s.Levels)) {
		at := "/settings/levels" + check.Pointer(string(cohort))
		if !slices.Contains(decide.Cohorts(), cohort) {
			p.Add(at, check.RuleUnknown, "unknown cohort")
		}
		if level := s.Levels[cohort]; level < decide.L0 || level > decide.L5 {
			p.Add(at, envelope.RuleEnum, "must be L0 to L5")
		}
	}
	for pointer, value := range map[string]float64{"/settings/confident": s.Confident, "/settings/unsure": s.Unsure} {
		if !(value >= 0 && value <= 1) {
			p.Add(pointer, envelope.RuleFormat, "must be 0 to 1")
		}
	}
}

func checkProposals(c plan.Config, p *check.Problems) {
	if c.Source == "" && c.Account == "" && len(c.Labels) == 0 && c.LabelPrefix == "" && c.Junk == "" && len(c.Actions) == 0 && c.MaxActions == 0 {
		return // observe only
	}
	if err := c.Check(); err != nil {
		p.Add("/proposals", envelope.RuleFormat, "%s", err)
	}
	for _, text := range []string{c.Source, c.Account, c.LabelPrefix, c.Junk} {
		if len(text) > 500 || strings.ContainsFunc(text, unicode.IsControl) {
			p.Add("/proposals", envelope.RuleFormat, "names must be one line of at most 500 bytes")
		}
	}
}

func checkTexts(s draft.Settings, folders []string, p *check.Problems) {
	for pointer, when := range map[string]draft.When{"/texts/summaries": s.Summaries, "/texts/drafts": s.Drafts} {
		if when != "" && when != draft.OnRequest && when != draft.Wanted {
			p.Add(pointer, envelope.RuleEnum, "must be on_request or wanted")
		}
	}
	if len(s.Examples) > draft.MaxExamples {
		p.Add("/texts/examples", envelope.RuleMaxItems, "must have at most %d Message-IDs", draft.MaxExamples)
	}
	folder := s.ExamplesFrom == draft.FromFolder
	if !slices.Contains([]draft.From{"", draft.FromNone, draft.FromRecipient, draft.FromFolder}, s.ExamplesFrom) {
		p.Add("/texts/examples_from", envelope.RuleEnum, "must be off, recipient or folder")
	}
	switch {
	case folder && !slices.Contains(folders, s.ExamplesFolder):
		p.Add("/texts/examples_folder", envelope.RuleEnum, "must be one of connection.folders, since no other folder is read")
	case !folder && s.ExamplesFolder != "":
		p.Add("/texts/examples_folder", envelope.RuleUnknownField, "needs examples_from: folder")
	}
	for i, id := range s.Examples {
		if id == "" || len(id) > maxEntries || strings.ContainsAny(id, "<>") || strings.ContainsFunc(id, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
			p.Add("/texts/examples/"+strconv.Itoa(i), envelope.RuleFormat, "must be the Message-ID of mail that you sent, without angle brackets")
		}
	}
	if len(s.Signature) > draft.MaxSignature || !utf8.ValidString(s.Signature) || strings.ContainsFunc(s.Signature, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
		p.Add("/texts/signature", envelope.RuleFormat, "must be lines of text of at most %d bytes", draft.MaxSignature)
	}
}

func (c Connection) auth() Auth         { return cmp.Or(c.Auth, Password) }
func (c Connection) security() Security { return cmp.Or(c.Security, TLS) }

func (c Connection) port() int {
	if c.Port != 0 {
		return c.Port
	}
	if c.security() == TLS {
		return 993
	}
	return 143
}
