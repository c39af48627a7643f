package overview

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// MaxSteps is the maximum number of steps of an activity.
	MaxSteps = 1500
	// sampleDays is the age at which samples are deleted.
	sampleDays = 14
	// mostSampled bounds the events of a tenant whose actions one sample counts.
	mostSampled = 100_000
)

// backlogOf is the backlog of a tenant, by its name.
type backlogOf struct {
	tenant string
	Backlog
}

// Sample stores the backlogs of all tenants at this minute, and the numbers of
// actions that ended since the sample before. Of several processes one does so.
func Sample(ctx context.Context, db postgres.Begins) error {
	err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) error {
		s, begun, err := beginSample(ctx, tx)
		if err != nil || !begun {
			return err
		}
		backlogs, estimated, err := readBacklogs(ctx, tx)
		if err != nil {
			return err
		}
		return storeSample(ctx, tx, s, backlogs, estimated)
	})
	if err != nil {
		return fmt.Errorf("sample the fleet: %w", err)
	}
	return nil
}

// readBacklogs reads the backlogs of the tenants that have one, and reports whether
// they are estimates.
func readBacklogs(ctx context.Context, tx pgx.Tx) ([]backlogOf, bool, error) {
	r := reading{pages: fleetPages}
	var err error
	if r.tables, err = readTables(ctx, tx, outboxTable); err != nil {
		return nil, false, err
	}
	groups, estimated, err := readWaiting(ctx, tx, r.sampling(outboxTable))
	if err != nil || len(groups) == 0 {
		return nil, false, err
	}
	if r.pauses, err = readPauses(ctx, tx); err != nil {
		return nil, false, err
	}
	buckets, err := readBuckets(ctx, tx, nil, mostLimited+mostFull)
	if err != nil {
		return nil, false, err
	}
	of := make(map[string][]group)
	for _, g := range groups {
		of[g.bucket.Tenant] = append(of[g.bucket.Tenant], g)
	}
	var all []backlogOf
	for tenant, part := range of {
		c := count(part, r.pauses)
		c.Startable, c.OldestDue, _ = c.startable(buckets)
		all = append(all, backlogOf{tenant, c.Backlog})
	}
	return all, estimated, nil
}

// PruneSamples deletes the samples that are older than 14 days.
func PruneSamples(ctx context.Context, db postgres.Begins) error {
	return postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) error { return pruneSamples(ctx, tx, sampleDays) })
}

// Activity fills the steps of an activity. Its range begins with a whole step.
func Activity(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, a wire.Activity) (wire.Activity, error) {
	a.Since, a.Until = a.Since.UTC().Truncate(a.Step.Duration()), a.Until.UTC()
	var err error
	if a.Items, err = readSamples(ctx, tx, tenant, a); err != nil {
		return a, fmt.Errorf("activity of tenant %s: %w", tenant, err)
	}
	ended, err := readEnded(ctx, tx, tenant, a)
	if err != nil {
		return a, fmt.Errorf("activity of tenant %s: %w", tenant, err)
	}
	for i := range a.Items {
		a.Items[i].Ended = append([]wire.ActivityEnded{}, ended[a.Items[i].At]...)
	}
	return a, nil
}
