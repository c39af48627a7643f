package limits

import (
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
)

// Tenant is what holds for a whole tenant.
type Tenant struct {
	// Timezone is an IANA name. Calendar buckets without a zone of their own
	// begin anew at its midnight.
	Timezone string `json:"timezone"`
	// PhoneRegion is the country, in two letters, whose phone numbers are
	// written without a country code; empty for none.
	PhoneRegion string `json:"phone_region"`
	// PlusAddressing says that a+anything@b is the same recipient as a@b.
	PlusAddressing bool `json:"plus_addressing"`
	// SessionPending is how many envelopes of one session may wait for a
	// decision at a time; 0 is any number, and nil DefaultSessionPending.
	SessionPending *int `json:"session_pending_max,omitempty"`
	// SessionMinute is how many envelopes one session may propose in a minute
	// that begins with the first; 0 is any number, and nil
	// DefaultSessionMinute.
	SessionMinute *int `json:"session_minute_max,omitempty"`
}

// What a session may propose where nobody set anything.
const (
	DefaultSessionPending = 10
	DefaultSessionMinute  = 60
)

// maxSession bounds the limits of a session.
const maxSession = 1_000_000

// Validate checks a tenant's settings. The error is an *envelope.InvalidError.
func (t Tenant) Validate() error {
	var p check.Problems
	p.Zone("/timezone", t.Timezone)
	if (contact.Options{Region: t.PhoneRegion}).Check() != nil {
		p.Add("/phone_region", envelope.RuleEnum, "must be a country's two capital letters (ISO 3166-1), such as DE; leave it empty if all numbers are written with their country code")
	}
	t = t.settled()
	p.Within("/session_pending_max", *t.SessionPending, 0, maxSession)
	p.Within("/session_minute_max", *t.SessionMinute, 0, maxSession)
	return p.Err()
}

// settled is the settings with what was left out as it then is.
func (t Tenant) settled() Tenant {
	if t.SessionPending == nil {
		t.SessionPending = new(DefaultSessionPending)
	}
	if t.SessionMinute == nil {
		t.SessionMinute = new(DefaultSessionMinute)
	}
	return t
}

// Session is how much one session of an agent may propose. The zero Session
// lets it propose anything.
type Session struct {
	// Pending bounds what waits for a decision at a time, Minute what is
	// proposed in a minute; 0 is any number.
	Pending, Minute int
}

// contacts is how the tenant's recipients are read.
func (t Tenant) ContactOptions() contact.Options {
	return contact.Options{Region: t.PhoneRegion, PlusAddressing: t.PlusAddressing}
}
