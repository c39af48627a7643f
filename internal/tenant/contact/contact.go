// Package contact owns whom a call addresses: where a tool's arguments name
// recipients, the normal form of mail addresses, domains, telephone numbers and
// handles, and the tenant's do-not-contact list. It does not decide what follows
// from a match.
package contact

import (
	"net/mail"
	"strings"
	"time"
	"unicode"

	"github.com/nyaruka/phonenumbers"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
)

// MaxLength is the length in bytes that a contact may have.
const MaxLength = 320

// Kind is what a contact is.
type Kind string

// The kinds of contacts.
const (
	// Email is one mail address.
	Email Kind = "email"
	// Domain is a domain and all its subdomains, and thus every mail
	// address in them.
	Domain Kind = "domain"
	// Phone is a telephone number.
	Phone Kind = "phone"
	// Handle is any other name: of a person, a channel, an account.
	Handle Kind = "handle"
)

// Contact is somebody who can be reached, in normal form: two texts that mean
// the same give equal contacts.
//
//	email    ana@example.org, the domain in ASCII (punycode), all without
//	         regard to case, though a server may think otherwise of what is
//	         left of the @; dots stay, as they count with most
//	domain   example.org, in ASCII
//	phone    +4930123456, E.164
//	handle   ana, without the @ or # before it
type Contact struct {
	// Kind says how to read Value.
	Kind Kind `json:"kind"`
	// Value is the normal form. It is payload: keep it out of logs.
	Value string `json:"value"`
}

// Options says how contacts are read. The same options belong on both
// sides: to a list's entries and to recipients.
type Options struct {
	// Region is an ISO 3166 code such as DE. With it, telephone numbers may be
	// written as they are dialled there.
	Region string `json:"region,omitempty"`
	// PlusAddressing takes ana+shop@example.org for ana@example.org.
	PlusAddressing bool `json:"plus_addressing,omitempty"`
}

// Check returns an *envelope.InvalidError if there is no such region.
func (o Options) Check() error {
	if o.Region != "" && !phonenumbers.GetSupportedRegions()[o.Region] {
		return check.Invalid("/region", envelope.RuleEnum, "must be a region's ISO 3166 code in two capital letters, such as DE")
	}
	return nil
}

// Parse reads an entry of a do-not-contact list and infers its kind: a text with
// an @ inside is an email, one that begins with @ or # a handle, digits are a
// phone, a name with dots is a domain, and any other single word a handle. An
// entry that cannot be read, or is none of these, is fault.Invalid; the message
// never repeats the entry.
func Parse(text string, o Options) (Contact, error) {
	kind, err := guessKind(text)
	if err != nil {
		return Contact{}, err
	}
	return ParseAs(kind, text, o)
}

func guessKind(text string) (Kind, error) {
	text = strings.TrimSpace(clean(text))
	scheme, _, _ := strings.Cut(text, ":")
	switch strings.ToLower(scheme) {
	case "mailto":
		return Email, nil
	case "tel", "sms", "whatsapp":
		return Phone, nil
	}
	_, rest, address := strings.Cut(text, "@")
	switch {
	case strings.HasPrefix(text, "@") && !strings.Contains(rest, "@") && domainLike(foldDomain(rest), 2):
		return "", fault.New(fault.Invalid, "contact may be a domain or a handle; give its kind, or write the domain without the @")
	case strings.HasPrefix(text, "@"), strings.HasPrefix(text, "#"):
		return Handle, nil
	case address:
		return Email, nil
	case phoneLike(text):
		return Phone, nil
	case domainLike(foldDomain(strings.TrimPrefix(text, "*.")), 2):
		return Domain, nil
	case !strings.ContainsFunc(text, notHandle):
		return Handle, nil
	}
	return "", fault.New(fault.Invalid, "contact is no mail address, no domain, no phone number and no single word that could be a handle; write ana@example.org, example.org, +4930123456 or @ana, or give its kind")
}

// notHandle reports whether a rune is none of those that a handle without a
// sign before it may have.
func notHandle(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("._-", r)
}

// ParseAs reads an entry of a do-not-contact list of a known kind. An
// entry that cannot be read is fault.Invalid; its text never repeats the
// entry.
func ParseAs(kind Kind, text string, o Options) (Contact, error) {
	text = strings.TrimSpace(clean(text))
	value, problem := "", ""
	switch kind {
	case Email:
		value, problem = parseEmail(text, o)
	case Domain:
		value = foldDomain(strings.TrimLeft(text, "@*."))
		if !domainLike(value, 2) {
			problem = "contact must be a domain of two labels or more, such as example.org"
		}
	case Phone:
		value, problem = parsePhone(text, o)
	case Handle:
		value = foldHandle(text)
		if value == "" {
			problem = "contact must be a name, such as @ana or #general"
		}
	default:
		problem = "contact's kind must be one of email, domain, phone, handle"
	}
	if problem == "" && len(value) > MaxLength {
		problem = "contact must be at most 320 bytes long"
	}
	if problem != "" {
		return Contact{}, fault.New(fault.Invalid, "%s", problem)
	}
	return Contact{Kind: kind, Value: value}, nil
}

// foldHandle folds a name and takes off the signs before it.
func foldHandle(text string) string {
	return strings.TrimLeft(fold(text), "@# ")
}

// parseEmail reads one mail address from a cleaned text, or says what is
// wrong.
func parseEmail(text string, o Options) (value, problem string) {
	const wanted = "contact must be a mail address such as ana@example.org"
	if scheme, rest, found := strings.Cut(text, ":"); found && strings.EqualFold(scheme, "mailto") {
		text = strings.TrimSpace(clean(unpercent(rest)))
		text, _, _ = strings.Cut(text, "?")
	}
	if list, err := mail.ParseAddressList(text); err == nil {
		if len(list) != 1 {
			return "", "contact must be one mail address; write an entry for each"
		}
		value, ok := splitEmail(list[0].Address, o)
		if !ok {
			return "", wanted
		}
		return value, ""
	}
	// Addresses beyond the grammar that exist: dots in a row or at the end.
	if open := strings.LastIndexByte(text, '<'); open >= 0 && strings.HasSuffix(text, ">") {
		text = text[open+1 : len(text)-1]
	}
	at := strings.LastIndexByte(text, '@')
	if at < 1 || strings.ContainsFunc(text[:at], notAtom) {
		return "", wanted
	}
	value, ok := splitEmail(text, o)
	if !ok {
		return "", wanted
	}
	return value, ""
}

// splitEmail returns the normal form of an address whose quotes have been
// taken off.
func splitEmail(address string, o Options) (string, bool) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return "", false
	}
	return foldEmail(address[:at], address[at+1:], o)
}

// foldEmail returns the normal form of an address. A local part that would not
// be read as it is gets quotes.
func foldEmail(local, domain string, o Options) (string, bool) {
	local, domain = fold(local), foldDomain(domain)
	if o.PlusAddressing {
		if base, _, found := strings.Cut(local, "+"); found && strings.TrimSpace(base) != "" {
			local = strings.TrimSpace(base)
		}
	}
	if local == "" || !domainLike(domain, 1) {
		return "", false
	}
	if strings.ContainsFunc(local, notAtom) {
		local = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(local) + `"`
	}
	return local + "@" + domain, true
}

// notAtom reports whether a rune may stand in a local part only in quotes.
func notAtom(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`"(),:;<>@[\]`, r)
}

// Match is an entry of the do-not-contact list that a recipient matched. The
// zero value is no match.
type Match struct {
	// Kind is what kind of entry it is.
	Kind Kind
	// Reason is why an operator put it there; it may be empty.
	Reason string
}

// Ask is the recipients of one action, to be looked up in its tenant's list.
type Ask struct {
	Tenant   envelope.TenantID
	Contacts []Contact
}

// Found is an entry that a recipient of an Ask equals or belongs to.
type Found struct {
	// Ask is the index of the Ask.
	Ask int
	Match
}

// PublicReason returns the operator's reason on one line, or "" if it looks as
// though it named the recipient, or is too long to tell.
func (m Match) PublicReason() string {
	reason := m.Reason
	const longest = 300
	digits, row := 0, 0
	for _, r := range fold(reason) {
		row++
		if unicode.IsDigit(r) {
			digits++
		} else {
			row = 0
		}
		if r == '@' || row > len("2006") || digits > len("20060102") {
			return "" // a date may pass
		}
	}
	if len(reason) > longest {
		return ""
	}
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(reason, ""), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
}

// MaxEntries is how many entries one call stores or deletes.
const MaxEntries = 1000

// Entry is a contact that must not be written to.
type Entry struct {
	// Kind is how the value is to be read. Empty has it guessed.
	Kind Kind `json:"kind,omitzero"`
	// Value is an address, a domain with all below it, a phone number or a
	// handle. It is stored, and read back, in normal form.
	Value string `json:"value"`
	// Reason says why, Source where it comes from. Both may be empty; the
	// reason is shown for actions that are skipped for it.
	Reason string `json:"reason,omitzero"`
	Source string `json:"source,omitzero"`
	// ExpiresAt is when the entry stops to count; nil for never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// CreatedAt and CreatedBy are set by the database.
	CreatedAt time.Time      `json:"created_at,omitzero"`
	CreatedBy envelope.Actor `json:"created_by,omitzero"`
}

// Validate checks an entry, read by the tenant's options. The error is an
// *envelope.InvalidError.
func (e Entry) Validate(o Options) error {
	_, err := e.parse(o)
	return err
}

// parse returns the contact of the entry. It keeps what plus-addressing adds,
// so that the entry holds whether or not the tenant has plus-addressing on.
func (e Entry) parse(o Options) (Contact, error) {
	var p check.Problems
	o.PlusAddressing = false
	var c Contact
	var err error
	switch e.Kind {
	case "":
		c, err = Parse(e.Value, o)
	case Email, Domain, Phone, Handle:
		c, err = ParseAs(e.Kind, e.Value, o)
	default:
		p.Add("/kind", envelope.RuleEnum, "must be email, domain, phone or handle; leave it out to have it guessed")
	}
	switch {
	case e.Value == "":
		p.Add("/value", envelope.RuleRequired, "must be an address, a domain, a phone number or a handle")
	case err != nil:
		p.Add("/value", envelope.RuleFormat, "%s", err)
	}
	p.Text("/value", e.Value)
	p.Text("/reason", e.Reason)
	p.Text("/source", e.Source)
	if e.ExpiresAt != nil && (e.ExpiresAt.Year() < 1970 || e.ExpiresAt.Year() > 2999) {
		p.Add("/expires_at", envelope.RuleFormat, "must be between the years 1970 and 2999")
	}
	return c, p.Err()
}

// withoutPlus returns a contact's value without what plus-addressing adds.
func withoutPlus(c Contact) string {
	if c.Kind != Email {
		return c.Value
	}
	plain, err := ParseAs(c.Kind, c.Value, Options{PlusAddressing: true})
	if err != nil {
		return c.Value
	}
	return plain.Value
}
