package worker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestSlotsAreTakenAtOnceWhenManyAreFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphore(100)
		began := time.Now()

		first, second := s.acquire(t.Context(), 60, time.Second, time.Hour, nil), s.acquire(t.Context(), 60, time.Second, time.Hour, nil)

		if waited := time.Since(began); first != 60 || second != 40 || waited != 0 {
			t.Errorf("take = %d, %d after %v, want 60 and 40 at once", first, second, waited)
		}
	})
}

func TestSlotsWaitAMomentForMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphore(100)
		s.acquire(t.Context(), 98, time.Second, time.Hour, nil)
		began := time.Now()

		n := s.acquire(t.Context(), 98, time.Second, time.Hour, nil)

		if waited := time.Since(began); n != 2 || waited != time.Second {
			t.Errorf("take = %d after %v, want 2 after the moment", n, waited)
		}
	})
}

func TestSlotsComeAsSoonAsEnoughAreFreed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphore(100)
		s.acquire(t.Context(), 100, time.Second, time.Hour, nil)
		began := time.Now()
		go func() { // ends before the bubble does
			time.Sleep(time.Minute)
			s.release(1)
			time.Sleep(time.Millisecond)
			s.release(39)
		}()

		n := s.acquire(t.Context(), 100, time.Second, time.Hour, nil)

		if waited := time.Since(began); n != 40 || waited != time.Minute+time.Millisecond {
			t.Errorf("take = %d after %v, want 40 when they were freed", n, waited)
		}
	})
}

func TestSlotsEndWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSemaphore(1)
		s.acquire(t.Context(), 1, 0, time.Hour, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()

		if n := s.acquire(ctx, 1, time.Second, time.Hour, nil); n != 0 {
			t.Errorf("take = %d, want 0 at the end of the context", n)
		}
	})
}

// In any order of taking and releasing, no more slots are in use than there
// are, and all are released.
func TestSlotsAreNeverMoreThanThereAre(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 20).Draw(rt, "size")
		asks := rapid.SliceOfN(rapid.IntRange(1, 30), 1, 30).Draw(rt, "asks")
		moment := time.Duration(rapid.IntRange(0, 3).Draw(rt, "moment"))
		synctest.Test(t, func(t *testing.T) {
			s := newSemaphore(size)
			var wg sync.WaitGroup
			var mu sync.Mutex
			out, most := 0, 0
			for _, ask := range asks { // one taker, as in the pipeline
				n := s.acquire(t.Context(), ask, moment, time.Hour, nil)
				if n < 1 || n > ask {
					t.Errorf("take(%d) = %d", ask, n)
				}
				mu.Lock()
				out += n
				most = max(most, out)
				mu.Unlock()
				wg.Go(func() {
					time.Sleep(time.Duration(n) * time.Millisecond)
					mu.Lock()
					out -= n
					mu.Unlock()
					s.release(n)
				})
			}
			wg.Wait()
			if most > size || s.free != size {
				t.Errorf("%d slots were out at once and %d are free at the end, of %d", most, s.free, size)
			}
		})
	})
}
