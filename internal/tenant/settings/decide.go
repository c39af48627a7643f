package settings

import (
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Proposal is what policy reads of a proposed action, beside its tool.
type Proposal struct {
	Automation string
	// AskedApproval says that the agent wants a person to look.
	AskedApproval bool
	// Employee is the agent's identity; the zero value is nobody.
	Employee envelope.EmployeeID
	// Risk is the higher of what the agent said and the tool's own.
	Risk envelope.Risk
	// Listed says that it addresses somebody on the do-not-contact list.
	Listed bool
	// Session is the agent's; empty for none.
	Session string
	// Args are what the tool is called with.
	Args json.RawMessage
	// Tools are the patterns of the tools that the proposer's token is for;
	// nil is all.
	Tools []string
	// AnyArgs says that nobody knows yet what the tool will be called with, as
	// where tools are listed: rules about arguments and grants are not asked.
	// Without it, no Args are no arguments.
	AnyArgs bool
	// Now is the database's clock, which says what has expired. If it is zero,
	// no grant holds, and every session's mode does.
	Now time.Time
}

// Decide asks policy about a tool. An automation without rules of its own
// adds nothing; nor does an employee who is not registered, unless the tenant
// has an entry for those.
func (s *Settings) Decide(t *catalog.Tool, p Proposal) policy.Decision {
	in := policy.Input{
		Key:           t.Key,
		Automation:    s.rules(p.Automation),
		Organisation:  s.organisation,
		Risk:          t.Risk,
		AskedApproval: p.AskedApproval,
		Drifted:       t.Drifted(),
		Listed:        p.Listed,
		Everybody:     s.layers.everybody,
		Tools:         p.Tools,
		Quarantined:   t.Quarantined,
	}
	// A message of a subscription is Countersign's own words: no employee's,
	// and no agent chose its arguments.
	_, delivery := Delivery(p.Automation)
	if employee, known := s.Limits.Employee(p.Employee); known && !delivery {
		in.Trust, in.EnvelopeRisk = policy.Trust(employee.Trust), p.Risk
		in.MissingScopes = policy.MissingScopes(employee.Scopes, t.Scopes)
	}
	if len(s.layers.personal) > 0 {
		in.Personal = s.layers.personal[p.Employee]
	}
	if session, ok := s.layers.sessions[p.Session]; ok {
		in.Session = session.at(p.Now)
	}
	if !p.AnyArgs && !delivery {
		s.decideArgs(t, &p, &in)
	}
	return s.decider.Decide(in)
}

// decideArgs asks what depends on the arguments, where the tenant has any of
// it.
func (s *Settings) decideArgs(t *catalog.Tool, p *Proposal, in *policy.Input) {
	if !s.layers.arguments.Empty() {
		in.Matches = s.layers.arguments.Match(p.Automation, t.Key, func() *policy.Subject { return s.subject(t, p) })
	}
	for _, g := range s.layers.grants[t.Key] {
		if g.covers(t, p) {
			in.Grant = policy.GrantFound{ID: g.ID.String(), Version: versionText(g.Version)}
			in.Quorum = s.Review(t, p.Risk).Approvals
			return
		}
	}
}

// subject is what rules about arguments see of a proposal.
func (s *Settings) subject(t *catalog.Tool, p *Proposal) *policy.Subject {
	subject := &policy.Subject{
		Args: p.Args, Key: t.Key, Risk: t.Risk, Effect: t.Effect, EnvelopeRisk: p.Risk, Automation: p.Automation, Session: p.Session,
		Scopes: []string{},
	}
	if p.Employee != (envelope.EmployeeID{}) {
		subject.Employee = p.Employee.String()
	}
	if e, ok := s.Limits.Employee(p.Employee); ok {
		subject.Known = p.Employee != (envelope.EmployeeID{}) && e.ID == p.Employee
		subject.Trust = policy.Trust(e.Trust)
		subject.Scopes = append(subject.Scopes, e.Scopes...)
	}
	return subject
}
