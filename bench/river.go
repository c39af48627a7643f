package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type noopArgs struct {
	Num  int    `json:"num"`
	Note string `json:"note"`
}

func (noopArgs) Kind() string { return "noop" }

type noopWorker struct {
	river.WorkerDefaults[noopArgs]
	done *atomic.Int64
}

func (w *noopWorker) Work(context.Context, *river.Job[noopArgs]) error {
	w.done.Add(1)
	return nil
}


func riverBurn(ctx context.Context, url string, n int) (insert, burn time.Duration, err error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	m, err := rivermigrate.New(driver, nil)
	if err != nil {
		return 0, 0, err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return 0, 0, err
	}
	var done atomic.Int64
	workers := river.NewWorkers()
	river.AddWorker(workers, &noopWorker{done: &done})
	client, err := river.NewClient(driver, &river.Config{
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers: workers, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	for from := 0; from < n; from += 5000 {
		batch := make([]river.InsertManyParams, min(5000, n-from))
		for i := range batch {
			batch[i].Args = noopArgs{Num: from + i, Note: fmt.Sprintf("%0100d", from+i)}
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return 0, 0, err
		}
	}
	insert = time.Since(began)
	began = time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, 0, err
	}
	for {
		var left bool
		if err := pool.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM river_job WHERE state <> 'completed')").Scan(&left); err != nil {
			return 0, 0, err
		}
		if !left {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	burn = time.Since(began)
	return insert, burn, client.Stop(ctx)
}
