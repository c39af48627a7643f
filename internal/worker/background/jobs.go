package background

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// linger is how long River's client runs after the last job. It is longer than
	// maintenancePause and fetchEvery together, after which a job continues.
	linger = 3 * time.Second
	// fetchEvery is the interval at which the client polls its queues, after a first poll
	// at its start.
	fetchEvery = time.Second
	// rescueAfter is the age at which a running job counts as lost with its process. The
	// job of its period can then be inserted again. Jobs are cut off after a minute.
	rescueAfter = 5 * time.Minute
)

// JobsConfig configures Jobs.
type JobsConfig struct {
	// ID names the process.
	ID string
	// CatalogAge is the age at which a source's listing is refreshed.
	CatalogAge time.Duration
	// Log is for the work of jobs, and River for River's own messages.
	Log, River *slog.Logger
}

// Jobs are River's jobs. Every process inserts those of a period, and River keeps one of
// them. The process that inserted it runs River's client until no job is left: a client
// wakes the process 20 times a second, also without jobs.
type Jobs struct {
	client *river.Client[pgx.Tx]
	record *activity
	// refresh reports whether a refresh was requested since the last run of Work.
	refresh atomic.Bool

	// inserted is the minute whose jobs were inserted last, wanted reports whether jobs wait
	// for the client, and running whether it runs. They belong to Work.
	inserted        time.Time
	wanted, running bool
}

// NewJobs returns the jobs of a worker process.
func NewJobs(db *pgxpool.Pool, cache *settings.Cache, live *connection.Pool, cfg JobsConfig) (*Jobs, error) {
	record := &activity{}
	client, err := river.NewClient(riverpgxv5.New(db), &river.Config{
		Schema:               postgres.RiverSchema,
		ID:                   cfg.ID,
		Logger:               cfg.River,
		PollOnly:             true,
		FetchCooldown:        2 * time.Millisecond,
		FetchPollInterval:    fetchEvery,
		RescueStuckJobsAfter: rescueAfter,
		ReindexerSchedule:    &reindexing{last: time.Now(), record: record},
		Queues:               queues(),
		Workers:              workersOf(db, cache, live, cfg.CatalogAge, cfg.Log, record),
	})
	if err != nil {
		return nil, fmt.Errorf("new river client: %w", err)
	}
	return &Jobs{client: client, record: record}, nil
}

// Refresh has the next run of Work insert a job that refreshes old listings.
func (j *Jobs) Refresh() { j.refresh.Store(true) }

// Work inserts the jobs that are due, and starts or stops River's client. It returns the
// pause until the next run.
func (j *Jobs) Work(ctx context.Context) (time.Duration, error) {
	now := time.Now()
	if err := j.insert(ctx, now); err != nil {
		return 0, err
	}
	if j.wanted && !j.running {
		// The context is not ctx: cancelling it would cut jobs short instead of letting
		// them end.
		if err := j.client.Start(context.WithoutCancel(ctx)); err != nil {
			return 0, fmt.Errorf("start river client: %w", err)
		}
		j.wanted, j.running = false, true
		j.record.extend(linger)
	}
	if j.running && j.record.quiet() {
		if err := j.Stop(ctx); err != nil {
			return 0, err
		}
	}
	if j.running {
		return time.Second, nil
	}
	return max(time.Until(now.Truncate(time.Minute).Add(time.Minute)), time.Second), nil
}

// insert inserts the jobs of a minute, and a refresh if one was requested. The client is
// wanted if one of them was new; and once after the start of the process, which takes
// jobs over that a lost process left.
func (j *Jobs) insert(ctx context.Context, now time.Time) error {
	var due []river.InsertManyParams
	minute := now.Truncate(time.Minute)
	if !minute.Equal(j.inserted) {
		due = periodic()
	}
	if j.refresh.Swap(false) {
		due = append(due, river.InsertManyParams{Args: refreshArgs{}})
	}
	if len(due) == 0 {
		return nil
	}
	results, err := j.client.InsertMany(ctx, due)
	if err != nil {
		return fmt.Errorf("insert jobs: %w", err)
	}
	isNew := func(r *rivertype.JobInsertResult) bool { return !r.UniqueSkippedAsDuplicate }
	j.wanted = j.wanted || j.inserted.IsZero() || slices.ContainsFunc(results, isNew)
	j.inserted = minute
	return nil
}

// Stop waits for the running jobs and stops the client. It must not be called while Work
// runs.
func (j *Jobs) Stop(ctx context.Context) error {
	if !j.running {
		return nil
	}
	if err := j.client.Stop(ctx); err != nil {
		return fmt.Errorf("stop river client: %w", err)
	}
	j.running = false
	return nil
}

// activity counts the running jobs, and has the time until which the client runs without
// one.
type activity struct{ jobs, until atomic.Int64 }

// begin counts a job until end is called.
func (a *activity) begin() (end func()) {
	a.jobs.Add(1)
	return func() {
		a.extend(linger)
		a.jobs.Add(-1)
	}
}

// extend has the client run for some time from now, unless it runs for longer anyway.
func (a *activity) extend(d time.Duration) {
	until := time.Now().Add(d).UnixNano()
	for last := a.until.Load(); last < until && !a.until.CompareAndSwap(last, until); last = a.until.Load() {
	}
}

// quiet reports whether no job runs and the time is over.
func (a *activity) quiet() bool { return a.jobs.Load() == 0 && time.Now().UnixNano() >= a.until.Load() }

// reindexing is River's schedule for reindexing its tables: midnight UTC, or the client's
// first start after it. Only the client's reindexer calls it.
type reindexing struct {
	last   time.Time
	record *activity
}

// reindexFor is how long the client runs for a reindexing without jobs.
const reindexFor = time.Minute

// Next implements river.PeriodicSchedule.
func (r *reindexing) Next(now time.Time) time.Time {
	const day = 24 * time.Hour
	midnight := now.UTC().Truncate(day)
	if !r.last.Before(midnight) {
		return midnight.Add(day)
	}
	r.last = now
	r.record.extend(reindexFor)
	return now
}
