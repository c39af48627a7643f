package signal

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/lookalike"
)

// sender adds symbols for the fields that name the sender.
func (f *finder) sender() {
	switch {
	case f.fields.from > 1:
		f.add(MultipleFrom, "")
	case f.from.Addr == "":
		f.add(MissingFrom, "")
	}
	if !f.known() && !f.about.ReplyToMine && f.from.Addr != "" && !f.own(f.from.Addr) {
		f.add(FirstContact, f.from.Addr)
	}
	if f.ownDomain(lookalike.DomainOf(f.from.Addr)) && f.forged() {
		f.add(OwnDomainForged, f.from.Addr)
	}
	f.displayAddress()
	f.displayName()
}

// forged reports whether the address in From is forged, by authentication.
// Lists change mail, so their failures prove nothing.
func (f *finder) forged() bool {
	a := f.about.Authentication
	return a.DMARC == AuthFail && !f.knownList()
}

// known reports whether the owner has a history with the sender, and trusted
// whether the owner wrote to them.
func (f *finder) known() bool   { return f.about.Sender.Known() }
func (f *finder) trusted() bool { return f.about.Sender.trusted() }

// displayAddress adds a symbol for a display name that is an address of another
// domain.
func (f *finder) displayAddress() {
	at := strings.IndexByte(f.from.Name, '@')
	if at <= 0 {
		return
	}
	written := strings.ToLower(f.from.Name[at+1:])
	if end := strings.IndexFunc(written, func(r rune) bool { return !hostRune(r) }); end >= 0 {
		written = written[:end]
	}
	written = strings.Trim(written, ".")
	if strings.Contains(written, ".") && lookalike.Registrable(written) != f.domain && f.fields.listID == "" {
		f.add(DisplayIsOtherAddress, f.shownSender())
	}
}

func hostRune(r rune) bool {
	return r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 0x7f
}

func (f *finder) shownSender() string { return f.from.Name + " <" + f.from.Addr + ">" }

// displayName adds a symbol for the display name of a contact, a brand or an
// office with an address that is not theirs.
func (f *finder) displayName() {
	written, _, _ := strings.Cut(f.from.Name, "<")
	name := plainWords(written)
	if f.from.Addr == "" || f.trusted() || f.ownDomain(lookalike.DomainOf(f.from.Addr)) {
		return
	}
	if addrs := f.about.Contacts.named(name); len(addrs) > 0 && !f.sameDomain(addrs) {
		f.add(DisplayIsContact, f.shownSender())
	}
	if f.brandOfName(name) {
		f.add(DisplayIsBrand, f.shownSender())
	}
	if !f.lex.freemail[f.domain] {
		return
	}
	var found hits
	f.lex.phrases.find(f.from.Name+"\n\n"+lookalike.LocalOf(f.from.Addr), &found)
	if found.has(office) {
		f.add(RoleFromFreemail, f.shownSender())
	}
}

// sameDomain reports whether the sender has one of these addresses, or another
// of the same organisation.
func (f *finder) sameDomain(addrs []string) bool {
	return slices.ContainsFunc(addrs, func(addr string) bool {
		domain := lookalike.Registrable(lookalike.DomainOf(addr))
		return addr == f.from.Addr || domain == f.domain && !f.lex.freemail[domain]
	})
}

// brandOfName reports whether a display name is that of a brand that the sender
// is not. If the name is also a word or a person's name, it only counts alone
// or next to a word of a service.
func (f *finder) brandOfName(name string) bool {
	var found hits
	f.lex.phrases.find(name, &found)
	h := found[brandName]
	if h.first == 0 {
		return false
	}
	b := f.lex.brands.of(h.first)
	if b.owns(f.domain, f.lex) || f.lex.brands.known(f.domain, f.lex) && b.common {
		return false
	}
	if b.common {
		return name == b.name || found.has(brandClaim)
	}
	// "Anna via LinkedIn", "Anna at GitHub": a person at a service.
	before, _, _ := strings.Cut(name, b.name)
	return !strings.HasSuffix(before, " at ") && !strings.HasSuffix(before, " from ")
}

// replyTo adds a symbol for a Reply-To elsewhere. The account of a trusted
// sender may be compromised: it counts if the mail asks for money.
func (f *finder) replyTo() {
	if len(f.m.ReplyTo) == 0 || f.domain == "" || f.fields.listID != "" {
		return
	}
	addr := f.m.ReplyTo[0].Addr
	host := lookalike.DomainOf(addr)
	domain := lookalike.Registrable(host)
	if domain == "" || domain == f.domain || sameOwner(domain, f.domain, f.lex) {
		return
	}
	evidence := f.from.Addr + ", answers to " + addr
	claimed := f.ownDomain(lookalike.DomainOf(f.from.Addr)) || f.about.Contacts.has(f.domain) && !f.lex.freemail[f.domain]
	switch {
	case f.trusted() && f.aligned() && !f.asks(), f.ownDomain(host), f.about.Contacts.has(domain) && !f.lex.freemail[domain]:
	case claimed && !f.aligned() && f.fields.unsubscribe == "":
		f.add(ReplyToSpoof, evidence)
	case f.lex.freemail[domain]:
		f.add(ReplyToOtherFreemail, evidence)
	case f.fields.unsubscribe == "" && f.fields.precedence == "":
		f.add(ReplyToOtherDomain, evidence)
	}
}
