package background

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func newJobs(t *testing.T, db *pgxpool.Pool, id string) *Jobs {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	live := connection.NewPool(connection.Config{Log: log})
	t.Cleanup(live.Close)
	j, err := NewJobs(db, settings.NewCache(), live, JobsConfig{ID: id, CatalogAge: time.Hour, Log: log, River: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Stop(context.WithoutCancel(t.Context())) })
	return j
}

// run has jobs do their work once.
func run(t *testing.T, j *Jobs) {
	t.Helper()
	if pause, err := j.Work(t.Context()); err != nil || pause <= 0 {
		t.Fatalf("Work = %s, %v", pause, err)
	}
}

// await waits until a query returns true.
func await(t *testing.T, db *pgxpool.Pool, query string) {
	t.Helper()
	for ok := false; !ok; {
		if err := db.QueryRow(t.Context(), query).Scan(&ok); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRiverRunsOnlyWhileThereAreJobs(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	j := newJobs(t, db, "w1")

	run(t, j)
	await(t, db, "SELECT count(DISTINCT kind) = 10 FROM river.river_job WHERE state = 'completed'")
	j.record.until.Store(0) // the client has lingered
	j.inserted = time.Now().Truncate(time.Minute)

	run(t, j)
	if j.running {
		t.Error("the client runs without jobs")
	}

	j.Refresh()
	run(t, j)
	if !j.running {
		t.Error("the client does not run for a refresh")
	}
	await(t, db, "SELECT count(1) = 1 FROM river.river_job WHERE kind = 'countersign_refresh' AND state = 'completed'")
}

func TestOneProcessInsertsTheJobsOfAPeriod(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)

	for _, id := range []string{"w1", "w2"} {
		if err := newJobs(t, db, id).insert(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}

	var n int
	if err := db.QueryRow(t.Context(), "SELECT count(1) FROM river.river_job WHERE kind = 'countersign_retention'").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d jobs of a day, %v, want 1", n, err)
	}
}

func TestAFailedJobIsInsertedAgain(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	j, now := newJobs(t, db, "w1"), time.Now()

	for minute := range 2 {
		if err := j.insert(t.Context(), now.Add(time.Duration(minute)*time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(t.Context(), "UPDATE river.river_job SET state = 'discarded', finalized_at = now() WHERE kind = 'countersign_retention'"); err != nil {
			t.Fatal(err)
		}
	}

	var n int
	if err := db.QueryRow(t.Context(), "SELECT count(1) FROM river.river_job WHERE kind = 'countersign_retention'").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d jobs of a day whose first one failed, %v, want 2", n, err)
	}
}

func TestReindexingFollowsMidnight(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tomorrow := noon.Add(24 * time.Hour)
	record := &activity{}
	r := &reindexing{last: noon, record: record}

	same, quiet := r.Next(noon.Add(time.Hour)), record.quiet()
	missed := r.Next(tomorrow)
	after := r.Next(tomorrow.Add(time.Second))

	if midnight := noon.Add(12 * time.Hour); !same.Equal(midnight) || !quiet {
		t.Errorf("Next on the same day = %s, quiet %t; want %s", same, quiet, midnight)
	}
	if !missed.Equal(tomorrow) || record.quiet() {
		t.Errorf("Next after midnight = %s, quiet %t; want %s, and a client that runs on", missed, record.quiet(), tomorrow)
	}
	if midnight := tomorrow.Add(12 * time.Hour); !after.Equal(midnight) {
		t.Errorf("Next after the reindexing = %s, want %s", after, midnight)
	}
}
