package approval

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Scope is whose further envelopes an Always is for.
type Scope string

// The scopes.
const (
	// ScopeSession is the session of the envelope that was approved.
	ScopeSession Scope = "session"
	// ScopeEmployee is its employee.
	ScopeEmployee Scope = "employee"
	// ScopeAutomation is its automation.
	ScopeAutomation Scope = "automation"
	// ScopeTenant is everybody.
	ScopeTenant Scope = "tenant"
)

// Always lets further envelopes for the same tool through without a person, by
// a grant that is made in the transaction of the approval.
type Always struct {
	// For is how long; zero is as long as a grant holds unless set otherwise.
	For time.Duration
	// Scope is whose; empty is ScopeSession.
	Scope Scope
	// Pins are JSON Pointers into the arguments of what must be the same in
	// further envelopes. The empty pointer is the arguments as a whole.
	Pins []string
}

// always makes the grant of an approval.
func (s *decisionTx) always(ctx context.Context, m *item, a Always, note string) (uuid.UUID, error) {
	if m.needed > 1 {
		return uuid.Nil, fault.New(fault.Conflict, "what needs %d people cannot be let through beforehand by one", m.needed)
	}
	if err := m.checkDefinition(); err != nil {
		return uuid.Nil, err
	}
	g := settings.Grant{
		Tool: m.tool, Digest: m.Tool.Binding, For: a.For, Reason: note, By: s.by.actor(), Person: s.by.person(), From: m.action,
	}
	if err := a.scope(&g, m); err != nil {
		return uuid.Nil, err
	}
	pins, err := policy.PinsOf(m.Args, a.Pins...)
	if err != nil {
		return uuid.Nil, err
	}
	if g.Pins = pins; g.Wide() && !s.by.PolicyWrite {
		return uuid.Nil, fault.Coded(wire.CodeLoosens, fault.Denied, "a grant that is not for one session, or pins no argument, needs the right to change policy (policy:write); pin what must be the same, such as /to, or ask an administrator")
	}
	id, err := settings.PutGrant(ctx, s.tx, s.by.Tenant, g)
	if err != nil {
		return uuid.Nil, err
	}
	return id, audit.Write(ctx, s.tx, audit.Event{Tenant: s.by.Tenant, Kind: audit.Configured, Actor: s.by.actor(), Items: []audit.Item{{
		Subject: "grant " + id.String() + " of " + m.tool.String() + " made", Note: note,
		Detail: map[string]any{"from_action": m.action, "scope": a.Scope, "pins": a.Pins, "for": cmp.Or(a.For, settings.DefaultGrant).String()},
	}}})
}

// scope narrows a grant to whose it is.
func (a *Always) scope(g *settings.Grant, m *item) error {
	none := func(what string) error {
		return fault.New(fault.Invalid, "the action has no %s that further ones could be let through for", what)
	}
	if a.Scope == "" {
		a.Scope = ScopeSession
	}
	switch a.Scope {
	case ScopeSession:
		if g.Session = m.Session; g.Session == "" {
			return none("session")
		}
	case ScopeEmployee:
		if g.Employee = m.Employee; g.Employee == (envelope.EmployeeID{}) {
			return none("employee")
		}
	case ScopeAutomation:
		if g.Automation = m.Automation; g.Automation == "" {
			return none("automation")
		}
	case ScopeTenant:
	default:
		return fault.New(fault.Invalid, "a scope is session, employee, automation or tenant")
	}
	return nil
}
