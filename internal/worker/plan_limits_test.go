package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/worker/background"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// TestLimitsReadOnlyWhatTheyReturn checks the plans of claims under limits and
// of sweeps, with a long backlog and with statistics of any age.
func TestLimitsReadOnlyWhatTheyReturn(t *testing.T) {
	t.Parallel()
	const page = 200
	y := newFixture(t)
	y.exec("DROP FUNCTION tell CASCADE")
	for _, table := range y.hot() {
		y.exec("ALTER TABLE " + table + " SET (autovacuum_enabled = off)")
	}
	y.fill(10, 3)
	y.analyse()
	y.fill(10_000, 50_000)
	y.bucket(limits.Bucket{
		Name: "default", Concurrency: 3 * page, Rate: &limits.Rate{Limit: 100_000, Per: envelope.Duration(time.Hour), Burst: 100_000},
		Calendar: &limits.Calendar{Limit: 100_000, Every: limits.PeriodDay},
	})

	y.checkLimitPlans("stale statistics", page)
	y.analyse()
	y.checkLimitPlans("fresh statistics", page)
	for _, table := range y.hot() {
		y.exec("DELETE FROM pg_statistic WHERE starelid = $1::text::regclass", table)
		y.exec("UPDATE pg_class SET reltuples = -1, relpages = 0, relallvisible = 0 WHERE oid IN ($1::text::regclass) OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = $1::text::regclass)", table)
	}
	y.checkLimitPlans("no statistics", page)
}

// checkLimitPlans claims two pages under the limits and gives them back, and
// sweeps two pages of actions that a pause held and of actions that a kill hit.
func (y *fixture) checkLimitPlans(when string, page int) {
	y.t.Helper()
	db, plans := y.explainer()
	defer db.Close()
	step := func(name string, scope postgres.Scope, fn func(ctx context.Context, tx pgx.Tx) (int, error)) {
		y.t.Helper()
		*plans = nil
		returned := 0
		if err := postgres.InTx(y.t.Context(), db, scope, func(tx pgx.Tx) (err error) {
			returned, err = fn(y.t.Context(), tx)
			return err
		}); err != nil {
			y.t.Fatalf("%s: %v", name, err)
		}
		if returned != page {
			y.t.Errorf("%s, %s: %d rows were returned, want %d", when, name, returned, page)
		}
		looked := false
		for _, e := range *plans {
			looked = e.check(y.t, when+", "+name, page) || looked
		}
		if !looked {
			y.t.Errorf("%s, %s: no statement was seen on the hot tables", when, name)
		}
	}
	scope := postgres.Worker().Planned()

	var taken []outbox.Item
	for n := range 2 {
		step(fmt.Sprintf("claim of page %d", n+1), scope, func(ctx context.Context, tx pgx.Tx) (int, error) {
			due, err := outbox.DueBuckets(ctx, tx, 0, 1)
			if err != nil || len(due) != 1 || due[0].DueIn > 0 {
				return 0, fmt.Errorf("look = %+v, %w", due, err)
			}
			items, err := outbox.Claim(ctx, tx, outbox.Mark{}, []outbox.ClaimRequest{{Bucket: due[0].Bucket, From: due[0].From, Quota: page, Limited: true}}, time.Minute)
			taken = append(taken, items...)
			return len(items), err
		})
	}
	for n := range 2 {
		step(fmt.Sprintf("giving page %d back", n+1), scope, func(ctx context.Context, tx pgx.Tx) (int, error) {
			batch := make([]outbox.Settlement, page)
			for i := range batch {
				batch[i] = outbox.Defer(taken[n*page+i], "retry", 0)
			}
			settled, err := outbox.Settle(ctx, tx, outbox.Mark{}, "w1", batch)
			return len(settled), err
		})
	}

	tool := pause.Target{Scope: pause.Tool, Subject: "fake:" + toolOnce}
	sweep := func(name string) {
		var at outbox.SweepCursor
		for n := range 2 {
			step(fmt.Sprintf("page %d of a %s", n+1, name), scope, func(ctx context.Context, tx pgx.Tx) (int, error) {
				sweeps, err := outbox.Sweeps(ctx, tx, 1)
				if err != nil || len(sweeps) != 1 {
					return 0, fmt.Errorf("sweeps = %+v, %w", sweeps, err)
				}
				var ended bool
				at, ended, err = sweeps[0].Step(ctx, tx, at, page)
				if ended {
					return 0, err
				}
				return page, err
			})
		}
		y.exec("DELETE FROM pauses")
	}
	y.pause(tool, false)
	y.exec("UPDATE outbox SET waits_for = 'paused'")
	y.resume(tool)
	sweep("resume")
	y.pause(tool, true)
	sweep("kill")
}

// TestSweepsReadEveryRowOnce leaves it to the workers' own job to wake and end
// a few of many pages, with outdated statistics.
func TestSweepsReadEveryRowOnce(t *testing.T) {
	t.Parallel()
	const page, pages = 1000, 5 // of a sweep
	y := newFixture(t)
	y.exec("DROP FUNCTION tell CASCADE")
	for _, table := range y.hot() {
		y.exec("ALTER TABLE " + table + " SET (autovacuum_enabled = off)")
	}
	y.fill(10, 3)
	y.analyse()
	y.fill(10_000, pages*page)
	db, plans := y.explainer()
	defer db.Close()
	tool := pause.Target{Scope: pause.Tool, Subject: "fake:" + toolOnce}
	y.pause(tool, false)
	y.exec("UPDATE outbox SET waits_for = 'paused'")

	for _, name := range []string{"resume", "kill"} {
		*plans = nil
		if name == "resume" {
			y.resume(tool)
		} else {
			y.pause(tool, true)
		}
		if err := background.Sweep(t.Context(), db, func() {}); err != nil {
			t.Fatal(err)
		}

		looked := 0
		for _, e := range *plans {
			returned := page
			if strings.Contains(e.Query, "WakeLeft") {
				returned *= pages // one query at the end, for held actions
			}
			if e.check(t, "sweep of a "+name, returned) {
				looked++
			}
		}
		if looked < pages {
			t.Errorf("a %s took %d statements on the hot tables, want one a page or more", name, looked)
		}
		y.exec("DELETE FROM pauses")
	}
}
