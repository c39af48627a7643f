package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// measureProcesses burns down with worker processes. They start before the
// measurement, so that their start is not part of it.
func measureProcesses(ctx context.Context, s *suite) error {
	for _, processes := range []int{1, 4} {
		ours, peers, err := s.compare(ctx, "",
			func(p *peer, url string) (float64, error) {
				if err := p.insert(ctx, 0, s.n, 5000); err != nil {
					return 0, err
				}
				return s.burnBy(ctx, processes, "river", url, func() error { return untilNone(ctx, p.pool, riverLeft) })
			},
			func(h *environment, url string) (float64, error) {
				if err := h.submit(ctx, 0, s.n, 1000); err != nil {
					return 0, err
				}
				return s.burnBy(ctx, processes, "ours", url, func() error { return untilNone(ctx, h.pool, outboxLeft) })
			})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("burn-down, %d processes", processes)
		if processes == 1 {
			name = "burn-down, 1 process"
		}
		if err := s.rep.pair(name, "/s", ours, peers, nil); err != nil {
			return err
		}
	}
	return nil
}

// burnBy starts the processes and returns the rate from when all of them are
// ready until nothing is left.
func (s *suite) burnBy(ctx context.Context, processes int, kind, url string, untilDone func() error) (measured float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	ready := make([]*os.File, processes)
	for i := range ready {
		// The child opens everything and then prints a byte.
		r, w, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		defer r.Close()
		cmd := exec.CommandContext(ctx, self, "-child", kind, "-url", url)
		cmd.Stderr, cmd.Stdout = os.Stderr, w
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 10 * time.Second
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		_ = w.Close() // the child has its own handle
		ready[i] = r
		defer func() {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
			err = errors.Join(err, cmd.Wait())
		}()
	}
	for _, r := range ready {
		if _, err := r.Read(make([]byte, 1)); err != nil {
			return 0, fmt.Errorf("worker process did not start: %w", err)
		}
	}
	return timed(s.n, untilDone)
}

// runChild is a worker process.
func runChild(ctx context.Context, o options) error {
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
		fmt.Print(".")
		return h.work(ctx)
	case "river":
		p, err := newPeer(ctx, o.url)
		if err != nil {
			return err
		}
		defer p.close()
		fmt.Print(".")
		if err := p.client.Start(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		<-ctx.Done()
		return p.client.Stop(context.WithoutCancel(ctx))
	}
	return fmt.Errorf("-child is ours or river")
}
