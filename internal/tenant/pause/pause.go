// Package pause owns pauses and kills: their targets, times and reasons. It
// stores them with their events. It does not hold back or cancel actions: the
// claim and the sweeps do.
package pause

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Scopes of a pause.
const (
	// Everything covers every tenant. Only an administrator of the deployment
	// sets it.
	Everything = "everything"
	Tenant     = "tenant"
	Employee   = "employee"
	Source     = "source"
	Bucket     = "bucket"
	Tool       = "tool"
	// Automation covers the actions of a program: of triage, of triage of one mail
	// account, or of an automation_id.
	Automation = "automation"
)

// Triage is the subject of a pause of all triage.
const Triage = "triage"

// TriageOf returns the subject of a pause of triage of a mail account.
func TriageOf(account string) string { return Triage + "/" + account }

// Order is a request to pause or kill a target.
type Order struct {
	Target
	Kill bool
	// Travelling holds only the actions that no person approved, and keeps triage
	// at level L2. It needs the scope Automation.
	Travelling bool
	Reason     string
	By         envelope.Actor
	// NeedsPolicyWrite is set for an author with the right to loosen policy: the
	// pause can then only be lifted with that right.
	NeedsPolicyWrite bool
}

// Target is the target of a pause.
type Target wire.Target

// String returns a short description of the target: tenant, bucket email.daily.
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
			p.Add("/subject", envelope.RulePattern, "must be the id of a source or the name of a bucket, to match scope")
		}
	case Tool:
		if _, err := policy.ParseKey(t.Subject); err != nil {
			p.Add("/subject", envelope.RuleFormat, "must be source:tool, such as mail:send_email")
		}
	case Automation:
		if !automation(t.Subject) {
			p.Add("/subject", envelope.RuleFormat, "must be triage, triage/account, or an automation_id")
		}
	default:
		p.Add("/scope", envelope.RuleEnum, "must be tenant, employee, source, bucket, tool or automation")
	}
	return p.Err()
}

// automation reports whether a text can name an automation.
func automation(name string) bool {
	const longest = 200 // characters, as in an envelope
	var p check.Problems
	p.Text("", name)
	return p.Err() == nil && strings.TrimSpace(name) != "" && !strings.ContainsFunc(name, unicode.IsControl) && utf8.RuneCountInString(name) <= longest
}

// settled returns the stored form of the target.
func (t Target) settled() Target {
	if t.Scope == Employee {
		t.Subject = strings.ToLower(t.Subject)
	}
	return t
}

// checkReason checks the reason for a pause or its end.
func checkReason(p *check.Problems, reason string) {
	if strings.TrimSpace(reason) == "" {
		p.Add("/reason", envelope.RuleRequired, "is required; give the reason for the pause")
	}
	p.Text("/reason", reason)
}
