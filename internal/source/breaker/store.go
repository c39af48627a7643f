// Package breaker owns the state of circuit breakers that all workers share.
// Each process has its own circuit breaker in front of a source. The first one
// that opens is stored here, so that the other processes also reject calls, and
// only one process makes the probe call. The package does not call sources.
package breaker

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// violations are the faults for constraints that a caller's input can violate.
var violations = postgres.Violations{
	"breakers_source_id_fkey": fault.New(fault.NotFound, "no such source"),
}

// waitsForBreaker is the wait reason of outbox rows while a breaker is open.
const waitsForBreaker = "breaker_open"

// List returns the breakers of a tenant's sources that have ever opened, ordered
// by source id.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]wire.Breaker, error) {
	rows, err := dbsqlc.New().BreakerList(ctx, tx, tenant)
	return postgres.Map(rows, err, func(r dbsqlc.BreakerListRow) wire.Breaker {
		return wire.Breaker{
			Source: r.SourceID, State: r.State, Cause: r.Cause, Since: r.Since.UTC(), OpenUntil: r.OpenUntil.UTC(),
			Openings: int(r.Openings), Worker: r.Worker,
		}
	})
}

// NotClosed returns the open and half-open breakers of some tenants.
func NotClosed(ctx context.Context, tx pgx.Tx, tenants ...envelope.TenantID) ([]OpenBreaker, error) {
	rows, err := dbsqlc.New().BreakerListNotClosed(ctx, tx, postgres.UUIDs(tenants))
	return postgres.Map(rows, err, func(r dbsqlc.BreakerListNotClosedRow) OpenBreaker {
		return OpenBreaker{
			Source: Source{r.TenantID, r.SourceID}, State: State(r.State), Cause: Cause(r.Cause),
			Since: r.Since, Until: r.OpenUntil, Openings: int(r.Openings),
		}
	})
}

// Open opens a source's breaker for all workers. Each opening without a success
// since the last one doubles the time, up to five minutes; a time that the
// source requested stays. An open breaker is never shortened.
func Open(ctx context.Context, tx pgx.Tx, src Source, why Cause, openFor time.Duration, worker string) error {
	return violations.Fault(dbsqlc.New().BreakerOpen(ctx, tx, &dbsqlc.BreakerOpenParams{
		TenantID: src.Tenant, SourceID: src.ID, Cause: string(why), Seconds: openFor.Seconds(), Worker: worker,
	}))
}

// Probe requests the right to make the probe call, for several sources together.
// It returns the sources for which the worker got the right. The right expires
// after the timeout.
func Probe(ctx context.Context, tx pgx.Tx, sources []Source, worker string, timeout time.Duration) (map[Source]bool, error) {
	p := &dbsqlc.BreakerProbeParams{Seconds: timeout.Seconds(), Worker: worker}
	// All workers lock rows in the same order, which prevents deadlocks.
	sources = slices.SortedFunc(slices.Values(sources), func(a, b Source) int {
		return cmp.Or(bytes.Compare(a.Tenant[:], b.Tenant[:]), cmp.Compare(a.ID, b.ID))
	})
	for _, s := range sources {
		p.TenantIds, p.SourceIds = append(p.TenantIds, uuid.UUID(s.Tenant)), append(p.SourceIds, s.ID)
	}
	rows, err := dbsqlc.New().BreakerProbe(ctx, tx, p)
	if err != nil {
		return nil, violations.Fault(err)
	}
	acquired := make(map[Source]bool, len(rows))
	for _, r := range rows {
		acquired[Source{r.TenantID, r.SourceID}] = true
	}
	return acquired, nil
}

// Release gives up an unused right of Probe.
func Release(ctx context.Context, tx pgx.Tx, src Source, worker string) error {
	_, err := dbsqlc.New().BreakerRelease(ctx, tx, &dbsqlc.BreakerReleaseParams{TenantID: src.Tenant, SourceID: src.ID, Worker: worker})
	return err
}

// Close closes a source's breaker. It reports whether the breaker was open or
// half-open.
func Close(ctx context.Context, tx pgx.Tx, src Source, worker string) (bool, error) {
	n, err := dbsqlc.New().BreakerClose(ctx, tx, &dbsqlc.BreakerCloseParams{TenantID: src.Tenant, SourceID: src.ID, Worker: worker})
	return n > 0, err
}

// Reset closes a source's breaker on behalf of a person, wakes the actions that
// wait for it, and records an event. The error is fault.NotFound if the source's
// breaker has never opened.
func Reset(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, source string, by envelope.Actor) error {
	n, err := dbsqlc.New().BreakerReset(ctx, tx, &dbsqlc.BreakerResetParams{TenantID: tenant, SourceID: source, Cause: "reset"})
	if err := postgres.Affected(n, err, fault.New(fault.NotFound, "the source has no breaker; list the breakers to see which sources have one")); err != nil {
		return err
	}
	if err := dbsqlc.New().WakePut(ctx, tx, &dbsqlc.WakePutParams{TenantID: tenant, WaitsFor: waitsForBreaker}); err != nil {
		return err
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: by, Items: []audit.Item{{
		Subject: "breaker of the source " + source + " reset",
	}}})
}

// Source identifies a source of a tenant.
type Source struct {
	Tenant envelope.TenantID
	ID     string
}

// State is the state of a circuit breaker.
type State string

// The states.
const (
	// StateClosed lets calls through.
	StateClosed State = "closed"
	// StateOpen rejects calls.
	StateOpen State = "open"
	// StateHalfOpen lets one probe call through.
	StateHalfOpen State = "half-open"
)

// Cause is the reason why a breaker opened.
type Cause string

// The causes.
const (
	// CauseFailures means that calls failed in a row.
	CauseFailures Cause = "failures"
	// CauseRetryAfter means that the source requested a pause.
	CauseRetryAfter Cause = "retry_after"
)

// OpenBreaker is a breaker that is open or half-open.
type OpenBreaker struct {
	Source
	State State
	Cause Cause
	// Since is the time at which the breaker left the state closed.
	Since time.Time
	// Until is, while the breaker is open, the time of the next probe; while it
	// is half-open, the time at which the probing worker is considered lost.
	Until time.Time
	// Openings counts the openings since the breaker was last closed.
	Openings int
}
