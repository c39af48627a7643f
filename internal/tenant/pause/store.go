package pause

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Set pauses the target of an order, which must exist. If it is already paused,
// nothing changes, unless the order is stronger: a kill turns the pause into a
// kill, or also ends actions that were proposed since; with NeedsPolicyWrite
// lifting it needs that right from now on. It needs the lock on the tenant's
// configuration.
func Set(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, o Order) (wire.Pause, error) {
	var p check.Problems
	checkReason(&p, o.Reason)
	if err := p.Below("", o.Validate()); err != nil {
		return wire.Pause{}, err
	}
	if o.Scope == Everything {
		p.Add("/scope", envelope.RuleEnum, "must be tenant, employee, source, bucket, tool or automation; to pause everything, ask the operator of the deployment: countersign pause --everything")
	}
	if o.Travelling && (o.Scope != Automation || o.Kill) {
		p.Add("/travelling", envelope.RuleUnknownField, "must be left out: only an automation can be travelling, without a kill")
	}
	if err := p.Err(); err != nil {
		return wire.Pause{}, err
	}
	o.Target = o.settled()
	if err := checkTarget(ctx, tx, tenant, o.Target); err != nil {
		return wire.Pause{}, err
	}
	active, err := List(ctx, tx, tenant, Filter{Active: true, Most: math.MaxInt32})
	if err != nil {
		return wire.Pause{}, err
	}
	raises := slices.ContainsFunc(active, func(p wire.Pause) bool {
		return p.Scope == o.Scope && p.Subject == o.Subject && (o.NeedsPolicyWrite && !p.NeedsPolicyWrite || p.Travelling && !o.Travelling)
	})
	return set(ctx, tx, []envelope.TenantID{tenant}, o, raises)
}

// SetEverything is Set for every tenant, in a transaction of the scope Admin.
// Every tenant gets the event.
func SetEverything(ctx context.Context, tx pgx.Tx, kill bool, reason string, by envelope.Actor) (wire.Pause, error) {
	var p check.Problems
	checkReason(&p, reason)
	if err := p.Err(); err != nil {
		return wire.Pause{}, err
	}
	tenants, err := everyTenant(ctx, tx)
	if err != nil {
		return wire.Pause{}, err
	}
	return set(ctx, tx, tenants, Order{Target: Target{Scope: Everything}, Kill: kill, Reason: reason, By: by}, false)
}

// owner returns the stored tenant of a pause: NULL for everything.
func (t Target) owner(tenants []envelope.TenantID) *uuid.UUID {
	if t.Scope == Everything {
		return nil
	}
	return new(uuid.UUID(tenants[0]))
}

// set stores an order and its event. raises reports whether it makes an
// active pause stronger.
func set(ctx context.Context, tx pgx.Tx, tenants []envelope.TenantID, o Order, raises bool) (wire.Pause, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return wire.Pause{}, err
	}
	row, err := dbsqlc.New().PauseSet(ctx, tx, &dbsqlc.PauseSetParams{
		PauseID: id, TenantID: o.owner(tenants), Scope: o.Scope, Subject: o.Subject, Kill: o.Kill, Reason: o.Reason,
		PausedBy: string(o.By), NeedsPolicyWrite: o.NeedsPolicyWrite, Travelling: o.Travelling,
	})
	if err != nil {
		return wire.Pause{}, violations.Fault(err)
	}
	made, what := pauseFromRow(dbsqlc.PauseListRow(row)), "paused"
	switch {
	case o.Kill:
		what = "killed"
	case made.ID != id && !raises:
		return made, nil // it was paused already
	case made.Travelling:
		what = "travelling"
	}
	it := audit.Item{Subject: o.String() + " " + what, Note: o.Reason, Detail: map[string]any{"needs_policy_write": made.NeedsPolicyWrite}}
	return made, record(ctx, tx, tenants, o.By, it)
}

// Lift ends a pause or a kill. Held actions are scheduled again; killed ones
// stay ended. If the target is not paused, the error is fault.NotFound.
func Lift(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, of Target, reason string, by envelope.Actor) error {
	var p check.Problems
	p.Text("/reason", reason)
	if err := p.Below("", of.Validate()); err != nil {
		return err
	}
	if err := p.Err(); err != nil {
		return err
	}
	if of.Scope == Everything {
		return fault.New(fault.Denied, "only an administrator of the deployment can lift the pause of everything: countersign resume --everything")
	}
	return lift(ctx, tx, []envelope.TenantID{tenant}, of.settled(), reason, by)
}

// LiftEverything ends the pause of everything, in a transaction of the scope
// Admin.
func LiftEverything(ctx context.Context, tx pgx.Tx, reason string, by envelope.Actor) error {
	tenants, err := everyTenant(ctx, tx)
	if err != nil {
		return err
	}
	return lift(ctx, tx, tenants, Target{Scope: Everything}, reason, by)
}

func lift(ctx context.Context, tx pgx.Tx, tenants []envelope.TenantID, of Target, reason string, by envelope.Actor) error {
	lifted, err := dbsqlc.New().PauseLift(ctx, tx, &dbsqlc.PauseLiftParams{
		TenantID: of.owner(tenants), Scope: of.Scope, Subject: of.Subject, LiftedBy: new(string(by)),
	})
	err = postgres.Affected(lifted, err, fault.New(fault.NotFound, "nothing is paused there; list the pauses to see the active ones"))
	if err != nil {
		return err
	}
	return record(ctx, tx, tenants, by, audit.Item{Subject: of.String() + " resumed", Note: reason})
}

// record writes an event for each tenant of a pause.
func record(ctx context.Context, tx pgx.Tx, tenants []envelope.TenantID, by envelope.Actor, it audit.Item) error {
	events := make([]audit.Event, len(tenants))
	for i, t := range tenants {
		events[i] = audit.Event{Tenant: t, Kind: audit.Configured, Actor: by, Items: []audit.Item{it}}
	}
	return audit.Write(ctx, tx, events...)
}

// checkTarget checks that the target of a pause exists, so that a misspelt name
// is not taken for paused. An employee need not have proposed anything yet.
func checkTarget(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, of Target) error {
	q := dbsqlc.New()
	var err error
	known, what := true, ""
	switch of.Scope {
	case Source:
		var rows []dbsqlc.SourceListRow
		rows, err = q.SourceList(ctx, tx, tenant)
		known = slices.ContainsFunc(rows, func(r dbsqlc.SourceListRow) bool { return r.SourceID == of.Subject })
		what = "a source; list the sources to see them"
	case Tool:
		var rows []dbsqlc.ToolNamesRow
		rows, err = q.ToolNames(ctx, tx, tenant)
		known = slices.ContainsFunc(rows, func(r dbsqlc.ToolNamesRow) bool { return r.SourceID+":"+r.Name == of.Subject })
		what = "a tool as source:tool; list the tools to see them"
	case Bucket:
		var rows []dbsqlc.BucketSettingsListRow
		rows, err = q.BucketSettingsList(ctx, tx, tenant)
		known = slices.ContainsFunc(rows, func(r dbsqlc.BucketSettingsListRow) bool { return r.Name == of.Subject })
		what = "a bucket; list the buckets to see them"
	case Automation:
		// Other automations are not registered anywhere.
		if account, ok := strings.CutPrefix(of.Subject, TriageOf("")); ok {
			known, err = q.TriageAccountExists(ctx, tx, &dbsqlc.TriageAccountExistsParams{TenantID: tenant, Name: account})
			what = "an account of triage; list the accounts to see them"
		}
	case Everything, Tenant, Employee:
	}
	if err == nil && !known {
		err = check.Invalid("/subject", check.RuleUnknown, "must be the name of %s", what)
	}
	return err
}

// Filter selects pauses; zero fields match all.
type Filter struct {
	// Active omits lifted pauses.
	Active bool
	// Before is the last pause of the previous page.
	Before uuid.UUID
	Most   int
}

// List returns a page of a tenant's pauses, newest first, including pauses of
// everything.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) ([]wire.Pause, error) {
	rows, err := dbsqlc.New().PauseList(ctx, tx, &dbsqlc.PauseListParams{
		TenantID: new(tenant), ActiveOnly: f.Active, Before: cmp.Or(f.Before, uuid.Max), Most: int64(f.Most),
	})
	return postgres.Map(rows, err, pauseFromRow)
}

// forecastRows bounds the rows that Forecast reads of each table.
const forecastRows = 10_000

// Forecast counts the actions of a target, which must exist.
func Forecast(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, of Target) (wire.PauseForecast, error) {
	if err := of.Validate(); err != nil {
		return wire.PauseForecast{}, err
	}
	of = of.settled()
	if err := checkTarget(ctx, tx, tenant, of); err != nil {
		return wire.PauseForecast{}, err
	}
	r, err := dbsqlc.New().PauseForecast(ctx, tx, &dbsqlc.PauseForecastParams{TenantID: tenant, Scope: of.Scope, Subject: of.Subject, Most: forecastRows})
	return wire.PauseForecast{Pending: r.Pending, Undecided: r.Undecided, InFlight: r.InFlight, AtLeast: r.Cut}, err
}

// InFlight returns the number of actions of all tenants that workers hold at
// present, in a transaction of the scope Admin.
func InFlight(ctx context.Context, tx pgx.Tx) (int, error) {
	n, err := dbsqlc.New().OutboxInFlightCount(ctx, tx)
	return int(min(n, math.MaxInt32)), err
}

func everyTenant(ctx context.Context, tx pgx.Tx) ([]envelope.TenantID, error) {
	return dbsqlc.New().TenantList(ctx, tx)
}

func pauseFromRow(r dbsqlc.PauseListRow) wire.Pause {
	return wire.Pause{
		ID: r.PauseID, Target: wire.Target{Scope: r.Scope, Subject: r.Subject}, Kill: r.Kill, Reason: r.Reason, By: envelope.Actor(r.PausedBy), At: r.PausedAt.UTC(),
		KilledAt: postgres.UTC(r.KilledAt), Cancelled: int(r.Cancelled), SweptAt: postgres.UTC(r.SweptAt),
		LiftedAt: postgres.UTC(r.LiftedAt), LiftedBy: envelope.Actor(postgres.OrZero(r.LiftedBy)), WokenAt: postgres.UTC(r.WokenAt),
		NeedsPolicyWrite: r.NeedsPolicyWrite, Travelling: r.Travelling,
	}
}

// violations are the faults for constraints that a caller's input can violate.
var violations = postgres.Violations{
	"pauses_tenant_id_fkey":   fault.New(fault.NotFound, "no such tenant"),
	"pauses_scope_check":      fault.New(fault.Invalid, "a pause must name everything, or a tenant, an employee, a source, a bucket, a tool or an automation"),
	"pauses_everything_check": fault.New(fault.Invalid, "a pause must name everything, or a tenant, an employee, a source, a bucket, a tool or an automation"),
	"pauses_subject_check":    fault.New(fault.Invalid, "a pause must name everything, or a tenant, an employee, a source, a bucket, a tool or an automation"),
	"pauses_reason_check":     fault.New(fault.Invalid, "a pause must have a reason"),
	"pauses_travelling_check": fault.New(fault.Invalid, "only an automation can be travelling, without a kill"),
	"pauses_active_key":       fault.New(fault.Conflict, "it is already paused"),
}
