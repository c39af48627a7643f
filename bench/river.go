package main

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// jobArgs carries as much as a proposal's args do.
type jobArgs struct {
	N    int    `json:"n"`
	Note string `json:"note"`
}

func (jobArgs) Kind() string { return "noop" }

type noop struct {
	river.WorkerDefaults[jobArgs]
	worked *atomic.Int64
}

func (n *noop) Work(context.Context, *river.Job[jobArgs]) error {
	n.worked.Add(1)
	return nil
}

// peer is River set up as its own bench program sets it up: 2,000 workers,
// fetch cool-down 2 ms, poll interval 20 ms, the pool's default size.
type peer struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	worked *atomic.Int64
}

func newPeer(ctx context.Context, url string) (*peer, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	workers := river.NewWorkers()
	worked := new(atomic.Int64)
	river.AddWorker(workers, &noop{worked: worked})
	client, err := river.NewClient(driver, &river.Config{
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers: workers, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &peer{pool, client, worked}, nil
}

func (p *peer) insert(ctx context.Context, from, n, batch int) error {
	for end := from + n; from < end; from += batch {
		jobs := make([]river.InsertManyParams, min(batch, end-from))
		for i := range jobs {
			jobs[i].Args = jobArgs{N: from + i, Note: strings.Repeat("x", 100)}
		}
		if _, err := p.client.InsertManyFast(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}

const riverLeft = "SELECT EXISTS (SELECT 1 FROM river_job WHERE state <> 'completed')"

// burn works until no job is left, and returns how long that took.
func (p *peer) burn(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if err := p.client.Start(ctx); err != nil {
		return 0, err
	}
	if err := untilNone(ctx, p.pool, riverLeft); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, p.client.Stop(context.WithoutCancel(ctx))
}

// left returns how many inserted jobs are not yet worked, by a counter in the
// process, as River's own benchmark does.
func (p *peer) left(_ context.Context, inserted int) (int, error) {
	return inserted - int(p.worked.Load()), nil
}

func (p *peer) close() { p.pool.Close() }

// untilNone polls every 50 ms until a query returns false: seldom enough that the
// query, which has to skip dead rows, costs neither side much.
func untilNone(ctx context.Context, pool *pgxpool.Pool, query string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var left bool
		if err := pool.QueryRow(ctx, query).Scan(&left); err != nil || !left {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
