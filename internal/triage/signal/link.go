package signal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/lookalike"
	"github.com/countersign-dev/countersign/internal/mail/message"
)

// maxHosts limits the distinct hosts of a message that are checked.
const maxHosts = 200

func (f *finder) links() {
	seen := make(map[string]bool)
	for _, l := range f.m.Links {
		f.address(l)
		f.linkText(l)
		if len(seen) < maxHosts && !seen[l.Host] {
			seen[l.Host] = true
			f.host(l.Host)
		}
	}
	if host := lookalike.DomainOf(f.from.Addr); !seen[host] {
		f.host(host)
	}
	for _, a := range f.m.ReplyTo {
		if host := lookalike.DomainOf(a.Addr); !seen[host] {
			f.host(host)
		}
	}
}

// address adds symbols for the spelling of a link.
func (f *finder) address(l message.Link) {
	for _, text := range []string{l.URL, l.Text} {
		if text == l.Text && !strings.Contains(text, "://") {
			continue
		}
		switch invisible, turned := unseen(text); {
		case turned:
			f.add(URLRTL, l.Host)
		case invisible:
			f.add(URLZeroWidth, l.Host)
		}
	}
	_, rest, ok := strings.Cut(l.URL, "://")
	if !ok {
		return
	}
	if end := strings.IndexAny(rest, "/?#\\"); end >= 0 {
		rest = rest[:end]
	}
	if strings.Contains(rest, "@") {
		f.add(URLUserinfo, rest)
	}
}

// unseen reports whether a text has zero-width characters or characters that
// change the reading direction.
func unseen(text string) (invisible, turned bool) {
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			turned = true
		case r == 0xad, unicode.Is(unicode.Cf, r):
			invisible = true
		}
	}
	return invisible, turned
}

// host adds symbols for a host of the sender or of a link.
func (f *finder) host(host string) {
	if host == "" {
		return
	}
	domain := lookalike.Registrable(host)
	sender := domain == f.domain
	if lookalike.Numeric(host) && !sender {
		f.add(URLNumericIP, host)
		return
	}
	for label := range strings.SplitSeq(lookalike.Shown(host), ".") {
		if lookalike.MixesScripts(label) {
			f.add(URLHomograph, host)
		}
	}
	f.lookalike(host, sender)
	if f.lureDomain(domain) {
		f.add(LureDomain, host)
	}
	switch {
	case !f.lex.tld[lookalike.TopLevel(domain)] || f.established(domain):
	case sender:
		f.add(SenderSuspiciousTLD, host)
	default:
		f.add(URLSuspiciousTLD, host)
	}
	if f.lex.shortener[domain] && !sender {
		f.add(URLShortener, host)
	}
}

// lookalike adds a symbol for a host that imitates another. A name among other
// words counts half in the links of a mail that asks for nothing.
func (f *finder) lookalike(host string, sender bool) {
	imitated, clearly := f.imitates(host)
	if imitated == "" {
		return
	}
	part := 1.0
	if !sender && !clearly && !f.asks() {
		part = 0.5
	}
	f.addScaled(LookalikeDomain, part, host+" looks like "+imitated)
}

// linkText adds a symbol for a link whose text shows another domain than its
// target. Ordinary bulk mail uses services that count clicks; a frequently
// imitated name is not excused by that.
func (f *finder) linkText(l message.Link) {
	text := strings.TrimSpace(l.Text)
	if text == "" || l.Domain == "" || strings.ContainsAny(text, " \n\t@") || !strings.Contains(text, ".") {
		return
	}
	host := strings.ToLower(text)
	if _, after, ok := strings.Cut(host, "://"); ok {
		host = after
	}
	if end := strings.IndexFunc(host, func(r rune) bool { return !hostRune(r) }); end >= 0 {
		host = host[:end]
	}
	host = strings.Trim(host, ".")
	written := lookalike.Registrable(host)
	if written == l.Domain || !lookalike.PublicTop(host) {
		return
	}
	imitable := f.lex.brands.known(written, f.lex) || f.ownDomain(written) || f.about.Contacts.has(written)
	if f.lex.tracker[l.Domain] || f.lex.shortener[l.Domain] || f.knownBulk() {
		return
	}
	if !imitable && (l.Domain == f.domain || f.established(l.Domain)) {
		return
	}
	if sameOwner(written, l.Domain, f.lex) {
		return
	}
	part := 1.0
	if !imitable && f.sum(Bulk) >= 2 && !f.asks() {
		part = 0.5
	}
	f.addScaled(LinkTextMismatch, part, host+" leads to "+l.Host)
}

// sameOwner reports whether two registrable domains are of one brand.
func sameOwner(a, b string, lex *lexicon) bool {
	for i := range lex.brands.all {
		if one := &lex.brands.all[i]; one.owns(a, lex) && one.owns(b, lex) {
			return true
		}
	}
	return false
}
