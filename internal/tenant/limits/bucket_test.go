package limits_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

func perMinute(n, burst int) *limits.Rate {
	return &limits.Rate{Limit: n, Per: envelope.Duration(time.Minute), Burst: burst}
}

func (h fixture) putBucket(b limits.Bucket) {
	h.t.Helper()
	h.must(func(ctx context.Context, tx pgx.Tx) error { return limits.PutBucket(ctx, tx, h.tenant, b, "ada") })
}

func (h fixture) bucket(name string) limits.BucketState {
	h.t.Helper()
	var states []limits.BucketState
	h.must(func(ctx context.Context, tx pgx.Tx) (err error) {
		states, err = limits.BucketStates(ctx, tx, h.tenant, name)
		return err
	})
	if len(states) != 1 {
		h.t.Fatalf("bucket %s: found %d", name, len(states))
	}
	return states[0]
}

func TestBucketChangesAreStoredAndAudited(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	b := limits.Bucket{
		Name: "email.daily", Rate: perMinute(30, 5), Concurrency: 4,
		Calendar: &limits.Calendar{Limit: 500, Every: limits.PeriodDay, Timezone: "Asia/Kolkata"},
	}

	h.putBucket(b)
	h.putBucket(b) // an equal bucket changes nothing
	got := h.bucket("email.daily")
	h.putBucket(limits.Bucket{Name: "email.daily"})

	if diff := cmp.Diff(b, got.Bucket); diff != "" {
		t.Errorf("bucket (-want +got):\n%s", diff)
	}
	if *got.Permits != 5 || *got.CalendarUsed != 0 || got.OpensAt != nil || got.Paused {
		t.Errorf("state = %+v, want an unused one", got)
	}
	if free := h.bucket("email.daily"); free.Permits != nil || free.CalendarUsed != nil || free.Rate != nil {
		t.Errorf("without limits it is %+v", free)
	}
	h.wantSubjects("bucket email.daily added", "bucket email.daily changed")
}

func TestBucketsRetireAndReopen(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.putBucket(limits.Bucket{Name: "b", Concurrency: 2})
	retire := func(name string) error {
		return h.try(func(ctx context.Context, tx pgx.Tx) error { return limits.RetireBucket(ctx, tx, h.tenant, name, "ada") })
	}

	for name, want := range map[string]error{"b": nil, "default": fault.Conflict, "none": fault.NotFound} {
		if err := retire(name); !errors.Is(err, want) {
			t.Errorf("RetireBucket(%s) = %v, want %v", name, err, want)
		}
	}
	if err := retire("b"); !errors.Is(err, fault.NotFound) {
		t.Errorf("RetireBucket of a retired one = %v, want fault.NotFound", err)
	}
	if got := h.bucket("b"); got.RetiredAt == nil || got.Concurrency != 2 {
		t.Errorf("retired it is %+v, want it to keep its limits", got)
	}
	h.putBucket(limits.Bucket{Name: "b", Concurrency: 2})
	if got := h.bucket("b"); got.RetiredAt != nil {
		t.Error("it was not taken back into use")
	}
	h.wantSubjects("bucket b added", "bucket b removed", "bucket b added")
}

// use updates the usage columns of a bucket, like a claim.
func (h fixture) use(name, set string, args ...any) {
	h.t.Helper()
	h.admin("UPDATE buckets SET "+set+" WHERE tenant_id = '"+h.tenant.String()+"' AND name = '"+name+"'", args...)
}

func TestChangedLimitsKeepTheUsage(t *testing.T) {
	t.Parallel()
	h := newFixture(t)

	// A slow bucket that is exhausted for hours is not exhausted at a faster
	// rate.
	h.putBucket(limits.Bucket{Name: "b", Rate: &limits.Rate{Limit: 2, Per: envelope.Duration(24 * time.Hour), Burst: 2}})
	h.use("b", "tat = now() + interval '23 hours'")
	h.putBucket(limits.Bucket{Name: "b", Rate: &limits.Rate{Limit: 2, Per: envelope.Duration(24 * time.Second), Burst: 2}})
	if got := h.bucket("b"); got.OpensAt == nil || time.Until(*got.OpensAt) > 12*time.Second || *got.Permits != 0 {
		t.Errorf("used up, then faster: %+v, want none left, for seconds", got)
	}

	// Today's usage counts for the month, but this month's does not count for
	// today.
	h.putBucket(limits.Bucket{Name: "c", Calendar: &limits.Calendar{Limit: 9, Every: limits.PeriodDay}})
	h.use("c", "calendar_used = 9, calendar_from = date_trunc('day', now(), 'UTC')")
	if got := h.bucket("c"); *got.CalendarUsed != 9 || *got.Permits != 0 || got.OpensAt == nil {
		t.Errorf("a day that is used up: %+v", got)
	}
	h.putBucket(limits.Bucket{Name: "c", Calendar: &limits.Calendar{Limit: 10, Every: limits.PeriodMonth}})
	if got := h.bucket("c"); *got.CalendarUsed != 9 || *got.Permits != 1 || got.OpensAt != nil {
		t.Errorf("a month in which 9 went: %+v", got)
	}
	h.use("c", "calendar_from = now() - interval '40 days'")
	h.putBucket(limits.Bucket{Name: "c", Calendar: &limits.Calendar{Limit: 10, Every: limits.PeriodWeek}})
	if got := h.bucket("c"); *got.CalendarUsed != 0 || *got.Permits != 10 {
		t.Errorf("a week in which nothing went: %+v", got)
	}
}

func TestBucketStatesCount(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.putBucket(limits.Bucket{Name: "b", Concurrency: 5})
	add := func(n int, next, lease string, held bool) {
		for range n {
			h.admin(`INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, lease_until, max_attempts, held)
				SELECT $1, $2, b.bucket_id, now() + $3::interval, now() + $4::interval, 5, $5 FROM buckets b WHERE b.tenant_id = $1 AND b.name = 'b'`,
				h.tenant.String(), uuid.NewString(), next, nilIfEmpty(lease), held)
		}
	}
	add(3, "-1 minute", "", false)
	add(2, "1 hour", "", false)
	add(4, "-1 minute", "1 minute", true)
	add(1, "-1 minute", "-1 second", true) // its lease ran out: due again
	h.use("b", "closed_until = now() + interval '1 hour', closed_by = 'retry_after'")

	got := h.bucket("b")

	if got.InUse != 4 || got.Due != 4 || got.Waiting != 2 || got.ClosedUntil == nil || got.ClosedBy != "retry_after" || got.OpensAt == nil {
		t.Errorf("state = %+v, want 4 in use, 4 due, 2 waiting, held", got)
	}
	h.must(func(ctx context.Context, tx pgx.Tx) error { return limits.ReopenBucket(ctx, tx, h.tenant, "b", "ada") })
	if got := h.bucket("b"); got.ClosedUntil != nil || got.ClosedBy != "" || got.OpensAt != nil {
		t.Errorf("reopened it is %+v", got)
	}
	other := h.otherTenant()
	if err := other.try(func(ctx context.Context, tx pgx.Tx) error {
		return limits.ReopenBucket(ctx, tx, h.tenant, "b", "ada")
	}); !errors.Is(err, fault.NotFound) {
		t.Errorf("ReopenBucket of another tenant = %v, want fault.NotFound", err)
	}
	h.wantSubjects("bucket b added", "bucket b reopened")
}

func nilIfEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func TestDatabaseSupportsTheZones(t *testing.T) {
	t.Parallel()
	h := newFixture(t)

	// Go always supports the zone; the server's list includes it too.
	h.putBucket(limits.Bucket{Name: "b", Calendar: &limits.Calendar{Limit: 1, Every: limits.PeriodDay, Timezone: "Pacific/Apia"}})
	h.as(postgres.Worker(), func(ctx context.Context, tx pgx.Tx) error {
		var at time.Time
		return tx.QueryRow(ctx, "SELECT bucket_period(b, now(), 'UTC') FROM buckets b WHERE b.tenant_id = $1 AND b.name = 'b'", h.tenant.String()).Scan(&at)
	})
}
