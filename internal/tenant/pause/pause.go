// Package pause owns pauses and kills: what operators stopped, in which scope,
// since when and why. It stores them with their events. It does not hold back or
// cancel anything: the claim and the sweeps do.
package pause

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Scope is how much a pause stops.
type Scope string

// The scopes of a pause.
const (
	// Everything stops every tenant. Only whoever runs the fleet sets it.
	Everything Scope = "everything"
	Tenant     Scope = "tenant"
	Employee   Scope = "employee"
	Source     Scope = "source"
	Bucket     Scope = "bucket"
	Tool       Scope = "tool"
)

// Valid reports whether s is one of the constants.
func (s Scope) Valid() bool {
	return slices.Contains([]Scope{Everything, Tenant, Employee, Source, Bucket, Tool}, s)
}

// ID identifies a pause. It is a UUIDv7.
type ID uuid.UUID

// String returns the 36 characters of the usual form, in lower case.
func (id ID) String() string { return uuid.UUID(id).String() }

// MarshalText returns the same as String and never an error.
func (id ID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// UnmarshalText reads what MarshalText writes.
func (id *ID) UnmarshalText(text []byte) error { return (*uuid.UUID)(id).UnmarshalText(text) }

// Pause is an active or a lifted pause. While it is active nothing that it covers
// is sent.
type Pause struct {
	ID    ID    `json:"pause_id"`
	Scope Scope `json:"scope"`
	// Subject is the employee's id, the source's id, the bucket's name, or
	// source:tool; empty for the tenant and for everything.
	Subject string `json:"subject,omitzero"`
	// Kill reports whether pending actions are ended too.
	Kill bool `json:"kill"`
	// Reason and By are those of the pause or, if it became one, of the kill.
	Reason string         `json:"reason"`
	By     envelope.Actor `json:"by"`
	At     time.Time      `json:"at"`
	// KilledAt is the time up to which proposed actions are ended, Cancelled how
	// many have been so far, and SweptAt when the last was.
	KilledAt  *time.Time `json:"killed_at"`
	Cancelled int        `json:"cancelled"`
	SweptAt   *time.Time `json:"swept_at"`
	// LiftedAt is nil while the pause is active. WokenAt is when the last action
	// that it held was scheduled again.
	LiftedAt *time.Time     `json:"lifted_at"`
	LiftedBy envelope.Actor `json:"lifted_by,omitzero"`
	WokenAt  *time.Time     `json:"woken_at"`
}

// Target is what a pause is of.
type Target struct {
	Scope   Scope  `json:"scope"`
	Subject string `json:"subject,omitzero"`
}

// String names a target in a few words: tenant, bucket email.daily.
func (t Target) String() string { return strings.TrimSuffix(string(t.Scope)+" "+t.Subject, " ") }

// Validate checks a target. The error is an *envelope.InvalidError.
func (t Target) Validate() error {
	var p check.Problems
	switch t.Scope {
	case Everything, Tenant:
		if t.Subject != "" {
			p.Add("/subject", envelope.RuleUnknownField, "must be left out: it is of the whole %s", map[bool]string{true: "tenant", false: "fleet"}[t.Scope == Tenant])
		}
	case Employee:
		if new(envelope.EmployeeID).UnmarshalText([]byte(t.Subject)) != nil {
			p.Add("/subject", envelope.RuleFormat, "must be the UUID of an employee")
		}
	case Source, Bucket:
		if !check.Slug(t.Subject) {
			p.Add("/subject", envelope.RulePattern, "must be the id of a source or the name of a bucket, as scope says")
		}
	case Tool:
		if _, err := policy.ParseKey(t.Subject); err != nil {
			p.Add("/subject", envelope.RuleFormat, "must be source:tool, such as mail:send_email")
		}
	default:
		p.Add("/scope", envelope.RuleEnum, "must be tenant, employee, source, bucket or tool")
	}
	return p.Err()
}

// settled is the target as it is stored.
func (t Target) settled() Target {
	if t.Scope == Employee {
		t.Subject = strings.ToLower(t.Subject)
	}
	return t
}

// checkReason checks why something is paused or resumed.
func checkReason(p *check.Problems, reason string) {
	if strings.TrimSpace(reason) == "" {
		p.Add("/reason", envelope.RuleRequired, "must say why, for whoever finds it paused")
	}
	p.Text("/reason", reason)
}
