package pause

import (
	"context"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// SetPause pauses what a target names, which must be there. If it is paused
// already, nothing changes, unless a kill is asked for: then the pause becomes
// one, or kills anew what was proposed since.
func Set(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, of Target, kill bool, reason, by string) (Pause, error) {
	var p check.Problems
	checkReason(&p, reason)
	if err := p.Below("", of.Validate()); err != nil {
		return Pause{}, err
	}
	if of.Scope == Everything {
		p.Add("/scope", envelope.RuleEnum, "must be tenant, employee, source, bucket or tool; everything is paused by whoever runs the fleet: countersign pause --everything")
	}
	if err := p.Err(); err != nil {
		return Pause{}, err
	}
	of = of.settled()
	if err := present(ctx, tx, tenant, of); err != nil {
		return Pause{}, err
	}
	return set(ctx, tx, []envelope.TenantID{tenant}, new(uuid.UUID(tenant)), of, kill, reason, by)
}

// PauseAll pauses every tenant, in a transaction of the scope Admin. Otherwise
// it is SetPause. The audit of every tenant tells of it.
func SetEverything(ctx context.Context, tx pgx.Tx, kill bool, reason, by string) (Pause, error) {
	var p check.Problems
	checkReason(&p, reason)
	if err := p.Err(); err != nil {
		return Pause{}, err
	}
	tenants, err := everyTenant(ctx, tx)
	if err != nil {
		return Pause{}, err
	}
	return set(ctx, tx, tenants, nil, Target{Scope: Everything}, kill, reason, by)
}

func set(ctx context.Context, tx pgx.Tx, told []envelope.TenantID, tenant *uuid.UUID, of Target, kill bool, reason, by string) (Pause, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Pause{}, err
	}
	row, err := dbsqlc.New().PauseSet(ctx, tx, &dbsqlc.PauseSetParams{
		PauseID: id, TenantID: tenant, Scope: string(of.Scope), Subject: of.Subject, Kill: kill, Reason: reason, PausedBy: by,
	})
	err = violations.Fault(err)
	if err != nil {
		return Pause{}, err
	}
	made := pauseFromRow(dbsqlc.PauseListRow(row))
	if made.ID != ID(id) && !kill {
		return made, nil // it was paused already
	}
	what := "paused"
	if kill {
		what = "killed"
	}
	return made, notePause(ctx, tx, told, by, audit.Item{Subject: of.String() + " " + what, Note: reason})
}

// Lift ends a pause or a kill. What it held is put on the schedule again; what
// a kill ended stays so. If nothing is paused there, that is fault.NotFound.
func Lift(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, of Target, reason, by string) error {
	var p check.Problems
	p.Text("/reason", reason)
	if err := p.Below("", of.Validate()); err != nil {
		return err
	}
	if err := p.Err(); err != nil {
		return err
	}
	if of.Scope == Everything {
		return fault.New(fault.Denied, "whoever runs the fleet lifts the pause of everything: countersign resume --everything")
	}
	return lift(ctx, tx, []envelope.TenantID{tenant}, new(uuid.UUID(tenant)), of.settled(), reason, by)
}

// LiftAll ends the pause of everything, in a transaction of the scope Admin.
func LiftEverything(ctx context.Context, tx pgx.Tx, reason, by string) error {
	tenants, err := everyTenant(ctx, tx)
	if err != nil {
		return err
	}
	return lift(ctx, tx, tenants, nil, Target{Scope: Everything}, reason, by)
}

func lift(ctx context.Context, tx pgx.Tx, told []envelope.TenantID, tenant *uuid.UUID, of Target, reason, by string) error {
	lifted, err := dbsqlc.New().PauseLift(ctx, tx, &dbsqlc.PauseLiftParams{TenantID: tenant, Scope: string(of.Scope), Subject: of.Subject, LiftedBy: &by})
	if err != nil {
		return err
	}
	if len(lifted) == 0 {
		return fault.New(fault.NotFound, "nothing is paused there; list the pauses to see what is")
	}
	return notePause(ctx, tx, told, by, audit.Item{Subject: of.String() + " resumed", Note: reason})
}

// notePause writes an event for each tenant that a pause is of.
func notePause(ctx context.Context, tx pgx.Tx, tenants []envelope.TenantID, by string, it audit.Item) error {
	events := make([]audit.Event, len(tenants))
	for i, t := range tenants {
		events[i] = audit.Event{Tenant: t, Kind: audit.Configured, Actor: by, Items: []audit.Item{it}}
	}
	return audit.Write(ctx, tx, events...)
}

// present checks that there is what a target names, so that nobody believes a
// misspelt thing stopped. An employee may never have been heard of.
func present(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, of Target) error {
	q, id := dbsqlc.New(), uuid.UUID(tenant)
	known, what := true, ""
	switch of.Scope {
	case Source:
		rows, err := q.SourceList(ctx, tx, id)
		if err != nil {
			return err
		}
		known, what = false, "a source; list the sources to see them"
		for _, r := range rows {
			known = known || r.SourceID == of.Subject
		}
	case Tool:
		rows, err := q.ToolRuleList(ctx, tx, id)
		if err != nil {
			return err
		}
		known, what = false, "a tool as source:tool; list the tools to see them"
		for _, r := range rows {
			known = known || (policy.Key{Source: r.SourceID, Action: r.Name}).String() == of.Subject
		}
	case Bucket:
		rows, err := q.BucketSettingsList(ctx, tx, id)
		if err != nil {
			return err
		}
		known, what = false, "a bucket; list the buckets to see them"
		for _, b := range rows {
			known = known || b.Name == of.Subject
		}
	case Everything, Tenant, Employee:
	}
	if !known {
		return check.Invalid("/subject", check.RuleUnknown, "must be the name of %s", what)
	}
	return nil
}

// PauseFilter narrows a list of pauses; its zero fields do not.
type Filter struct {
	// Standing leaves out what was lifted.
	Standing bool
	// Before is the last of the page before.
	Before ID
	Most   int
}

// Pauses returns a page of a tenant's pauses, the newest first. The pause of
// everything is among them.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) ([]Pause, error) {
	before := uuid.UUID(f.Before)
	if before == uuid.Nil {
		before = uuid.Max
	}
	rows, err := dbsqlc.New().PauseList(ctx, tx, &dbsqlc.PauseListParams{
		TenantID: new(uuid.UUID(tenant)), ActiveOnly: f.Standing, Before: before, Most: int64(f.Most),
	})
	if err != nil {
		return nil, err
	}
	all := make([]Pause, len(rows))
	for i, r := range rows {
		all[i] = pauseFromRow(r)
	}
	return all, nil
}

// PauseOfEverything returns the pause of everything, in a transaction of any
// scope; false if none stands.
func OfEverything(ctx context.Context, tx pgx.Tx) (Pause, bool, error) {
	rows, err := dbsqlc.New().PauseOfEverything(ctx, tx)
	if err != nil || len(rows) == 0 {
		return Pause{}, false, err
	}
	return pauseFromRow(dbsqlc.PauseListRow(rows[0])), true, nil
}

// Flights counts the envelopes of all tenants that workers hold at this
// moment, in a transaction of the scope Admin.
func Flights(ctx context.Context, tx pgx.Tx) (int, error) {
	n, err := dbsqlc.New().OutboxInFlightCount(ctx, tx)
	return int(min(n, math.MaxInt32)), err
}

func everyTenant(ctx context.Context, tx pgx.Tx) ([]envelope.TenantID, error) {
	ids, err := dbsqlc.New().TenantList(ctx, tx)
	if err != nil {
		return nil, err
	}
	all := make([]envelope.TenantID, len(ids))
	for i, id := range ids {
		all[i] = envelope.TenantID(id)
	}
	return all, nil
}

func pauseFromRow(r dbsqlc.PauseListRow) Pause {
	p := Pause{
		ID: ID(r.PauseID), Scope: Scope(r.Scope), Subject: r.Subject, Kill: r.Kill, Reason: r.Reason, By: r.PausedBy, At: r.PausedAt.UTC(),
		KilledAt: postgres.UTC(r.KilledAt), Cancelled: int(r.Cancelled), SweptAt: postgres.UTC(r.SweptAt), LiftedAt: postgres.UTC(r.LiftedAt), WokenAt: postgres.UTC(r.WokenAt),
	}
	if r.LiftedBy != nil {
		p.LiftedBy = *r.LiftedBy
	}
	return p
}
