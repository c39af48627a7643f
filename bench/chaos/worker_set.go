package main

import (
	"context"
	"sync"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a worker may take to stop when it is asked to.
	stopGrace = 20 * time.Second
	// respawnPause keeps a worker that cannot start, because the database is
	// away, from being started in a tight circle.
	respawnPause = 100 * time.Millisecond
)

// fleet is a fixed number of worker processes, each replaced at once when it
// ends, as a supervisor would do it.
type workerSet struct {
	spawn func(slot, generation int) (*child, error)

	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	at     []*child
	exits  []time.Time // ends that nobody asked for
	late   int         // workers that did not stop when asked to
	failed error
}

// startWorkerSet starts so many workers.
func startWorkerSet(size int, spawn func(slot, generation int) (*child, error)) *workerSet {
	ctx, cancel := context.WithCancel(context.Background())
	c := &workerSet{spawn: spawn, cancel: cancel, at: make([]*child, size)}
	for slot := range size {
		c.wg.Go(func() { c.supervise(ctx, slot) })
	}
	return c
}

// keep has a worker in a slot until ctx ends.
func (c *workerSet) supervise(ctx context.Context, slot int) {
	for generation := 1; ctx.Err() == nil; generation++ {
		w, err := c.spawn(slot, generation)
		c.mu.Lock()
		c.at[slot] = w
		if err != nil {
			c.failed = err
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
			if !w.stop(stopGrace) {
				c.mu.Lock()
				c.late++
				c.mu.Unlock()
			}
			return
		case <-w.ended:
		}
		c.mu.Lock()
		killed := c.at[slot] != w
		if !killed {
			c.exits = append(c.exits, time.Now())
		}
		c.mu.Unlock()
		if !killed {
			pause(ctx, respawnPause)
		}
	}
}

// kill ends the worker in a slot with SIGKILL and returns when that was. It
// reports false if there was none.
func (c *workerSet) kill(slot int) (time.Time, bool) {
	c.mu.Lock()
	w := c.at[slot]
	c.at[slot] = nil
	c.mu.Unlock()
	if w == nil {
		return time.Time{}, false
	}
	select {
	case <-w.ended:
		return time.Time{}, false
	default:
	}
	w.kill()
	return time.Now(), true
}

// freeze stops the worker in a slot with SIGSTOP and returns when that was, and
// what wakes it. It reports false if there was none.
func (c *workerSet) freeze(slot int) (at time.Time, resume func(), ok bool) {
	c.mu.Lock()
	w := c.at[slot]
	c.mu.Unlock()
	if w == nil || w.process.Signal(syscall.SIGSTOP) != nil {
		return time.Time{}, nil, false
	}
	return time.Now(), func() { _ = w.process.Signal(syscall.SIGCONT) }, true // the only error is that it has ended
}

// stop asks all workers to stop, and waits for them.
func (c *workerSet) stop() (exits []time.Time, late int, err error) {
	c.cancel()
	c.wg.Wait()
	return c.exits, c.late, c.failed
}

// pause waits, or ends with ctx. It reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
