// Package contact owns the recipients of calls: their places in a tool's
// arguments, the normal form of mail addresses, domains, telephone numbers and
// handles, and the tenant's do-not-contact list. It does not decide about the
// consequences of a match.
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

// MaxLength is the maximum length of a contact, in bytes.
const MaxLength = 320

// Kind is the kind of a contact.
type Kind string

// The kinds of contacts.
const (
	// Email is a mail address.
	Email Kind = "email"
	// Domain is a domain with all its subdomains and mail addresses.
	Domain Kind = "domain"
	// Phone is a telephone number.
	Phone Kind = "phone"
	// Handle is any other name of a person, a channel or an account.
	Handle Kind = "handle"
)

// Contact is a recipient in normal form: equivalent texts have equal contacts.
//
//	email    ana@example.org, the domain in ASCII (punycode), in lower case,
//	         although a server may distinguish case left of the @; dots are
//	         kept, as most servers distinguish them
//	domain   example.org, in ASCII
//	phone    +4930123456, E.164
//	handle   ana, without the @ or # before it
type Contact struct {
	// Kind is the kind of Value.
	Kind Kind `json:"kind"`
	// Value is the normal form. It is payload and must not be logged.
	Value string `json:"value"`
}

// Options configure the parsing of contacts. The entries of a list and
// recipients must be parsed with the same options.
type Options struct {
	// Region is an ISO 3166 code such as DE. With it, telephone numbers may be
	// in that region's national format.
	Region string `json:"region,omitempty"`
	// PlusAddressing treats ana+shop@example.org as ana@example.org.
	PlusAddressing bool `json:"plus_addressing,omitempty"`
}

// Check returns an *envelope.InvalidError if the region is unknown.
func (o Options) Check() error {
	if o.Region != "" && !phonenumbers.GetSupportedRegions()[o.Region] {
		return check.Invalid("/region", envelope.RuleEnum, "must be a region's ISO 3166 code in two capital letters, such as DE")
	}
	return nil
}

// Parse parses an entry of a do-not-contact list and infers its kind: a text
// with an @ inside is an email, one that begins with @ or # a handle, digits are
// a phone, a name with dots is a domain, and any other single word a handle. The
// error is fault.Invalid and does not repeat the entry.
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
	return "", fault.New(fault.Invalid, "contact must be a mail address, a domain, a phone number or a handle; write ana@example.org, example.org, +4930123456 or @ana, or give its kind")
}

// notHandle reports whether a rune is invalid in a handle without a sign before
// it.
func notHandle(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune("._-", r)
}

// ParseAs parses an entry of a do-not-contact list of a known kind. The error is
// fault.Invalid and does not repeat the entry.
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

// foldHandle folds a name and removes the signs before it.
func foldHandle(text string) string {
	return strings.TrimLeft(fold(text), "@# ")
}

// parseEmail parses one mail address in a cleaned text. problem describes an
// error.
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
	// Existing addresses beyond the grammar: consecutive dots or a dot at the
	// end.
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

// splitEmail returns the normal form of an unquoted address.
func splitEmail(address string, o Options) (string, bool) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return "", false
	}
	return foldEmail(address[:at], address[at+1:], o)
}

// foldEmail returns the normal form of an address. A local part is quoted if it
// would not be parsed otherwise.
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

// notAtom reports whether a rune is valid in a local part only in quotes.
func notAtom(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`"(),:;<>@[\]`, r)
}

// Match is a do-not-contact entry that matches a recipient. The zero value means
// no match.
type Match struct {
	// Kind is the kind of the entry.
	Kind Kind
	// Reason is the operator's reason for the entry; it may be empty.
	Reason string
}

// Ask is a query for the recipients of one action in its tenant's list.
type Ask struct {
	Tenant   envelope.TenantID
	Contacts []Contact
}

// Found is an entry that matches a recipient of an Ask.
type Found struct {
	// Ask is the index of the Ask.
	Ask int
	Match
}

// PublicReason returns the operator's reason on one line, or "" if it seems to
// contain the recipient or is too long to check.
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

// MaxEntries is the maximum number of entries that one call stores or deletes.
const MaxEntries = 1000

// Entry is an entry of a do-not-contact list.
type Entry struct {
	// Kind is the kind of the value; empty means that it is inferred.
	Kind Kind `json:"kind,omitzero"`
	// Value is an address, a domain (with its subdomains), a phone number or a
	// handle. It is stored and returned in normal form.
	Value string `json:"value"`
	// Reason is the reason for the entry, Source its origin. Both may be empty.
	// The reason is shown for actions that are skipped because of the entry.
	Reason string `json:"reason,omitzero"`
	Source string `json:"source,omitzero"`
	// ExpiresAt is the time at which the entry expires; nil if never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// CreatedAt and CreatedBy are set by the database.
	CreatedAt time.Time      `json:"created_at,omitzero"`
	CreatedBy envelope.Actor `json:"created_by,omitzero"`
}

// Validate checks an entry with the tenant's options. The error is an
// *envelope.InvalidError.
func (e Entry) Validate(o Options) error {
	_, err := e.parse(o)
	return err
}

// parse returns the contact of the entry. It keeps the suffix of
// plus-addressing, so that the entry is valid whether or not the tenant uses
// plus-addressing.
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

// withoutPlus returns a contact's value without the suffix of plus-addressing.
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
