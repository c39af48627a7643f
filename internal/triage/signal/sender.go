package signal

import "strings"

// sender notes what the fields that name the sender say.
func (f *finder) sender() {
	switch {
	case f.fields.from > 1:
		f.add(MultipleFrom, "")
	case f.from.Addr == "":
		f.add(MissingFrom, "")
	}
	if !f.about.Sender.Known() && !f.about.ReplyToMine && f.from.Addr != "" && !f.own(f.from.Addr) {
		f.add(FirstContact, f.from.Addr)
	}
	f.displayAddress()
}

// displayAddress notes a display name that is an address of another domain.
func (f *finder) displayAddress() {
	at := strings.IndexByte(f.from.Name, '@')
	if at <= 0 {
		return
	}
	shown := strings.ToLower(f.from.Name[at+1:])
	if end := strings.IndexFunc(shown, func(r rune) bool { return !hostRune(r) }); end >= 0 {
		shown = shown[:end]
	}
	shown = strings.Trim(shown, ".")
	if strings.Contains(shown, ".") && registrable(shown) != f.domain {
		f.add(DisplayIsOtherAddress, f.from.Name+" <"+f.from.Addr+">")
	}
}

func hostRune(r rune) bool {
	return r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 0x7f
}
