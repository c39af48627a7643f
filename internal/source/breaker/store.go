package breaker

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Of returns the breakers of some tenants that are not closed.
func Of(ctx context.Context, tx pgx.Tx, tenants ...envelope.TenantID) ([]Standing, error) {
	ids := make([]uuid.UUID, len(tenants))
	for i, t := range tenants {
		ids[i] = uuid.UUID(t)
	}
	rows, err := dbsqlc.New().BreakerStanding(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	all := make([]Standing, len(rows))
	for i, r := range rows {
		all[i] = Standing{
			Source: Source{envelope.TenantID(r.TenantID), r.SourceID}, Phase: Phase(r.State), Cause: Cause(r.Cause),
			Since: r.Since, Until: r.OpenUntil, Trips: int(r.Trips),
		}
	}
	return all, nil
}

// Trip opens a source's breaker for the fleet. Failures without a success
// between double the time, up to five minutes; what a source asked for is
// kept as it is. One that is open already is never opened for a shorter time.
func Trip(ctx context.Context, tx pgx.Tx, src Source, why Cause, alone time.Duration, worker string) error {
	return violations.Fault(dbsqlc.New().BreakerOpen(ctx, tx, &dbsqlc.BreakerOpenParams{
		TenantID: uuid.UUID(src.Tenant), SourceID: src.ID, Cause: string(why), Seconds: alone.Seconds(), Worker: worker,
	}))
}

// Probe asks for the right to make the call that shows whether a source is
// well again, for several sources at once. It returns those for which the
// worker has it; it lapses after the given time.
func Probe(ctx context.Context, tx pgx.Tx, sources []Source, worker string, lapse time.Duration) (map[Source]bool, error) {
	p := &dbsqlc.BreakerProbeParams{Seconds: lapse.Seconds(), Worker: worker}
	// In one order everywhere, so that two workers do not lock them crosswise.
	sources = slices.SortedFunc(slices.Values(sources), func(a, b Source) int {
		return cmp.Or(bytes.Compare(a.Tenant[:], b.Tenant[:]), cmp.Compare(a.ID, b.ID))
	})
	for _, s := range sources {
		p.TenantIds, p.SourceIds = append(p.TenantIds, uuid.UUID(s.Tenant)), append(p.SourceIds, s.ID)
	}
	rows, err := dbsqlc.New().BreakerProbe(ctx, tx, p)
	err = violations.Fault(err)
	if err != nil {
		return nil, err
	}
	won := make(map[Source]bool, len(rows))
	for _, r := range rows {
		won[Source{envelope.TenantID(r.TenantID), r.SourceID}] = true
	}
	return won, nil
}

// Release gives up the right that Probe gave, unused.
func Release(ctx context.Context, tx pgx.Tx, src Source, worker string) error {
	_, err := dbsqlc.New().BreakerRelease(ctx, tx, &dbsqlc.BreakerReleaseParams{TenantID: uuid.UUID(src.Tenant), SourceID: src.ID, Worker: worker})
	return err
}

// Close puts a source back in use. It reports whether it was not before.
func Close(ctx context.Context, tx pgx.Tx, src Source, worker string) (bool, error) {
	n, err := dbsqlc.New().BreakerClose(ctx, tx, &dbsqlc.BreakerCloseParams{TenantID: uuid.UUID(src.Tenant), SourceID: src.ID, Worker: worker})
	return n > 0, err
}
