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

	"github.com/countersign-dev/countersign/bench/chaos/process"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// workerConfig configures a worker process.
type workerConfig struct {
	URL         string        `json:"url"`
	ID          string        `json:"id"`
	Concurrency int           `json:"concurrency"`
	Lease       time.Duration `json:"lease"`
	// Skew is how far the process's clock is ahead, for cmd/worker as built by
	// buildSkewed.
	Skew time.Duration `json:"skew,omitzero"`
}

// start starts a worker: the program, which is cmd/worker, or the worker in this
// program if that is empty.
func (c workerConfig) start(program string, log *os.File) (*process.Child, error) {
	if program == "" {
		return startRole(roleWorker, c, nil, log)
	}
	level := "warn"
	if c.Skew != 0 {
		level = "info" // to log a line with its time
	}
	return process.Start(program, []string{
		skewEnv + "=" + strconv.Itoa(int(c.Skew.Seconds())),
		"DATABASE_URL=" + c.URL,
		"COUNTERSIGN_WORKER_ID=" + c.ID,
		"COUNTERSIGN_SOURCE_NETWORKS=127.0.0.0/8",
		"COUNTERSIGN_CONCURRENCY=" + strconv.Itoa(c.Concurrency),
		"COUNTERSIGN_LEASE=" + c.Lease.String(),
		"COUNTERSIGN_LOG_LEVEL=" + level,
		"COUNTERSIGN_SOURCE_NETWORKS=127.0.0.0/8", // where the tool listens
	}, log, log)
}

// buildWorker builds cmd/worker into a folder and returns the program.
func buildWorker(ctx context.Context, dir string) (string, error) {
	return build(ctx, filepath.Join(dir, "worker"))
}

// build builds cmd/worker as a program, with more flags.
func build(ctx context.Context, program string, flags ...string) (string, error) {
	args := append([]string{"build", "-o", program}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/countersign-dev/countersign/cmd/worker")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cmd/worker: %w\n%s", err, out)
	}
	return program, nil
}

// work is a worker as cmd/worker wires it, but with short waits between attempts
// and for a source with faults.
func work(ctx context.Context, c workerConfig, stderr io.Writer) error {
	tel, err := telemetry.Setup(ctx, telemetry.Config{Service: c.ID, Level: slog.LevelWarn, Log: stderr})
	if err != nil {
		return err
	}
	log := tel.Log.With(slog.String("worker_id", c.ID))
	pool, err := postgres.Open(ctx, postgres.Config{URL: c.URL, Name: c.ID})
	if err != nil {
		return err
	}
	defer pool.Close()
	live := connect.NewPool(connect.Config{Networks: safehttp.Loopback(), Breaker: source.BreakerConfig{OpenFor: time.Second}, Log: log})
	defer live.Close()
	fleet, err := worker.New(ctx, pool, settings.NewCache(), live, worker.Config{Pipeline: worker.PipelineConfig{
		ID: c.ID, Concurrency: c.Concurrency, Lease: c.Lease, Log: log, Metrics: tel.Metrics,
		Retry: outbox.Retry{Base: 50 * time.Millisecond, Cap: time.Second},
	}})
	if err != nil {
		return fmt.Errorf("new fleet: %w", err)
	}
	return fleet.Run(ctx)
}
