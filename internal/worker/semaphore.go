package worker

import (
	"context"
	"sync"
	"time"
)

// semaphore bounds the actions that a worker has in flight, from the claim
// until the outcome is committed.
type semaphore struct {
	mu    sync.Mutex
	free  int
	freed chan struct{}
}

func newSemaphore(n int) *semaphore { return &semaphore{free: n, freed: make(chan struct{}, 1)} }

// acquire returns from 1 to most slots as soon as there is one, or 0 when ctx is
// over. While only a few are free it waits a moment for more, since a claim of
// many costs hardly more than a claim of one.
func (s *semaphore) acquire(ctx context.Context, most int, moment time.Duration) int {
	var window <-chan time.Time
	for {
		s.mu.Lock()
		if s.free >= most || (s.free > 0 && (4*s.free >= most || window == nil && moment == 0)) {
			n := min(s.free, most)
			s.free -= n
			s.mu.Unlock()
			return n
		}
		some := s.free > 0
		s.mu.Unlock()
		if some && window == nil {
			timer := time.NewTimer(moment)
			defer timer.Stop()
			window = timer.C
		}
		select {
		case <-ctx.Done():
			return 0
		case <-s.freed:
		case <-window:
			window, moment = nil, 0
		}
	}
}

// release gives slots back.
func (s *semaphore) release(n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	s.free += n
	s.mu.Unlock()
	select {
	case s.freed <- struct{}{}:
	default:
	}
}
