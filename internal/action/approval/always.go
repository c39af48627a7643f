package approval

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Scope is the set of further envelopes that an Always covers.
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
	// For is the lifetime of the grant; zero means the default of grants.
	For time.Duration
	// Scope limits the grant; empty means ScopeSession.
	Scope Scope
	// Loose are JSON Pointers to the arguments that may differ in further
	// envelopes, or be absent; all others are as in this one. The empty pointer is
	// all of them.
	Loose []string
	// Pins, if not nil, replaces Loose: it lists the pointers to the arguments
	// that must be equal, and all others may differ.
	Pins []string
}

// PreviewAlways returns the grant that Approve would make with a, without making
// it or approving anything. Its errors are those of Approve.
func (d *Service) PreviewAlways(ctx context.Context, by Decider, action envelope.ActionID, ifMatch string, a Always) (settings.Grant, error) {
	var g settings.Grant
	err := d.inTx(ctx, by, func(ctx context.Context, tx pgx.Tx) error {
		s, err := d.open(ctx, tx, by, action)
		if err == nil {
			err = s.decideAll(ctx)
		}
		if err != nil {
			return err
		}
		vote, err := s.countVote(requestedVote{action, ifMatch, (*decisionTx).findSeen})
		if err != nil {
			return err
		}
		g, err = s.alwaysGrant(vote.item, a, "")
		return err
	})
	return g, err
}

// alwaysGrant returns the grant of an approval.
func (s *decisionTx) alwaysGrant(m *item, a Always, note string) (settings.Grant, error) {
	g := settings.Grant{
		Tool: m.tool, Digest: m.toolDigest, For: cmp.Or(a.For, settings.DefaultGrant), Reason: note, By: s.by.actor(), Person: s.by.person(), From: m.action,
	}
	if m.needed > 1 {
		return g, fault.New(fault.Conflict, "an action that needs %d approvals cannot be covered by a grant from one person", m.needed)
	}
	if err := m.checkDefinition(); err != nil {
		return g, err
	}
	g.Digest = m.Tool.Binding
	if err := a.scope(&g, m); err != nil {
		return g, err
	}
	var err error
	if a.Pins != nil {
		if len(a.Loose) > 0 {
			return g, fault.New(fault.Invalid, "pins and loose exclude each other; send loose")
		}
		a.Loose, err = policy.LooseBut(m.Args, a.Pins...)
	}
	if err == nil {
		g.Pins, g.Loose, err = policy.Exactly(m.Args, a.Loose...)
	}
	if err == nil {
		err = g.Check()
	}
	if err == nil && g.Wide() && !s.by.PolicyWrite {
		err = fault.Coded(wire.CodeLoosens, fault.Denied, "a grant for more than one session, or with every argument loose, needs the right to change policy (policy:write); hold an argument, or ask an administrator")
	}
	return g, err
}

// always makes the grant of an approval.
func (s *decisionTx) always(ctx context.Context, m *item, a Always, note string) (uuid.UUID, error) {
	g, err := s.alwaysGrant(m, a, note)
	if err != nil {
		return uuid.Nil, err
	}
	id, err := settings.PutGrant(ctx, s.tx, s.by.Tenant, g)
	if err != nil {
		return uuid.Nil, err
	}
	return id, audit.Write(ctx, s.tx, audit.Event{Tenant: s.by.Tenant, Kind: audit.Configured, Actor: s.by.actor(), Items: []audit.Item{{
		Subject: "grant " + id.String() + " of " + m.tool.String() + " made", Note: note,
		Detail: map[string]any{"from_action": m.action, "scope": cmp.Or(a.Scope, ScopeSession), "loose": g.Loose, "for": g.For.String()},
	}}})
}

// scope narrows a grant to the scope of a.
func (a *Always) scope(g *settings.Grant, m *item) error {
	none := func(what string) error {
		return fault.New(fault.Invalid, "the action has no %s, so a grant cannot cover further calls for it", what)
	}
	a.Scope = cmp.Or(a.Scope, ScopeSession)
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
		return fault.New(fault.Invalid, "scope must be session, employee, automation or tenant")
	}
	return nil
}
