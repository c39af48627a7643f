package limits

import (
	"cmp"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/document"
)

// Tenant holds the settings of a whole tenant.
type Tenant wire.Settings

// Default limits of a session.
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

// settled returns the settings with defaults filled in.
func (t Tenant) settled() Tenant {
	t.SessionPending = cmp.Or(t.SessionPending, new(DefaultSessionPending))
	t.SessionMinute = cmp.Or(t.SessionMinute, new(DefaultSessionMinute))
	return t
}

// Session holds the limits of one session of an agent. The zero Session has no
// limits.
type Session struct {
	// Pending bounds the actions that wait for a decision, Minute the proposals
	// per minute; 0 means unlimited.
	Pending, Minute int
}

// ContactOptions returns the options for parsing the tenant's recipients.
func (t Tenant) ContactOptions() contact.Options {
	return contact.Options{Region: t.PhoneRegion, PlusAddressing: t.PlusAddressing}
}

// Document holds the settings of a tenant that belong in a file: not the
// do-not-contact list, which is long and private, and not pauses, which are
// temporary. Apply leaves a nil section unchanged and replaces any other.
type Document struct {
	Settings   *Tenant      `json:"settings,omitempty"`
	Buckets    []Bucket     `json:"buckets,omitzero"`
	QuietHours []QuietHours `json:"quiet_hours,omitzero"`
	Employees  []Employee   `json:"employees,omitzero"`
	Tools      []ToolRule   `json:"tools,omitzero"`
}

// Names of the sections of a Document, also in changes.
const (
	sectionBuckets   = "buckets"
	sectionQuiet     = "quiet_hours"
	sectionEmployees = "employees"
	sectionTools     = "tools"
	sectionSettings  = "settings"
)

// Nouns for the entries of a section, in messages and events.
const (
	nounBucket   = "bucket"
	nounQuiet    = "quiet hours of"
	nounEmployee = "employee"
	nounTool     = "tool"
)

// maxEntries bounds a section.
const maxEntries = 100_000

// Validate checks the document as far as possible without a database. The error
// is an *envelope.InvalidError with pointers into the document.
func (d Document) Validate() error {
	var p check.Problems
	if d.Settings != nil {
		_ = p.Below("/settings", d.Settings.Validate()) // it has no other kind of error
	}
	document.Check(&p, sectionBuckets, nounBucket, maxEntries, d.Buckets, Bucket.key, Bucket.Validate)
	document.Check(&p, sectionQuiet, nounQuiet, maxEntries, d.QuietHours, Tenant{}.quietKey, QuietHours.Validate)
	document.Check(&p, sectionEmployees, nounEmployee, maxEntries, d.Employees, Employee.key, Employee.Validate)
	document.Check(&p, sectionTools, nounTool, maxEntries, d.Tools, ToolRule.key, ToolRule.Validate)
	return p.Err()
}

// Duration is a length of time in limits.
type Duration = envelope.Duration

const day = 24 * time.Hour

// durationOf converts stored seconds to a Duration.
func durationOf(seconds float64) Duration {
	return Duration(time.Duration(seconds*float64(time.Second) + 0.5).Round(time.Microsecond))
}
