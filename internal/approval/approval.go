// Package approval owns decisions by people: who may grant or deny an
// envelope that waits, and what a decision, or none in time, leads to. Of
// decisions that race exactly one wins. It refuses to execute what it grants;
// granting puts the envelope on the schedule.
package approval

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/catalog"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/outbox"
	"github.com/countersign-dev/countersign/internal/policy"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// Decider is who decides. Agents are never made one.
type Decider struct {
	Tenant envelope.TenantID
	Token  uuid.UUID
	Name   string
}

// Config says how a Desk works.
type Config struct {
	// Wake is called after a commit that put something on the schedule.
	Wake func()
}

// Desk is where decisions are taken. It is safe for concurrent use.
type Desk struct {
	db      postgres.Begins
	catalog *catalog.Cache
	cfg     Config
}

// New returns a Desk.
func New(db postgres.Begins, cache *catalog.Cache, cfg Config) *Desk {
	if cfg.Wake == nil {
		cfg.Wake = func() {}
	}
	return &Desk{db: db, catalog: cache, cfg: cfg}
}

// Grant lets an envelope run that waits for a decision. Policy is asked
// again: if it denies the tool by now, or the tool is no longer the one that
// was proposed, that is fault.Conflict and nothing changes. fault.Gone says
// that the time to decide is over, fault.Denied that it is the decider's own
// proposal.
func (d *Desk) Grant(ctx context.Context, by Decider, action envelope.ActionID, note string) error {
	err := postgres.InTx(ctx, d.db, postgres.API(by.Tenant), func(tx pgx.Tx) error {
		if err := d.stillAllowed(ctx, tx, by.Tenant, action); err != nil {
			return err
		}
		if err := decide(ctx, tx, by, action, envelope.DecisionGrant, note); err != nil {
			return err
		}
		return outbox.Enqueue(ctx, tx, by.Tenant, action)
	})
	if err == nil {
		d.cfg.Wake()
	}
	return err
}

// Deny refuses an envelope that waits for a decision. The note reaches the
// agent.
func (d *Desk) Deny(ctx context.Context, by Decider, action envelope.ActionID, note string) error {
	return postgres.InTx(ctx, d.db, postgres.API(by.Tenant), func(tx pgx.Tx) error {
		return decide(ctx, tx, by, action, envelope.DecisionDeny, note)
	})
}

func (d *Desk) stillAllowed(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID) error {
	views, err := outbox.Get(ctx, tx, tenant, action)
	if err != nil || len(views) == 0 {
		return err // decide says that there is none
	}
	snap, err := d.catalog.Current(ctx, tx, tenant)
	if err != nil {
		return err
	}
	e := &views[0].Envelope
	tool, ok := snap.Tool(policy.Key{Source: e.Tool.Source, Action: e.Tool.Name})
	if !ok {
		return fault.New(fault.Conflict, "its source no longer has the tool %s", e.Tool.Name)
	}
	if string(tool.Digest) != string(views[0].ToolDigest) {
		return fault.New(fault.Conflict, "the tool's definition changed after this was proposed; it must be proposed again")
	}
	if snap.Decide(tool, catalog.Proposed{Automation: e.AutomationID, AskedApproval: true, Employee: e.EmployeeID, Risk: e.Risk}).Mode == envelope.ModeDeny {
		return fault.New(fault.Conflict, "policy denies this tool by now")
	}
	return nil
}

// Expire ends the wait of envelopes that nobody decided in time, at most so
// many, across tenants. It returns how many.
func Expire(ctx context.Context, db postgres.Begins, most int) (int, error) {
	n := 0
	err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) error {
		var err error
		n, err = expire(ctx, tx, most)
		return err
	})
	return n, err
}

func eventOf(tenant envelope.TenantID, actor string, approval envelope.Approval, status envelope.Status, actions ...envelope.ActionID) audit.Event {
	e := audit.Event{Tenant: tenant, Kind: audit.Decided, Actor: actor}
	for _, a := range actions {
		e.Items = append(e.Items, audit.Item{Action: a, Status: status, Approval: approval})
	}
	return e
}
