package discover_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/triage/discover"
)

// secretMark begins every secret in the fixtures.
const secretMark = "hunter2"

// find searches a home folder of testdata.
func find(t *testing.T, home string, env map[string]string) discover.Report {
	t.Helper()
	return discover.Find(discover.Places{Home: os.DirFS("testdata/" + home), HomePath: "/home/ann", Getenv: func(name string) string { return env[name] }})
}

// describe returns a line for a finding.
func describe(f discover.Finding) string {
	server := func(s discover.Server) string { return fmt.Sprintf("%s:%d/%s", s.Host, s.Port, s.Security) }
	parts := []string{string(f.Kind), f.Address}
	if f.Server.Host != "" {
		parts = append(parts, f.User+"@"+server(f.Server))
	}
	if f.SMTP.Host != "" {
		parts = append(parts, "smtp="+server(f.SMTP))
	}
	if f.Path != "" {
		parts = append(parts, f.Path)
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"oauth", f.OAuth}, {"stored", f.Stored}, {"default", f.Default}} {
		if flag.set {
			parts = append(parts, flag.name)
		}
	}
	for _, o := range f.Origins {
		parts = append(parts, "("+o.String()+")")
	}
	return strings.Join(parts, " ")
}

func lines(r discover.Report) []string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, describe(f))
	}
	for _, s := range r.Skipped {
		all = append(all, "skipped "+s.Origin.String()+": "+s.Reason)
	}
	return all
}

func TestAccountsOfALinuxDesktopAreFound(t *testing.T) {
	t.Parallel()

	got := lines(find(t, "linux", map[string]string{"EMAIL": "ann@example.org", "GMAIL_ADDRESS": "other@gmail.com", "MAIL": "/var/mail/ann", "MAILDIR": "/home/ann/Maildir"}))

	want := []string{
		"imap ann.example@gmail.com ann.example@gmail.com@imap.gmail.com:993/tls smtp=smtp.gmail.com:465/tls oauth default (thunderbird ~/.thunderbird/abc.default-release/prefs.js mail.account.account3) (cursor ~/.cursor/mcp.json gmail)",
		"imap ann@example.org ann@mail.example.org:143/starttls smtp=mail.example.org:587/starttls default (thunderbird ~/.thunderbird/abc.default-release/prefs.js mail.account.account1) (environment EMAIL)",
		"imap ann@home.example ann@home.example@imap.home.example:143/starttls smtp=smtp.home.example:465/tls stored default (himalaya ~/.config/himalaya/config.toml accounts.home)",
		"maildir ann@files.example /home/ann/Maildir (himalaya ~/.config/himalaya/config.toml accounts.files) (environment MAILDIR)",
		"imap ann@work.example ann@work.example@imap.work.example:993/tls stored (mbsync ~/.mbsyncrc IMAPAccount work) (git ~/.gitconfig user.email)",
		"imap  a.example@imap.campus.example:0/starttls oauth (mbsync ~/.mbsyncrc IMAPAccount campus)",
		"maildir  /home/ann/Mail/work/INBOX (mbsync ~/.mbsyncrc MaildirStore work-local)",
		"imap ann@club.example ann@club.example@imap.club.example:993/ smtp=smtp.club.example:465/ stored (claude desktop ~/.config/Claude/claude_desktop_config.json email)",
		"imap ann@mutt.example ann@mutt.example@imap.mutt.example:993/tls smtp=smtp.mutt.example:587/starttls stored (mutt ~/.config/mutt/muttrc folder)",
		"address ann@old.example default (thunderbird ~/.thunderbird/abc.default-release/prefs.js mail.account.account5)",
		"address ann@send.example (git ~/.gitconfig sendemail.smtpUser)",
		"address other@gmail.com (environment GMAIL_ADDRESS)",
		"skipped thunderbird ~/.thunderbird/profiles.ini Profile1: the profile is outside of the home folder",
		"skipped claude code ~/.claude.json: is not JSON of an MCP client",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestAccountsOfAMacAreFound(t *testing.T) {
	t.Parallel()

	got := lines(find(t, "mac", nil))

	want := []string{
		"imap bo@fastmail.com bo@fastmail.com@imap.fastmail.com:993/tls (thunderbird ~/Library/Thunderbird/Profiles/x.default/prefs.js mail.account.account1)",
		"imap bo@icloud.com bo@icloud.com@imap.mail.me.com:0/tls oauth (apple mail ~/Library/Mail/V10/MailData/Accounts.plist MailAccounts:2)",
		"imap bo@studio.example bo@studio.example@imap.studio.example:993/tls smtp=smtp.studio.example:587/starttls (apple mail ~/Library/Mail/V10/MailData/Accounts.plist MailAccounts:0)",
		"address bo@contoso.onmicrosoft.com stored (vs code ~/Library/Application Support/Code/User/mcp.json outlook)",
		"skipped apple mail ~/Library/Preferences/com.apple.mail.plist: is binary; plutil -convert xml1 -o - shows it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// TestSecretsInFilesAreNotReturned first checks that the fixtures have secrets.
func TestSecretsInFilesAreNotReturned(t *testing.T) {
	t.Parallel()
	for home, files := range map[string][]string{
		"linux": {".mbsyncrc", ".gitconfig", ".config/mutt/secrets", ".config/mutt/muttrc", ".config/himalaya/config.toml", ".config/Claude/claude_desktop_config.json", ".cursor/mcp.json"},
		"mac":   {"Library/Mail/V10/MailData/Accounts.plist", "Library/Application Support/Code/User/mcp.json"},
	} {
		for _, name := range files {
			raw, err := os.ReadFile("testdata/" + home + "/" + name)
			if err != nil || !strings.Contains(string(raw), secretMark) {
				t.Errorf("%s has no secret to look for: %v", name, err)
			}
		}
		r := find(t, home, nil)
		asJSON, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(asJSON), fmt.Sprintf("%+v", r)} {
			if strings.Contains(text, secretMark) {
				t.Errorf("%s: a secret is in %s", home, text)
			}
		}
	}
}

func TestUnusualFilesAreSkipped(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"an empty home has nothing": {nil, nil},
		"a file of several megabytes": {
			map[string]string{".mbsyncrc": "IMAPAccount a\nHost h.example\nUser u@h.example\n" + strings.Repeat("#", 9<<20)},
			[]string{"skipped mbsync ~/.mbsyncrc: is too large"},
		},
		"a property list without an end": {
			map[string]string{"Library/Mail/V2/MailData/Accounts.plist": "<plist><dict><key>MailAccounts</key><array>"},
			[]string{"skipped apple mail ~/Library/Mail/V2/MailData/Accounts.plist: is not a property list"},
		},
		"a property list that nests deeply": {
			map[string]string{"Library/Mail/V2/MailData/Accounts.plist": "<plist>" + strings.Repeat("<array>", 10000)},
			[]string{"skipped apple mail ~/Library/Mail/V2/MailData/Accounts.plist: is not a property list"},
		},
		"mutt sources itself through another file": {
			map[string]string{".muttrc": "source ~/b\nset from=a@b.example\n", "b": "source ~/.muttrc\n"},
			[]string{"address a@b.example (mutt ~/.muttrc from)"},
		},
		"an account of mutt without a server": {
			map[string]string{".muttrc": "set folder=~/Mail\nset spoolfile=+inbox\nset from=a@b.example", "Mail/inbox/cur/x": "", "Mail/inbox/new/x": ""},
			[]string{"maildir a@b.example /home/ann/Mail/inbox (mutt ~/.muttrc spoolfile) (mutt ~/.muttrc from)"},
		},
		"addresses of machines and of nobody": {
			map[string]string{".gitconfig": "[user]\nemail = ann@laptop.local\n", ".config/git/config": "[user]\nemail = 1234+ann@users.noreply.github.com\n"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := fstest.MapFS{}
			for name, text := range row.files {
				home[name] = &fstest.MapFile{Data: []byte(text)}
			}

			got := lines(discover.Find(discover.Places{Home: home, HomePath: "/home/ann"}))

			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzFind gives every parser the same text.
func FuzzFind(f *testing.F) {
	for _, name := range []string{".mbsyncrc", ".gitconfig", ".config/mutt/muttrc", ".config/himalaya/config.toml", ".cursor/mcp.json", ".thunderbird/abc.default-release/prefs.js"} {
		raw, err := os.ReadFile("testdata/linux/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		home := fstest.MapFS{".thunderbird/profiles.ini": &fstest.MapFile{Data: []byte("[Profile0]\nPath=p\n")}}
		for _, name := range []string{
			".mbsyncrc", ".gitconfig", ".muttrc", ".config/himalaya/config.toml", ".cursor/mcp.json", ".thunderbird/p/prefs.js", ".config/mimeapps.list",
			"Library/Mail/V2/MailData/Accounts.plist",
		} {
			home[name] = &fstest.MapFile{Data: raw}
		}
		for _, found := range discover.Find(discover.Places{Home: home, HomePath: "/home/ann"}).Findings {
			if found.Address == "" && found.User == "" && found.Path == "" || len(found.Origins) == 0 {
				t.Errorf("a finding without an account or an origin: %+v", found)
			}
		}
	})
}

func TestOriginsAreShownWhole(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]discover.Origin{
		"the command line":         {Program: "the command line"},
		"git user.email":           {Program: "git", Key: "user.email"},
		"mutt ~/.muttrc":           {Program: "mutt", File: ".muttrc"},
		"mutt ~/.muttrc imap_user": {Program: "mutt", File: ".muttrc", Key: "imap_user"},
	} {
		if got := o.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}
