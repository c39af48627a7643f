package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// measureProcesses burns down with worker processes of their own. They start
// before the work is there, so that their start is not measured.
func measureProcesses(ctx context.Context, o options, srv *server, rep *report) error {
	for _, processes := range []int{1, 4} {
		var ours, peers []float64
		for range o.rounds {
			err := withPeer(ctx, srv, func(p *peer, url string) error {
				return burnBy(ctx, processes, "river", url, func() error { return p.insert(ctx, 0, o.n, 5000) },
					p.pool, "SELECT EXISTS (SELECT 1 FROM river_job WHERE state <> 'completed')", o.n, &peers)
			})
			if err != nil {
				return fmt.Errorf("river: %w", err)
			}
			err = with(ctx, srv, "", func(h *environment, url string) error {
				return burnBy(ctx, processes, "ours", url, func() error { return h.submit(ctx, 0, o.n, 1000) }, h.pool, outboxLeft, o.n, &ours)
			})
			if err != nil {
				return fmt.Errorf("ours: %w", err)
			}
		}
		name := fmt.Sprintf("burn-down, %d processes", processes)
		if processes == 1 {
			name = "burn-down, 1 process"
		}
		if err := rep.pair(name, "/s", ours, peers, nil); err != nil {
			return err
		}
	}
	return nil
}

// burnBy fills the queue, starts the processes and measures from when the
// first of them says that it works until nothing is left.
func burnBy(ctx context.Context, processes int, kind, url string, fill func() error, pool *pgxpool.Pool, left string, n int, rates *[]float64) error {
	if err := fill(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	children := make([]*exec.Cmd, processes)
	ready := make([]*os.File, processes)
	for i := range children {
		// The child opens everything, says so with a byte, and waits for one.
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, self, "-child", kind, "-url", url)
		cmd.Stderr, cmd.Stdout = os.Stderr, w
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 10 * time.Second
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		_ = w.Close()
		defer func() { _ = r.Close(); _ = stdin.Close() }()
		children[i], ready[i] = cmd, r
	}
	stopAll := func() error {
		var errs []error
		for _, cmd := range children {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
		for _, cmd := range children {
			errs = append(errs, cmd.Wait())
		}
		return errors.Join(errs...)
	}
	for _, r := range ready {
		if _, err := r.Read(make([]byte, 1)); err != nil {
			return errors.Join(fmt.Errorf("worker process did not start: %w", err), stopAll())
		}
	}
	began := time.Now()
	err = untilNone(ctx, pool, left)
	*rates = append(*rates, rate(n, time.Since(began)))
	return errors.Join(err, stopAll())
}

// runChild is a worker process.
func runChild(ctx context.Context, o options) error {
	var start func() error
	switch o.child {
	case "ours":
		h, err := newEnvironment(ctx, o.url)
		if err != nil {
			return err
		}
		defer h.close(ctx)
		if err := h.pool.Ping(ctx); err != nil {
			return err
		}
		start = func() error { return h.work(ctx) }
	case "river":
		p, err := newPeer(ctx, o.url)
		if err != nil {
			return err
		}
		defer p.close()
		start = func() error {
			if err := p.client.Start(context.WithoutCancel(ctx)); err != nil {
				return err
			}
			<-ctx.Done()
			return p.client.Stop(context.WithoutCancel(ctx))
		}
	default:
		return fmt.Errorf("-child is ours or river")
	}
	fmt.Print(".")
	return start()
}
