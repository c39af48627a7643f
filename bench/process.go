package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/countersign-dev/countersign/bench/process"
)

// A child of this program is a worker. The kind of worker and the URL of the
// database are in the environment: the command line is public.
const (
	workerEnv = "BENCH_WORKER"
	urlEnv    = "BENCH_URL"
)

// measureProcesses burns down with worker processes. They start before the
// measurement, so that their start is not part of it.
func measureProcesses(ctx context.Context, s *suite) error {
	for _, processes := range []int{1, 4} {
		ours, peers, err := s.compare(ctx, "", func(sys system) (float64, error) {
			if err := sys.submit(ctx, 0, s.n, sys.batchSize()); err != nil {
				return 0, err
			}
			return s.burnBy(ctx, processes, sys)
		})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("burn-down, %d processes", processes)
		if processes == 1 {
			name = "burn-down, 1 process"
		}
		s.rep.pair(name, "/s", ours, peers, nil)
	}
	return nil
}

// burnBy starts the processes and returns the rate from when all of them are
// ready until nothing is left.
func (s *suite) burnBy(ctx context.Context, processes int, sys system) (measured float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	kind, url := sys.worker()
	ready := make([]*os.File, processes)
	for i := range ready {
		// The child opens everything and then prints a byte.
		r, w, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		defer r.Close()
		child, err := process.Start(self, []string{workerEnv + "=" + kind, urlEnv + "=" + url}, w, os.Stderr)
		_ = w.Close() // the child has its own handle
		if err != nil {
			return 0, err
		}
		ready[i] = r
		defer func() {
			if !child.Stop(10 * time.Second) {
				err = errors.Join(err, errors.New("a worker process did not stop"))
			}
		}()
	}
	for _, r := range ready {
		if _, err := r.Read(make([]byte, 1)); err != nil {
			return 0, fmt.Errorf("worker process did not start: %w", err)
		}
	}
	return timed(s.n, func() error { return sys.untilDone(ctx) })
}

// runWorker is a worker process.
func runWorker(ctx context.Context, kind, url string) error {
	untilEnd := func() error {
		<-ctx.Done()
		return nil
	}
	if kind == "river" {
		p, err := newPeer(ctx, url)
		if err != nil {
			return err
		}
		defer p.pool.Close()
		fmt.Print(".")
		return p.whileWorking(context.WithoutCancel(ctx), untilEnd)
	}
	h, err := newEnvironment(ctx, url)
	if err != nil {
		return err
	}
	defer h.close(ctx)
	fmt.Print(".")
	return h.whileWorking(ctx, untilEnd)
}
