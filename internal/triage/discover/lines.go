package discover

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// section is a section of a file of the form of INI. Names of values are in lower
// case.
type section struct {
	name   string
	values map[string]string
}

// sections parses a file of the form of INI, of git or of TOML without nested values.
// Names of secrets keep no value: see hide.
func sections(raw []byte) []section {
	all := []section{{values: map[string]string{}}}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			name, _, _ := strings.Cut(line[1:], "]")
			all = append(all, section{strings.TrimSpace(name), map[string]string{}})
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		all[len(all)-1].values[key] = hide(key, unquoted(value))
	}
	return all
}

// hidden replaces a secret.
const hidden = "[REDACTED]"

// hide returns the value of a setting; for a password only that there is one.
func hide(key, value string) string {
	for _, word := range []string{"pass", "secret", "token", "raw", "key"} {
		if value != "" && strings.Contains(key, word) {
			return hidden
		}
	}
	return value
}

// unquoted returns a value without quotes and without a comment behind it.
func unquoted(value string) string {
	value = strings.TrimSpace(value)
	for _, quote := range []string{`"`, `'`} {
		if rest, ok := strings.CutPrefix(value, quote); ok {
			inner, _, _ := strings.Cut(rest, quote)
			return inner
		}
	}
	value, _, _ = strings.Cut(value, " #")
	return strings.TrimSpace(value)
}

// desktop reads which program the desktop has for mailto links.
func desktop(s *search) {
	for _, name := range []string{".config/mimeapps.list", ".local/share/applications/mimeapps.list"} {
		for _, of := range sections(s.read("desktop", name)) {
			if of.name != "Default Applications" {
				continue
			}
			app, _, _ := strings.Cut(strings.ToLower(of.values["x-scheme-handler/mailto"]), ";")
			for _, known := range []string{"thunderbird", "mutt", "himalaya"} {
				if s.handler == "" && strings.Contains(app, known) {
					s.handler = known
				}
			}
		}
	}
}

// git reads the addresses of git.
func git(s *search) {
	for _, name := range []string{".gitconfig", ".config/git/config"} {
		f, at := Finding{Kind: Address}, Origin{"git", name, "user.email"}
		for _, of := range sections(s.read("git", name)) {
			switch strings.ToLower(of.name) {
			case "user":
				f.Address = of.values["email"]
			case "sendemail":
				s.add(Finding{Kind: Address, Address: of.values["smtpuser"]}, Origin{"git", name, "sendemail.smtpUser"})
			}
		}
		s.add(f, at)
	}
}

// environment reads variables.
func environment(s *search) {
	for _, name := range []string{"EMAIL", "GMAIL_ADDRESS", "OUTLOOK_ACCOUNT", "MAIL_ADDRESS"} {
		s.add(Finding{Kind: Address, Address: s.Getenv(name)}, Origin{"environment", "", name})
	}
	for _, name := range []string{"MAILDIR", "MAIL"} {
		if at := s.expand(s.Getenv(name)); at != "" && s.isMaildir(at) {
			s.add(Finding{Kind: Maildir, Path: at}, Origin{"environment", "", name})
		}
	}
}

// mbsync reads the accounts and stores of mbsync.
func mbsync(s *search) {
	for _, name := range []string{".mbsyncrc", ".config/isyncrc"} {
		var f Finding
		var at Origin
		var inbox, below string
		end := func() {
			if f.Kind == Maildir {
				for _, place := range []string{inbox, below} {
					if f.Path = s.expand(place); f.Path != "" && s.isMaildir(f.Path) {
						break
					}
					f.Path = ""
				}
			}
			if at.Key != "" && (f.Kind == IMAP || f.Path != "") {
				s.add(f, at)
			}
			f, at, inbox, below = Finding{}, Origin{}, "", ""
		}
		for line := range strings.Lines(string(s.read("mbsync", name))) {
			word, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			value = unquoted(value)
			switch strings.ToLower(word) {
			case "imapaccount":
				end()
				f, at = Finding{Kind: IMAP, Server: Server{Security: StartTLS}}, Origin{"mbsync", name, "IMAPAccount " + value}
			case "maildirstore":
				end()
				f, at = Finding{Kind: Maildir}, Origin{"mbsync", name, "MaildirStore " + value}
			case "imapstore", "channel", "group":
				end()
			case "host":
				f.Server.Host = value
			case "port":
				f.Server.Port = port(value)
			case "user":
				f.User = value
			case "pass":
				f.Stored = value != ""
			case "ssltype", "tlstype":
				f.Server.Security = map[string]Security{"imaps": TLS, "none": Plain}[strings.ToLower(value)]
				if f.Server.Security == "" {
					f.Server.Security = StartTLS
				}
			case "authmechs", "authmech":
				f.OAuth = strings.Contains(strings.ToUpper(value), "OAUTH")
			case "path":
				below = value
			case "inbox":
				inbox = value
			}
		}
		end()
	}
}

// mutt reads the settings of mutt and neomutt, with files that they source.
func mutt(s *search) {
	for _, name := range []string{".muttrc", ".mutt/muttrc", ".config/mutt/muttrc", ".neomuttrc", ".config/neomutt/neomuttrc", ".neomutt/neomuttrc"} {
		m := muttSettings{search: s, values: map[string]string{}}
		m.read(name, nil)
		if len(m.values) > 0 {
			m.add(Origin{Program: "mutt", File: name})
		}
	}
}

// muttSettings are the settings of mutt. Each file counts once.
type muttSettings struct {
	*search
	values map[string]string
	stored bool
}

func (m *muttSettings) read(name string, within []string) {
	const most = 8
	if slices.Contains(within, name) || len(within) > most {
		return
	}
	for line := range strings.Lines(string(m.search.read("mutt", name))) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "set":
			key, value, _ := strings.Cut(rest, "=")
			key = strings.TrimPrefix(strings.TrimSpace(key), "my_")
			value = unquoted(value)
			if strings.HasSuffix(key, "_pass") {
				m.stored = m.stored || value != ""
				continue
			}
			m.values[key] = value
		case "source":
			if at, ok := strings.CutPrefix(m.expand(unquoted(rest)), m.HomePath+"/"); ok {
				m.read(at, append(within, name))
			}
		}
	}
}

// add adds the accounts of the settings: of a server, and of a Maildir.
func (m *muttSettings) add(at Origin) {
	f := Finding{Kind: Address, Address: m.values["from"], User: m.values["imap_user"], Stored: m.stored}
	f.OAuth = strings.Contains(m.values["imap_authenticators"], "oauth")
	at.Key = "from"
	for _, key := range []string{"folder", "spoolfile"} {
		value := m.values[key]
		u, err := url.Parse(value)
		switch {
		case err == nil && (u.Scheme == "imap" || u.Scheme == "imaps"):
			f.Kind, f.Server, at.Key = IMAP, Server{u.Hostname(), port(u.Port()), TLS}, key
			if u.Scheme == "imap" {
				f.Server.Security = StartTLS
			}
			if u.User != nil && u.User.Username() != "" {
				f.User = u.User.Username()
			}
			if u.User != nil {
				_, set := u.User.Password()
				f.Stored = f.Stored || set
			}
		case value != "":
			if dir := m.expand(strings.Replace(value, "+", m.values["folder"]+"/", 1)); dir != "" {
				for _, dir := range []string{dir, path.Join(dir, "INBOX")} {
					if m.isMaildir(dir) {
						m.search.add(Finding{Kind: Maildir, Path: dir, Address: f.Address}, Origin{at.Program, at.File, key})
						break
					}
				}
			}
		}
	}
	if u, err := url.Parse(m.values["smtp_url"]); err == nil && u.Hostname() != "" {
		f.SMTP = Server{u.Hostname(), port(u.Port()), StartTLS}
		if u.Scheme == "smtps" {
			f.SMTP.Security = TLS
		}
	}
	m.search.add(f, at)
}

// himalaya reads the accounts of himalaya: TOML with a table for each account.
func himalaya(s *search) {
	for _, name := range []string{".config/himalaya/config.toml", ".himalayarc", "Library/Application Support/himalaya/config.toml"} {
		for account, values := range tables(s.read("himalaya", name)) {
			f := Finding{
				Kind: Address, Address: values["email"], User: values["backend.login"], Default: values["default"] == "true",
				OAuth: values["backend.auth.type"] == "oauth2", Stored: values["backend.auth.raw"] != "",
			}
			switch values["backend.type"] {
			case "imap":
				f.Kind, f.Server = IMAP, Server{values["backend.host"], port(values["backend.port"]), TLS}
				switch values["backend.encryption.type"] + values["backend.encryption"] {
				case "start-tls":
					f.Server.Security = StartTLS
				case "none":
					f.Server.Security = Plain
				}
			case "maildir":
				f.Kind, f.Path = Maildir, s.expand(values["backend.root-dir"])
			}
			if values["message.send.backend.type"] == "smtp" {
				f.SMTP = Server{values["message.send.backend.host"], port(values["message.send.backend.port"]), TLS}
				if values["message.send.backend.encryption.type"] == "start-tls" {
					f.SMTP.Security = StartTLS
				}
			}
			s.add(f, Origin{"himalaya", name, "accounts." + account})
		}
	}
}

// tables returns the values of the tables accounts.NAME, by the name of the account
// and the dotted key.
func tables(raw []byte) func(yield func(string, map[string]string) bool) {
	all, names := map[string]map[string]string{}, []string(nil)
	for _, of := range sections(raw) {
		rest, ok := strings.CutPrefix(of.name, "accounts.")
		if !ok {
			continue
		}
		name, prefix, _ := strings.Cut(rest, ".")
		name = strings.Trim(name, `"'`)
		if prefix != "" {
			prefix += "."
		}
		if all[name] == nil {
			all[name], names = map[string]string{}, append(names, name)
		}
		for key, value := range of.values {
			all[name][prefix+key] = value
		}
	}
	return func(yield func(string, map[string]string) bool) {
		for _, name := range names {
			if !yield(name, all[name]) {
				return
			}
		}
	}
}
