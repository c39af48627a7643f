package mcp

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// restarts records the waits that a source logs, and their times.
type restarts struct {
	mu    sync.Mutex
	waits []time.Duration
	at    []time.Time
	ended int
}

// Enabled implements slog.Handler.
func (r *restarts) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (r *restarts) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if record.NumAttrs() == 0 {
		r.ended++
	}
	record.Attrs(func(attr slog.Attr) bool {
		r.waits, r.at = append(r.waits, attr.Value.Duration()), append(r.at, time.Now())
		return true
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (r *restarts) WithAttrs([]slog.Attr) slog.Handler { return r }

// WithGroup implements slog.Handler.
func (r *restarts) WithGroup(string) slog.Handler { return r }

// unstartable returns a source with a program that does not exist.
func unstartable(t *testing.T, r *restarts) *Source {
	t.Helper()
	s, err := New(Config{Name: "src", Transport: TransportStdio, Command: []string{"/nowhere/at/all"}, Logger: slog.New(r)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWaitsBetweenRestartsGrow compares the times of the restarts of a program
// that ends early.
func TestWaitsBetweenRestartsGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &restarts{}
		s := unstartable(t, r)
		began := time.Now()

		s.restart(time.Second)

		if len(r.waits) != 1+maxRestarts || r.ended != 1 {
			t.Fatalf("%d restarts after %v, %d times left to a call; want %d and one", len(r.waits), r.waits, r.ended, 1+maxRestarts)
		}
		if r.waits[0] != 0 || !r.at[0].Equal(began) {
			t.Errorf("the first restart is after %v, want at once", r.waits[0])
		}
		mean := time.Second // each wait differs by at most half of it
		for i, wait := range r.waits[1:] {
			if wait < mean/2 || wait > mean*3/2 {
				t.Errorf("wait %d is %v, want about %v", i+1, wait, mean)
			}
			mean = min(mean*3/2, time.Minute)
		}
		for i, at := range r.at[1:] {
			if gap := at.Sub(r.at[i]); gap != r.waits[i] {
				t.Errorf("restart %d took %v, want its wait %v", i, gap, r.waits[i])
			}
		}
		if last := r.waits[maxRestarts]; time.Since(r.at[maxRestarts]) != last || last < 4*r.waits[1] {
			t.Errorf("the waits %v do not grow, or the last one was not kept", r.waits[1:])
		}

		s.restart(steadyAfter)
		if len(r.waits) != 1+maxRestarts || r.ended != 2 {
			t.Errorf("restarts after %v, want none: the program ended early once more", r.waits[1+maxRestarts:])
		}
		s.restart(steadyAfter + 1)
		if again := r.waits[1+maxRestarts:]; len(again) != 1+maxRestarts || again[0] != 0 || slices.Max(again[1:3]) > 3*time.Second {
			t.Errorf("restarts after %v, want those of a program that ended for the first time", again)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseEndsTheRestartWait closes a source while it waits.
func TestCloseEndsTheRestartWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &restarts{}
		s := unstartable(t, r)
		ended := make(chan time.Time, 1)
		go func() { // the test waits for it
			s.restart(0)
			ended <- time.Now()
		}()
		time.Sleep(1600 * time.Millisecond) // between the restarts, of the bubble's clock
		synctest.Wait()
		before := len(r.waits)

		closed := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}

		if at := <-ended; !at.Equal(closed) || len(r.waits) != before || before < 2 || before > maxRestarts {
			t.Errorf("restarts ended %v after Close, with %d restarts after %d, want at once and none more", at.Sub(closed), len(r.waits), before)
		}
	})
}
