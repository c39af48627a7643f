// Package pause owns pauses and kills: what operators stopped, in which scope,
// since when and why. It stores them with their events. It does not hold back or
// cancel anything: the claim and the sweeps do.
package pause

import (
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// The scopes of a pause: how much it stops.
const (
	// Everything stops every tenant. Only whoever runs the fleet sets it.
	Everything = "everything"
	Tenant     = "tenant"
	Employee   = "employee"
	Source     = "source"
	Bucket     = "bucket"
	Tool       = "tool"
)

// Order is what somebody pauses or kills, and why.
type Order struct {
	Target
	Kill   bool
	Reason string
	By     envelope.Actor
	// NeedsPolicyWrite is set for somebody who may loosen policy, so that nobody
	// else lifts the pause.
	NeedsPolicyWrite bool
}

// Target is what a pause is of.
type Target wire.Target

// String names a target in a few words: tenant, bucket email.daily.
func (t Target) String() string { return strings.TrimSuffix(t.Scope+" "+t.Subject, " ") }

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
