package slot_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-dev/countersign/internal/slot"
)

// waiters takes slots of a queue, one waiter after another.
type waiters struct {
	t     *testing.T
	q     *slot.Queue
	given []string
}

// wait adds a waiter, and returns when it waits.
func (w *waiters) wait(ctx context.Context, tenant string) {
	go func() { // ends within the test's bubble
		if w.q.Take(ctx, tenant) == nil {
			w.given = append(w.given, tenant)
		}
	}()
	synctest.Wait()
}

// give releases a slot and waits until the next waiter has it.
func (w *waiters) give(tenant string) {
	w.q.Give(tenant)
	synctest.Wait()
}

func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waiters{t: t, q: slot.NewQueue(1)}
		for _, tenant := range []string{"many", "many", "many", "one", "many", "two"} {
			w.wait(t.Context(), tenant)
		}

		for _, holder := range []string{"many", "one", "two", "many", "many"} {
			w.give(holder)
		}
		w.give("many")

		if want := []string{"many", "one", "two", "many", "many", "many"}; !slices.Equal(w.given, want) {
			t.Errorf("slots were given to %v, want %v", w.given, want)
		}
		if !w.q.Try("any") {
			t.Error("no slot is free although all were given back")
		}
	})
}

func TestNextSlotGoesToTheTenantWithFewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waiters{t: t, q: slot.NewQueue(3)}
		for _, tenant := range []string{"many", "few", "many", "many", "few"} {
			w.wait(t.Context(), tenant)
		}

		w.give("many")

		if got := w.given[len(w.given)-1]; len(w.given) != 4 || got != "many" && got != "few" {
			t.Fatalf("given = %v", w.given)
		}
		w.give("many")
		if got := w.given[3:]; !slices.Equal(got, []string{"few", "many"}) {
			t.Errorf("then slots were given to %v, want few and many, who had one each, few the longer ago", got)
		}
	})
}

func TestCanceledWaiterIsSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waiters{t: t, q: slot.NewQueue(1)}
		left, leave := context.WithCancel(t.Context())
		w.wait(t.Context(), "a")
		w.wait(left, "b")
		w.wait(t.Context(), "a")
		leave()
		synctest.Wait()

		w.give("a")

		if want := []string{"a", "a"}; !slices.Equal(w.given, want) {
			t.Errorf("slots were given to %v, want %v", w.given, want)
		}
		w.give("a")
		if !w.q.Try("b") {
			t.Error("a slot went to somebody who had left")
		}
	})
}

// takeAll takes every slot for long work, and returns the functions that release
// them.
func takeAll(t *testing.T) (ends []func()) {
	t.Helper()
	_ = slot.Briefly(t.Context(), 0, func(ctx context.Context) error {
		for {
			end, err := slot.Begin(ctx)
			if err != nil {
				return nil
			}
			ends = append(ends, end)
		}
	})
	return ends
}

// TestSlotIsReleasedBeforeWaiting is the only test of the process-wide slots,
// which the tests of a process share.
func TestSlotIsReleasedBeforeWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		taken := takeAll(t)
		held, calls := false, 0
		var err error
		go func() { // ends within the test's bubble
			err = slot.Briefly(t.Context(), 10, func(ctx context.Context) error {
				held, calls = true, calls+1
				defer func() { held = false }()
				end, err := slot.Begin(ctx)
				if err == nil {
					end()
				}
				return err
			})
		}()
		synctest.Wait()
		if held || calls != 1 {
			t.Errorf("held = %v after %d calls, want one call that let go", held, calls)
		}

		for _, end := range taken {
			end()
		}
		synctest.Wait()

		if err != nil || calls != 2 {
			t.Errorf("Briefly() = %v after %d calls, want no error after two", err, calls)
		}
		ends := takeAll(t)
		ends[0]() // one is free
		var before, after, others atomic.Int32
		go func() { // ends within the test's bubble
			_ = slot.InTurns(t.Context(), func(next func() error) error {
				time.Sleep(time.Second) // of the bubble
				before.Store(others.Load())
				err := next()
				after.Store(others.Load())
				return err
			})
		}()
		synctest.Wait()
		_ = slot.Long(slot.For(t.Context(), "another"), func(context.Context) error {
			others.Add(1)
			return nil
		})
		synctest.Wait()
		if before.Load() != 0 || after.Load() != 1 {
			t.Errorf("%d others had a turn before work that goes on let them, and %d then; want none and one", before.Load(), after.Load())
		}
		for _, end := range ends[1:] {
			end()
		}
		boom := errors.New("boom")
		err = slot.Long(t.Context(), func(ctx context.Context) error { // which waits for no other slot
			return slot.Briefly(ctx, 1<<30, func(ctx context.Context) error {
				return slot.Reading(ctx, 1<<30, func() error { return boom })
			})
		})
		if !errors.Is(err, boom) {
			t.Errorf("Long() = %v, want the error of what it called", err)
		}
	})
}
