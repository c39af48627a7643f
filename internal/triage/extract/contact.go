package extract

import (
	"regexp"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/span"
)

var (
	// suffixForm is the legal form of a company alone, regionForm a state, and proseForm
	// a text that is neither a position nor a name.
	suffixForm = regexp.MustCompile(`(?i)^(?:Inc|Ltd|LLC|LLP|GmbH|AG|Corp|S\.?A|Co)\.?$`)
	regionForm = regexp.MustCompile(`^[A-Z]{2}(?:\s|$)`)
	proseForm  = regexp.MustCompile(`[?!\[\]<>]|::|--|\b(?i:click|unsubscribe|regards?|thanks|you|please|be)\b`)

	companyForm = regexp.MustCompile(`(?i)\b(?:GmbH|AG|UG|KG|e\.V\.|Ltd\.?|LLC|LLP|Inc\.?|Corp\.?|PLC|S\.?A\.?R?\.?L?\.?|S\.?L\.?|B\.?V\.?|Oy|AB|ApS|Trust|Foundation|Institut\w*|University|Universität)\s*$|株式会社|有限会社`)
	machineForm = regexp.MustCompile(`(?i)^(?:no-?_?reply|do-?not-?reply|notifications?|mailer-daemon|postmaster|newsletter|news|info|support|service|billing|orders?)\b`)
	phoneLabel  = regexp.MustCompile(`(?i)^(?:tel|phone|fon|mob|cell|office|fax|t:|m:|p:|電話)`)
)

// contact adds the person who signed a mail: a sender with a name who gives a
// position, an organization or a telephone number.
func (f *finder) contact() {
	name := f.sender.Name
	if name == "" || f.bulk() || machineForm.MatchString(f.sender.Addr) {
		return
	}
	text := clip(f.m.Text, maxBody)
	sign := span.SignatureOf(text, name)
	if !f.signed(text, name) {
		return
	}
	field := func(of string, s span.Span) Field {
		if s == (span.Span{}) {
			return Field{Name: of}
		}
		return Field{Name: of, Value: strings.TrimSpace(s.Of(text)), Part: Text, Span: s}
	}
	title, organization := field("title", sign.Title), field("organization", sign.Company)
	if sign.Title == (span.Span{}) {
		title, organization = f.positions(text, name, sign)
	}
	switch {
	case proseForm.MatchString(title.Value + " " + organization.Value), regionForm.MatchString(organization.Value):
		title, organization = Field{Name: "title"}, Field{Name: "organization"}
	case suffixForm.MatchString(organization.Value):
		organization, title = field("organization", span.Span{From: title.Span.From, To: organization.Span.To}), Field{Name: "title"}
	}
	found := Finding{Kind: Contact, Fields: []Field{{Name: "name", Value: name, Part: Header}, title, organization}}
	var phones []string
	var at span.Span
	for i, p := range sign.Phones {
		phones = append(phones, strings.TrimSpace(p.Of(text)))
		if i == 0 {
			at = p
		}
		at.To = p.To
	}
	found.Fields = append(found.Fields, Field{Name: "phones", Value: strings.Join(phones, "; "), Part: Text, Span: at}, Field{Name: "email", Value: f.sender.Addr, Part: Header})
	if title.Value == "" && organization.Value == "" && len(phones) == 0 {
		return
	}
	f.add(found)
}

// signed reports whether the name of the sender stands in a line of its own in the
// signature.
func (f *finder) signed(text, name string) bool {
	for l := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(l), name) {
			return true
		}
	}
	return false
}

// positions returns the position and the organization in the lines below the name:
// the last of two lines is the organization, as is one with the form of a company or
// with the name of the sender's domain.
func (f *finder) positions(text, name string, sign span.Signature) (title, organization Field) {
	title, organization = Field{Name: "title"}, Field{Name: "organization"}
	var lines []span.Span
	signed := slices.IndexFunc(sign.Lines, func(l span.Span) bool { return strings.HasPrefix(strings.TrimSpace(l.Of(text)), name) })
	for i, l := range sign.Lines {
		s := strings.TrimSpace(l.Of(text))
		// Above the name stands at most a company, and below it no other paragraph.
		if i < signed && !companyForm.MatchString(s) || i > signed+4 {
			continue
		}
		if s == "" || s == name || len(s) > 60 || strings.ContainsAny(s, "@0123456789,") || phoneLabel.MatchString(s) || strings.HasSuffix(s, ".") || strings.Contains(s, "://") {
			continue
		}
		lines = append(lines, l)
	}
	set := func(f *Field, l span.Span) {
		f.Value, f.Part, f.Span = strings.TrimSpace(l.Of(text)), Text, l
	}
	for i, l := range lines[:min(2, len(lines))] {
		s := strings.TrimSpace(l.Of(text))
		last := i == 1
		if organization.Value == "" && (last || companyForm.MatchString(s) || f.ofDomain(s)) {
			set(&organization, l)
		} else if title.Value == "" {
			set(&title, l)
		}
	}
	return title, organization
}

// ofDomain reports whether a name is that of the sender's domain.
func (f *finder) ofDomain(name string) bool {
	label, _, _ := strings.Cut(f.domain, ".")
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, strings.ToLower(s))
	}
	a, b := plain(name), plain(label)
	return a != "" && b != "" && (strings.Contains(a, b) || strings.Contains(b, a))
}
