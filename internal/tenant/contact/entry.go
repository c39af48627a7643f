package contact

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

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
	CreatedAt time.Time `json:"created_at,omitzero"`
	CreatedBy string    `json:"created_by,omitzero"`
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
