// Package breaker owns the state of circuit breakers that all workers share.
// Each process has its own circuit breaker in front of a source. The first of
// them that opens is stored here, so that the other processes hold calls back
// too, and only one process makes the probe call. It does not call sources.
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

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"breakers_source_id_fkey": fault.New(fault.NotFound, "no such source"),
}

// waitsForBreaker is what rows of the outbox wait for while a breaker is open.
const waitsForBreaker = "breaker_open"

// List returns the breakers of a tenant's sources that have ever opened, in
// order of the source's id.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]wire.Breaker, error) {
	rows, err := dbsqlc.New().BreakerList(ctx, tx, tenant)
	return postgres.Map(rows, err, func(r dbsqlc.BreakerListRow) wire.Breaker {
		return wire.Breaker{
			Source: r.SourceID, State: r.State, Cause: r.Cause, Since: r.Since.UTC(), OpenUntil: r.OpenUntil.UTC(),
			Openings: int(r.Openings), Worker: r.Worker,
		}
	})
}

// NotClosed returns the breakers of some tenants that are open or half-open.
func NotClosed(ctx context.Context, tx pgx.Tx, tenants ...envelope.TenantID) ([]OpenBreaker, error) {
	rows, err := dbsqlc.New().BreakerListNotClosed(ctx, tx, postgres.UUIDs(tenants))
	return postgres.Map(rows, err, func(r dbsqlc.BreakerListNotClosedRow) OpenBreaker {
		return OpenBreaker{
			Source: Source{r.TenantID, r.SourceID}, State: State(r.State), Cause: Cause(r.Cause),
			Since: r.Since, Until: r.OpenUntil, Openings: int(r.Openings),
		}
	})
}

// Open opens a source's breaker for all workers. Each opening without a
// success since the last one doubles the time, up to five minutes; a time that
// the source asked for stays as it is. A breaker that is open already is never
// opened for a shorter time.
func Open(ctx context.Context, tx pgx.Tx, src Source, why Cause, openFor time.Duration, worker string) error {
	return violations.Fault(dbsqlc.New().BreakerOpen(ctx, tx, &dbsqlc.BreakerOpenParams{
		TenantID: src.Tenant, SourceID: src.ID, Cause: string(why), Seconds: openFor.Seconds(), Worker: worker,
	}))
}

// Probe asks for the right to make the probe call, for several sources at
// once. It returns the sources for which the worker has that right. The right
// expires after the timeout.
func Probe(ctx context.Context, tx pgx.Tx, sources []Source, worker string, timeout time.Duration) (map[Source]bool, error) {
	p := &dbsqlc.BreakerProbeParams{Seconds: timeout.Seconds(), Worker: worker}
	// All workers lock rows in one order, so that two of them cannot deadlock.
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

// Release returns the right that Probe gave, unused.
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

// Reset closes a source's breaker on behalf of a person, wakes the actions
// that wait for it, and records an event. A source whose breaker has never
// opened is fault.NotFound.
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

// Source names a source of a tenant.
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
	// StateOpen holds calls back.
	StateOpen State = "open"
	// StateHalfOpen lets one probe call through.
	StateHalfOpen State = "half-open"
)

// Cause is why a breaker opened.
type Cause string

// The causes.
const (
	// CauseFailures means that calls failed in a row.
	CauseFailures Cause = "failures"
	// CauseRetryAfter means that the source asked for a pause.
	CauseRetryAfter Cause = "retry_after"
)

// OpenBreaker is a breaker that is open or half-open.
type OpenBreaker struct {
	Source
	State State
	Cause Cause
	// Since is when the breaker left the state closed.
	Since time.Time
	// Until is, while the breaker is open, when a probe may be made; while it
	// is half-open, when the worker that probes is considered lost.
	Until time.Time
	// Openings counts how often the breaker opened since it was closed.
	Openings int
}
