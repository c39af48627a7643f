package overview_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// TestStartable has nine actions that have been due for a minute, with and
// without a cause of delay. A second reading finds the oldest of long queues, by
// the same rules. Paused, quiet and do-not-contact actions are tested with the
// workers.
func TestStartable(t *testing.T) {
	t.Parallel()
	const minute, perMinute = time.Minute, "rate_limit = 1, rate_seconds = 60, "

	for name, test := range map[string]struct {
		bucket string
		held   int
		pause  string
		row    string
		n      int64
		oldest time.Duration
	}{
		"nothing":                        {n: 9, oldest: minute},
		"a rate with five permits":       {bucket: perMinute + "burst = 5", n: 5, oldest: minute},
		"a rate that gave a permit late": {bucket: perMinute + "burst = 1, tat = now() - interval '10 seconds'", n: 1, oldest: 10 * time.Second},
		"a rate without a permit":        {bucket: perMinute + "burst = 1, tat = now() + interval '10 seconds'"},
		"a spent calendar":               {bucket: "calendar = 'day', calendar_limit = 7, calendar_used = 7, calendar_from = now()"},
		"a calendar with two left":       {bucket: "calendar = 'day', calendar_limit = 7, calendar_used = 5, calendar_from = now()", n: 2, oldest: minute},
		"a closed bucket":                {bucket: "closed_until = now() + interval '1 minute', closed_by = 'retry_after'"},
		"a bucket that was closed":       {bucket: "closed_until = now() - interval '20 seconds', closed_by = 'retry_after'", n: 9, oldest: 20 * time.Second},
		"all calls open":                 {bucket: "concurrency = 4", held: 4},
		"half of the calls open":         {bucket: "concurrency = 4", held: 2, n: 2},
		"few calls open":                 {bucket: "concurrency = 4", held: 1, n: 3, oldest: minute},
		"a pause of the bucket":          {pause: "$1, 'bucket', 'open'"},
		"a pause of the tenant":          {pause: "$1, 'tenant', ''"},
		"a pause of everything":          {pause: "nullif($1::uuid, $1::uuid), 'everything', ''"},
		"a pause of the source":          {pause: "$1, 'source', 'mail'", row: "waits_for = 'paused', next_attempt_at = now() + interval '1 hour'"},
		"quiet hours":                    {row: "waits_for = 'quiet_hours', next_attempt_at = now() + interval '1 hour'"},
		"an open breaker":                {row: "waits_for = 'breaker_open', next_attempt_at = now() + interval '1 hour'"},
		"a later attempt":                {row: "waits_for = 'retry', next_attempt_at = now() + interval '1 hour'"},
		"a later start":                  {row: "next_attempt_at = now() + interval '1 hour'"},
		"a worker":                       {row: "lease_until = now() + interval '30 seconds'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := fixture{t, dbtest.Tx(t)}.tenant("startable")
			bucket := k.bucket("open", test.bucket)
			k.queue(bucket, 9, -60, test.row)
			k.queue(bucket, test.held, -60, "lease_until = now() + interval '30 seconds', held = true")
			if test.pause != "" {
				k.exec("INSERT INTO pauses (pause_id, reason, paused_by, tenant_id, scope, subject) SELECT gen_random_uuid(), 'a fair', 'Ana', "+test.pause, k.id.String())
			}

			got := k.fleet()
			var long time.Duration
			k.as(postgres.Worker(), func(tx pgx.Tx) (err error) {
				long, err = overview.ReadOldest(t.Context(), tx)
				return err
			})

			if got.Startable != test.n || !about(got.OldestDue.Seconds(), test.oldest.Seconds()) {
				t.Errorf("%d startable, the oldest for %s, want %d and %s", got.Startable, got.OldestDue, test.n, test.oldest)
			}
			if !about(long.Seconds(), test.oldest.Seconds()) {
				t.Errorf("the oldest of a long queue waits for %s, want %s", long, test.oldest)
			}
			if mine := k.overview(); !about(mine.OldestDue, test.oldest.Seconds()) {
				t.Errorf("the oldest of the tenant waits for %g s, want %s", mine.OldestDue, test.oldest)
			}
		})
	}
}
