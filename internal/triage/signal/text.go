package signal

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/lookalike"
	"github.com/countersign-dev/countersign/internal/mail/message"
)

// texts matches all phrases in the visible text, and in the text without
// quotes.
func (f *finder) texts() {
	f.lex.phrases.find(f.subject+"\n\n"+clipBytes(f.m.Text), &f.found)
	if f.m.Body == f.m.Text || f.m.Body == "" {
		f.written = f.found
		return
	}
	f.lex.phrases.find(f.subject+"\n\n"+clipBytes(f.m.Body), &f.written)
}

// opening is the length of the beginning of a text in which a request counts:
// phishing is brief, and long newsletters contain every word somewhere.
const opening = 4000

// words adds symbols for the requests of the text. Order matters: later rules
// use earlier ones.
func (f *finder) words() {
	for _, rule := range []struct {
		of   list
		name string
	}{
		{urgency, UrgencyWords},
		{credential, CredentialAsk},
		{payment, PaymentAsk},
		{bank, BankChange},
		{giftCard, GiftCardAsk},
		{advanceFee, AdvanceFee},
		{extortion, Extortion},
		{secrecy, Secrecy},
	} {
		if f.asked(rule.of) {
			f.add(rule.name, f.found[rule.of].evidence)
		}
	}
	f.claims()
	if f.asks() && f.foreignLink() {
		f.add(LinkForeign, "")
	}
	if f.has(FirstContact) && f.has(UrgencyWords, Secrecy) && f.asks() && !f.vouched() {
		f.add(FirstContactLure, f.from.Addr)
	}
}

// asked reports whether a phrase of a list is in the opening.
func (f *finder) asked(l list) bool { return f.found.begins(l, len(f.subject)+opening) }

// asks reports whether the text asks for credentials or money.
func (f *finder) asks() bool { return f.has(CredentialAsk, PaymentAsk, GiftCardAsk, BankChange) }

// vouched reports whether the sender is proven to be a brand.
func (f *finder) vouched() bool { return f.aligned() && f.lex.brands.known(f.domain, f.lex) }

// claims adds symbols for a text that claims to speak for a brand or for the
// owner's organisation from a foreign sender.
func (f *finder) claims() {
	if f.domain == "" || !f.has(CredentialAsk, PaymentAsk) || f.trusted() || f.ownDomain(lookalike.DomainOf(f.from.Addr)) {
		return
	}
	if h := f.found[brandClaim]; f.asked(brandClaim) && !f.lex.brands.known(f.domain, f.lex) && !f.speaksForItself() && f.leadsAway(h) {
		f.add(BrandClaim, h.evidence)
	}
	if h := f.found[internal]; f.asked(internal) && f.has(UrgencyWords) && f.outside() {
		f.add(OfficeClaim, h.evidence)
	}
}

// outside reports whether a mail that claims to speak for the owner's
// organisation comes from or links to somewhere else.
func (f *finder) outside() bool {
	stranger := len(f.about.Domains) > 0 && f.has(FirstContact) && !f.speaksForItself()
	return stranger || f.lex.freemail[f.domain] || f.foreignLink()
}

// leadsAway reports whether the message offers a link, an attachment or a reply
// address that is not the brand's. Mail that only mentions a brand offers none.
func (f *finder) leadsAway(claim hit) bool {
	b := f.lex.brands.of(claim.first)
	for _, l := range f.m.Links {
		if !b.owns(l.Domain, f.lex) {
			return true
		}
	}
	return len(f.m.Attachments) > 0 || f.lex.freemail[f.domain]
}

// speaksForItself reports whether the text contains the sender's own name, as
// in mail of services about an account elsewhere.
func (f *finder) speaksForItself() bool {
	label := lookalike.LabelOf(f.domain)
	if len(label) < 3 || f.lex.freemail[f.domain] {
		return false
	}
	if _, strong := f.lured(label); strong {
		return false
	}
	name := strings.ReplaceAll(plainWords(f.from.Name), " ", "")
	return strings.Contains(name, strings.ReplaceAll(label, "-", ""))
}

// foreignLink reports whether a link goes to a domain that is neither the
// sender's nor established.
func (f *finder) foreignLink() bool {
	return slices.ContainsFunc(f.m.Links, func(l message.Link) bool { return l.Domain != "" && l.Domain != f.domain && !f.established(l.Domain) })
}

// hidden adds symbols for hidden text. In known bulk mail a hidden preview text
// is usual.
func (f *finder) hidden() {
	if f.knownBulk() {
		return
	}
	const much = 200
	characters, colour, size := 0, false, false
	for _, h := range f.m.Hidden {
		characters += len(h.Text)
		colour = colour || strings.Contains(h.Reason, "colo")
		size = size || strings.Contains(h.Reason, "font")
	}
	if colour && (characters > much && f.sum(Bulk) == 0 || f.has(InstructionHidden)) {
		f.add(TextLowContrast, f.m.Hidden[0].Text)
	}
	if size {
		f.add(ZeroFont, f.m.Hidden[0].Text)
	}
	if i := f.m.Invisible; i.ZeroWidth+i.Bidi+i.Other > 20 || i.SoftHyphens > 200 || i.Tags > 0 {
		f.add(ManyInvisible, "")
	}
}

// question adds symbols for a question to the owner and for a deadline.
func (f *finder) question() {
	if f.sum(Bulk) < 2 && len(f.m.To) <= 3 {
		if at := questionMark(f.m.Body); at >= 0 {
			start := max(0, at-maxEvidence/2)
			begin := strings.LastIndexAny(f.m.Body[start:at], ".!?\n") + 1
			f.add(QuestionToMe, f.m.Body[start+begin:at+1])
		}
	}
	if f.written.has(deadline) {
		f.add(DeadlineDate, f.written[deadline].evidence)
	}
}

// questionMark returns the offset of a question mark that ends a sentence, or
// -1.
func questionMark(text string) int {
	for i := 0; i < len(text); i++ {
		next := strings.IndexByte(text[i:], '?')
		if next < 0 {
			return -1
		}
		i += next
		if i > 0 && text[i-1] > ' ' && (i+1 == len(text) || text[i+1] <= ' ' || text[i+1] == '"' || text[i+1] == ')') {
			return i
		}
	}
	return -1
}

// maxText limits the part of a text that is read: its beginning and its end.
const maxText = 64 << 10

func clipBytes(text string) string {
	if len(text) <= 2*maxText {
		return text
	}
	return text[:maxText] + "\n\n" + text[len(text)-maxText:]
}

// attachments adds symbols for attachments, by name and by content.
func (f *finder) attachments() {
	for _, a := range f.m.Attachments {
		parts := strings.Split(strings.ToLower(strings.TrimSpace(a.Name)), ".")
		last := strings.TrimSpace(parts[len(parts)-1])
		program := len(parts) > 1 && slices.Contains(programs(), last) || executable(a.Detected)
		if program && len(parts) > 2 && slices.Contains(documents(), strings.TrimSpace(parts[len(parts)-2])) {
			f.add(AttachDoubleExt, a.Name)
		}
		if program {
			f.add(AttachBadExt, a.Name)
		}
		if a.Encrypted {
			f.add(AttachEncrypted, a.Name)
		}
		if !a.Inline && (strings.HasPrefix(a.Detected, "text/html") || slices.Contains([]string{"htm", "html", "shtml", "xhtml"}, last)) {
			f.add(AttachHTML, a.Name)
		}
	}
}

func executable(media string) bool {
	return slices.Contains([]string{"application/x-msdownload", "application/vnd.microsoft.portable-executable", "application/x-dosexec", "application/x-executable"}, media)
}

// programs are the extensions of files that run when opened.
func programs() []string {
	return strings.Fields("exe scr com pif bat cmd js jse vbs vbe wsf wsh hta lnk cpl msi msp jar ps1 reg iso img vhd dll application appx chm docm xlsm pptm xll one svg url library-ms")
}

// documents are the extensions that programs pretend to have.
func documents() []string {
	return strings.Fields("pdf doc docx xls xlsx ppt pptx txt rtf jpg jpeg png gif zip csv htm html mp3 mp4 xml")
}
