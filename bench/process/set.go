package process

import (
	"context"
	"sync"
	"syscall"
	"time"
)

const (
	// StopGrace is how long a child may take to stop when asked to.
	StopGrace = 20 * time.Second
	// restartPause keeps a child that ends at once from being started in a
	// tight loop.
	restartPause = 100 * time.Millisecond
)

// Set is a fixed number of processes, each replaced when it ends, as a
// supervisor would do it.
type Set struct {
	start  func(slot, generation int) (*Child, error)
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex // guards what follows
	children []*Child
	exits    []time.Time
	late     int
	failed   error
}

// NewSet starts so many processes. Generations count from 1.
func NewSet(size int, start func(slot, generation int) (*Child, error)) *Set {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Set{start: start, cancel: cancel, children: make([]*Child, size)}
	for slot := range size {
		s.wg.Go(func() { s.supervise(ctx, slot) })
	}
	return s
}

// supervise keeps a process running in a slot until ctx ends.
func (s *Set) supervise(ctx context.Context, slot int) {
	for generation := 1; ctx.Err() == nil; generation++ {
		c, err := s.start(slot, generation)
		s.mu.Lock()
		s.children[slot] = c
		if err != nil {
			s.failed = err
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
			if !c.Stop(StopGrace) {
				s.mu.Lock()
				s.late++
				s.mu.Unlock()
			}
			return
		case <-c.ended:
		}
		s.mu.Lock()
		killed := s.children[slot] != c
		if !killed {
			s.exits = append(s.exits, time.Now())
		}
		s.mu.Unlock()
		if !killed {
			_ = Wait(ctx, restartPause) // the loop ends with ctx
		}
	}
}

// Kill ends the process in a slot with SIGKILL and returns when that was. It
// reports false if there was none.
func (s *Set) Kill(slot int) (time.Time, bool) {
	s.mu.Lock()
	c := s.children[slot]
	s.children[slot] = nil
	s.mu.Unlock()
	if c == nil {
		return time.Time{}, false
	}
	select {
	case <-c.ended:
		return time.Time{}, false
	default:
	}
	c.Kill()
	return time.Now(), true
}

// Freeze stops the process in a slot with SIGSTOP and returns when that was,
// and a function that continues it. It reports false if there was none.
func (s *Set) Freeze(slot int) (at time.Time, resume func(), ok bool) {
	s.mu.Lock()
	c := s.children[slot]
	s.mu.Unlock()
	if c == nil || c.process.Signal(syscall.SIGSTOP) != nil {
		return time.Time{}, nil, false
	}
	return time.Now(), func() { _ = c.process.Signal(syscall.SIGCONT) }, true // the only error is that it has ended
}

// Stop asks all processes to stop and waits for them. It returns when others
// ended by themselves, how many had to be killed, and why one could not be
// started.
func (s *Set) Stop() (exits []time.Time, late int, err error) {
	s.cancel()
	s.wg.Wait()
	return s.exits, s.late, s.failed
}
