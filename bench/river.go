package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/countersign-dev/countersign/bench/process"
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
	url    string
}

func newPeer(ctx context.Context, url string) (*peer, error) {
	return newPeerOf(ctx, url, river.Config{
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: peerWorkers}},
	})
}

// newPeerOf is newPeer with other settings of River's client.
func newPeerOf(ctx context.Context, url string, cfg river.Config) (*peer, error) {
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
	cfg.Workers, cfg.Logger = workers, slog.New(slog.DiscardHandler)
	client, err := river.NewClient(driver, &cfg)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &peer{pool, client, worked, url}, nil
}

func (p *peer) batchSize() int { return 5000 }

func (p *peer) worker() (kind, url string) { return "river", p.url }

func (p *peer) submit(ctx context.Context, from, n, batch int) error {
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

func (p *peer) untilDone(ctx context.Context) error {
	return untilNone(ctx, p.pool, "SELECT EXISTS (SELECT 1 FROM river_job WHERE state <> 'completed')")
}

func (p *peer) whileWorking(ctx context.Context, fn func() error) error {
	if err := p.client.Start(ctx); err != nil {
		return err
	}
	return errors.Join(fn(), p.client.Stop(context.WithoutCancel(ctx)))
}

// left returns the number of inserted jobs that are not yet worked, by a
// counter in the process, like River's own benchmark.
func (p *peer) left(_ context.Context, inserted int) (int, error) {
	return inserted - int(p.worked.Load()), nil
}

// untilNone polls every 50 ms until a query returns false: rarely enough that the
// query, which has to skip dead rows, costs neither side much.
func untilNone(ctx context.Context, pool *pgxpool.Pool, query string) error {
	return process.Poll(ctx, 50*time.Millisecond, func() (done bool, err error) {
		var left bool
		err = pool.QueryRow(ctx, query).Scan(&left)
		return !left, err
	})
}
