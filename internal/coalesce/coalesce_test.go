package coalesce_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-dev/countersign/internal/coalesce"
)

// call doubles a number.
type call struct{ in, out int }

// recorder is a slow run. It fails for calls with a certain number, before or
// after they have an effect.
type recorder struct {
	mu    sync.Mutex
	sizes []int
	takes time.Duration
	fails int
	late  bool
}

var errRun = errors.New("run failed")

func (r *recorder) run(ctx context.Context, _ string, calls []*call) (undone bool, err error) {
	r.mu.Lock()
	r.sizes = append(r.sizes, len(calls))
	r.mu.Unlock()
	select {
	case <-time.After(r.takes):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	for _, c := range calls {
		if c.in == r.fails {
			return !r.late, errRun
		}
		c.out = 2 * c.in
	}
	return false, nil
}

// TestConcurrentCallsShareARun makes eleven calls while a run is in progress.
func TestConcurrentCallsShareARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := recorder{takes: time.Millisecond}
		g := coalesce.New(6, r.run)
		for n := 1; n <= 12; n++ {
			go func() {
				c := &call{in: n}
				if err := g.Do(t.Context(), "a", c); err != nil || c.out != 2*n {
					t.Errorf("Do(%d) = %v, %v", n, c.out, err)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()

		if want := []int{1, 6, 5}; !slices.Equal(r.sizes, want) {
			t.Errorf("runs of %v calls, want %v", r.sizes, want)
		}
	})
}

// TestFailureDoesNotAffectOtherCalls makes several calls, one of which fails.
func TestFailureDoesNotAffectOtherCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := recorder{takes: time.Millisecond, fails: 5}
		g := coalesce.New(100, r.run)
		for n := 1; n <= 8; n++ {
			go func() {
				c := &call{in: n}
				err := g.Do(t.Context(), "a", c)
				if failed := errors.Is(err, errRun); failed != (n == 5) || !failed && c.out != 2*n {
					t.Errorf("Do(%d) = %v, %v", n, c.out, err)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
	})
}

// TestCanceledCallerDoesNotEndSharedRun cancels the context of a call that leads
// a run, and of one that waits.
func TestCanceledCallerDoesNotEndSharedRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := recorder{takes: time.Millisecond}
		g := coalesce.New(100, r.run)
		errs := make([]error, 6)
		contexts := make([]context.Context, 6)
		cancels := make([]context.CancelFunc, 6)
		for n := range errs {
			contexts[n], cancels[n] = context.WithCancel(t.Context())
			defer cancels[n]()
			go func() { errs[n] = g.Do(contexts[n], "a", &call{in: n + 1}) }()
			synctest.Wait()
		}
		cancels[4]() // waits
		time.Sleep(1500 * time.Microsecond)
		cancels[1]() // leads the second run
		time.Sleep(5 * time.Second)
		synctest.Wait()

		for n, err := range errs {
			if left := errors.Is(err, context.Canceled); left != (n == 4) {
				t.Errorf("call %d = %v", n, err)
			}
		}
		if want := []int{1, 4}; !slices.Equal(r.sizes, want) {
			t.Errorf("runs of %v calls, want %v", r.sizes, want)
		}
	})
}

// TestKeysRunConcurrently makes a call of one key while the runs of another are
// full.
func TestKeysRunConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := recorder{takes: time.Millisecond}
		g := coalesce.New(100, r.run)
		for range 5 {
			go func() { _ = g.Do(t.Context(), "a", &call{in: 1}) }()
		}
		synctest.Wait()
		began := time.Now()

		if err := g.Do(t.Context(), "b", &call{in: 1}); err != nil || time.Since(began) != time.Millisecond {
			t.Errorf("Do = %v after %s, want a millisecond", err, time.Since(began))
		}
		time.Sleep(5 * time.Second)
	})
}

// TestUncertainFailureIsNotRepeated lets a shared run fail after a possible
// effect, like a commit whose response is lost.
func TestUncertainFailureIsNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := recorder{takes: time.Millisecond, fails: 5, late: true}
		g := coalesce.New(100, r.run)
		for n := 1; n <= 8; n++ {
			go func() {
				if err := g.Do(t.Context(), "a", &call{in: n}); errors.Is(err, errRun) != (n > 1) {
					t.Errorf("Do(%d) = %v", n, err)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()

		if want := []int{1, 7}; !slices.Equal(r.sizes, want) {
			t.Errorf("runs of %v calls, want %v", r.sizes, want)
		}
	})
}

// TestPanicIsAnErrorForOtherCallers panics in a shared run.
func TestPanicIsAnErrorForOtherCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := coalesce.New(100, func(_ context.Context, _ string, calls []*call) (bool, error) {
			time.Sleep(time.Millisecond)
			if len(calls) > 1 {
				panic("broken")
			}
			calls[0].out = 2 * calls[0].in
			return false, nil
		})
		panics, failed := 0, 0
		var mu sync.Mutex
		for n := 1; n <= 6; n++ {
			go func() {
				defer func() {
					if recover() != nil {
						mu.Lock()
						defer mu.Unlock()
						panics++
					}
				}()
				err := g.Do(t.Context(), "a", &call{in: n})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed++
				}
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()

		if panics != 1 || failed != 4 {
			t.Errorf("%d panics and %d errors, want 1 and 4", panics, failed)
		}
		c := &call{in: 4}
		if err := g.Do(t.Context(), "a", c); err != nil || c.out != 8 {
			t.Errorf("Do afterwards = %v, %v", c.out, err)
		}
	})
}

// TestSlowRunDoesNotDelayOthers counts concurrent runs that take twenty seconds
// each.
func TestSlowRunDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := recorder{takes: 20 * time.Second}
		g := coalesce.New(100, r.run)
		for n := range 20 {
			go func() {
				if err := g.Do(t.Context(), "a", &call{in: n + 1}); err != nil {
					t.Errorf("Do(%d) = %v", n, err)
				}
			}()
			synctest.Wait()
			time.Sleep(4 * time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()

		r.mu.Lock()
		if want := []int{1, 3, 3, 3}; !slices.Equal(r.sizes, want) {
			t.Errorf("runs of %v calls, want %v", r.sizes, want)
		}
		r.mu.Unlock()
		time.Sleep(time.Hour)
		synctest.Wait()
	})
}

// TestCallsThatAreReadyJoinTheFirst has calls start together, on one processor, while
// no run is in progress.
func TestCallsThatAreReadyJoinTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		var sizes []int
		for range 50 { // a goroutine that the scheduler interrupts is late
			r := recorder{takes: time.Millisecond}
			g := coalesce.New(100, r.run)
			var wg sync.WaitGroup
			for n := 1; n <= 8; n++ {
				wg.Go(func() {
					if err := g.Do(t.Context(), "a", &call{in: n}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if sizes = r.sizes; slices.Equal(sizes, []int{8}) {
				return
			}
		}
		t.Errorf("runs of %v calls and others, want one of 8", sizes)
	})
}

// announced returns a Group with a run that takes four milliseconds, of which many
// callers are announced and one call was made.
func announced(t *testing.T, callers int) (*coalesce.Group[string, *call], *recorder, []func()) {
	t.Helper()
	r := &recorder{takes: 4 * time.Millisecond}
	g := coalesce.New(100, r.run)
	done := make([]func(), callers)
	for i := range done {
		done[i] = g.Expect("a")
	}
	if err := g.Do(t.Context(), "a", &call{in: 1}); err != nil {
		t.Fatal(err)
	}
	return g, r, done
}

// TestManyCallersWaitForEachOther makes calls with half a millisecond between.
func TestManyCallersWaitForEachOther(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		callers, calls int
		want           []int
	}{
		"until half of them have called":             {16, 8, []int{1, 8}},
		"not for longer than the run before":         {16, 4, []int{1, 4}},
		"few callers do not wait":                    {7, 4, []int{1, 1, 3}},
		"more than half of them wait for nobody":     {16, 12, []int{1, 8, 4}},
		"callers that have ended are not waited for": {0, 4, []int{1, 1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g, r, done := announced(t, max(tt.callers, 16))
				for _, end := range done[tt.callers:] {
					end()
					end() // a second time it does nothing
				}
				began := time.Now()
				var wg sync.WaitGroup
				for n := range tt.calls {
					wg.Go(func() {
						time.Sleep(time.Duration(n) * 500 * time.Microsecond)
						c := &call{in: n + 1}
						if err := g.Do(t.Context(), "a", c); err != nil || c.out != 2*c.in {
							t.Errorf("Do(%d) = %v, %v", c.in, c.out, err)
						}
					})
				}
				wg.Wait()

				if !slices.Equal(r.sizes, tt.want) {
					t.Errorf("runs of %v calls, want %v", r.sizes, tt.want)
				}
				if took := time.Since(began); took > 16*time.Millisecond {
					t.Errorf("the calls took %s", took)
				}
			})
		})
	}
}

// TestCallerThatLeavesWhileOthersAreAwaited cancels the call that waits for others, and
// one of these.
func TestCallerThatLeavesWhileOthersAreAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, r, _ := announced(t, 16)
		contexts, cancels := make([]context.Context, 5), make([]context.CancelFunc, 5)
		errs := make([]error, 5)
		var wg sync.WaitGroup
		for n := range errs {
			contexts[n], cancels[n] = context.WithCancel(t.Context())
			defer cancels[n]()
			wg.Go(func() {
				c := &call{in: n + 1}
				if errs[n] = g.Do(contexts[n], "a", c); errs[n] == nil && c.out != 2*(n+1) {
					t.Errorf("Do(%d) = %d", n, c.out)
				}
			})
			synctest.Wait()
		}
		cancels[0]()
		cancels[3]()
		wg.Wait()

		for n, err := range errs {
			if left := errors.Is(err, context.Canceled); err != nil && !left || left != (n == 3) {
				t.Errorf("call %d = %v", n, err)
			}
		}
		if want := []int{1, 4}; !slices.Equal(r.sizes, want) {
			t.Errorf("runs of %v calls, want %v", r.sizes, want)
		}
	})
}
