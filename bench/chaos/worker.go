package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// workerOrder says how a worker process is to work.
type workerOrder struct {
	URL         string        `json:"url"`
	ID          string        `json:"id"`
	Concurrency int           `json:"concurrency"`
	Lease       time.Duration `json:"lease"`
	// Skew is how far the process's clock is ahead; only cmd/worker as built
	// by buildSkewed knows of it.
	Skew time.Duration `json:"skew,omitzero"`
}

// spawn starts a worker: the program, which is cmd/worker, or if that is empty
// this one in its role.
func (o workerOrder) spawn(program string, log *os.File) (*child, error) {
	if program == "" {
		return spawnSelf(roleWorker, o, nil, log)
	}
	level := "warn"
	if o.Skew != 0 {
		level = "info" // it says what time it is
	}
	return spawn(program, []string{
		skewEnv + "=" + strconv.Itoa(int(o.Skew.Seconds())),
		"DATABASE_URL=" + o.URL,
		"COUNTERSIGN_WORKER_ID=" + o.ID,
		"COUNTERSIGN_CONCURRENCY=" + strconv.Itoa(o.Concurrency),
		"COUNTERSIGN_LEASE=" + o.Lease.String(),
		"COUNTERSIGN_LOG_LEVEL=" + level,
	}, log, log)
}

// buildWorker builds cmd/worker into a folder, with more flags, and returns the
// program.
func buildWorker(ctx context.Context, dir, name string, flags ...string) (string, error) {
	program := filepath.Join(dir, name)
	args := append([]string{"build", "-o", program}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/countersign-dev/countersign/cmd/worker")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cmd/worker: %w\n%s", err, out)
	}
	return program, nil
}

// work is one process of the fleet, wired as cmd/worker wires it, but with a
// short lease and short waits, between attempts and for a source with faults.
func work(ctx context.Context, o workerOrder, stderr io.Writer) error {
	tel, err := telemetry.Setup(ctx, telemetry.Config{Service: o.ID, Level: slog.LevelWarn, Log: stderr})
	if err != nil {
		return err
	}
	log := tel.Log.With(slog.String("worker_id", o.ID))
	pool, err := postgres.Open(ctx, postgres.Config{URL: o.URL, Name: o.ID})
	if err != nil {
		return err
	}
	defer pool.Close()
	live := connect.NewPool(connect.Config{Networks: safehttp.Loopback(), Breaker: source.BreakerConfig{OpenFor: time.Second}, Log: log})
	defer live.Close()
	fleet, err := worker.New(ctx, pool, settings.NewCache(), live, worker.Config{Pipeline: worker.PipelineConfig{
		ID: o.ID, Concurrency: o.Concurrency, Lease: o.Lease, Log: log, Metrics: tel.Metrics,
		Retry: outbox.Retry{Base: 50 * time.Millisecond, Cap: time.Second},
	}})
	if err != nil {
		return fmt.Errorf("new fleet: %w", err)
	}
	return fleet.Run(ctx)
}
