package discover

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"
)

// thunderbirds are the folders of Thunderbird: of packages, Snap, Flatpak, macOS and
// Windows.
func thunderbirds() []string {
	return []string{
		".thunderbird", "snap/thunderbird/common/.thunderbird", ".var/app/org.mozilla.Thunderbird/.thunderbird", "Library/Thunderbird",
		"AppData/Roaming/Thunderbird",
	}
}

// thunderbird reads the profiles of Thunderbird.
func thunderbird(s *search) {
	for _, folder := range thunderbirds() {
		for _, section := range sections(s.read("thunderbird", folder+"/profiles.ini")) {
			if !strings.HasPrefix(section.name, "Profile") {
				continue
			}
			at := path.Join(folder, section.values["path"])
			if section.values["isrelative"] == "0" {
				below, ok := strings.CutPrefix(section.values["path"], s.HomePath+"/")
				if !ok {
					s.skip(Origin{"thunderbird", folder + "/profiles.ini", section.name}, "the profile is outside of the home folder")
					continue
				}
				at = path.Clean(below)
			}
			prefs(s, at+"/prefs.js")
		}
	}
}

var prefLine = regexp.MustCompile(`(?m)^user_pref\("([^"]+)",\s*(.+)\);\s*$`)

// prefs reads the accounts in the preferences of a profile.
func prefs(s *search, name string) {
	values := make(map[string]string)
	for _, m := range prefLine.FindAllSubmatch(s.read("thunderbird", name), -1) {
		text := string(m[2])
		if json.Unmarshal(m[2], &text) != nil {
			text = string(m[2]) // a number, or true or false
		}
		values[string(m[1])] = text
	}
	for account := range strings.SplitSeq(values["mail.accountmanager.accounts"], ",") {
		account = strings.TrimSpace(account)
		server := "mail.server." + values["mail.account."+account+".server"] + "."
		identity, _, _ := strings.Cut(values["mail.account."+account+".identities"], ",")
		identity = "mail.identity." + strings.TrimSpace(identity) + "."
		smtp := "mail.smtpserver." + values[identity+"smtpServer"] + "."
		f := Finding{
			Kind: Address, Address: values[identity+"useremail"],
			Default: account == values["mail.accountmanager.defaultaccount"],
			SMTP:    Server{values[smtp+"hostname"], port(values[smtp+"port"]), socket(values[smtp+"try_ssl"])},
		}
		if f.SMTP.Host == "" {
			f.SMTP = Server{}
		}
		if values[server+"type"] == "imap" {
			f.Kind, f.User = IMAP, values[server+"userName"]
			f.Server = Server{values[server+"hostname"], port(values[server+"port"]), socket(values[server+"socketType"])}
			f.OAuth = values[server+"authMethod"] == "10"
		}
		s.add(f, Origin{"thunderbird", name, "mail.account." + account})
	}
}

// socket returns the protection that Thunderbird has a number for.
func socket(number string) Security {
	switch number {
	case "3":
		return TLS
	case "1", "2":
		return StartTLS
	}
	return Plain
}
