package limits

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/preflight"
)

// MaxEntries is how many entries one call stores or deletes.
const MaxEntries = 1000

// Entry is one whom nobody may write to.
type Entry struct {
	// Kind is how the value is to be read. Empty has it guessed.
	Kind preflight.ContactKind `json:"kind,omitzero"`
	// Value is an address, a domain with all below it, a phone number or a
	// handle. It is stored, and read back, in normal form.
	Value string `json:"value"`
	// Reason says why, Source where it comes from. Both may be empty; the
	// reason is told of envelopes that are skipped for it.
	Reason string `json:"reason,omitzero"`
	Source string `json:"source,omitzero"`
	// ExpiresAt is when the entry stops to count; nil for never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// CreatedAt and CreatedBy are set by the database.
	CreatedAt time.Time `json:"created_at,omitzero"`
	CreatedBy string    `json:"created_by,omitzero"`
}

// Validate checks an entry as the tenant's options read it. The error is an
// *envelope.InvalidError.
func (e Entry) Validate(t Tenant) error {
	_, err := e.contact(t)
	return err
}

// contact reads the entry, or says what is wrong with it. Plus-addressing is
// left alone: what is stored holds whether or not the tenant has it.
func (e Entry) contact(t Tenant) (preflight.Contact, error) {
	var p problems
	opts := t.contacts()
	opts.PlusAddressing = false
	var c preflight.Contact
	var err error
	switch e.Kind {
	case "":
		c, err = preflight.ParseContact(e.Value, opts)
	case preflight.ContactEmail, preflight.ContactDomain, preflight.ContactPhone, preflight.ContactHandle:
		c, err = preflight.ParseContactAs(e.Kind, e.Value, opts)
	default:
		p.add("/kind", envelope.RuleEnum, "must be email, domain, phone or handle; leave it out to have it guessed")
	}
	switch {
	case e.Value == "":
		p.add("/value", envelope.RuleRequired, "must be an address, a domain, a phone number or a handle")
	case err != nil:
		p.add("/value", envelope.RuleFormat, "%s", err)
	}
	p.text("/value", e.Value)
	p.text("/reason", e.Reason)
	p.text("/source", e.Source)
	if e.ExpiresAt != nil && !inTime(*e.ExpiresAt) {
		p.add("/expires_at", envelope.RuleFormat, "must be between the years 1970 and 2999")
	}
	return c, p.err()
}

// inTime says that a time lies where the contract has times.
func inTime(t time.Time) bool { return t.Year() >= 1970 && t.Year() <= 2999 }

// bare is a contact's value without what plus-addressing adds.
func bare(c preflight.Contact) string {
	if c.Kind != preflight.ContactEmail {
		return c.Value
	}
	plain, err := preflight.ParseContactAs(c.Kind, c.Value, preflight.ContactOptions{PlusAddressing: true})
	if err != nil {
		return c.Value
	}
	return plain.Value
}

// Ask is the recipients of one envelope, to be looked for in its tenant's
// list.
type Ask struct {
	Tenant   envelope.TenantID
	Contacts []preflight.Contact
}

// Match is an entry that one of the recipients of an Ask is, or lies below.
type Match struct {
	// Ask is the place of the ask in the batch.
	Ask    int
	Kind   preflight.ContactKind
	Reason string
}
