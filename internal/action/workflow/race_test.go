package workflow_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// Drivers, workers and a cancellation run concurrently: in any order, every
// effect of the workflow is present or reverted, and none is doubled.
func TestCancelRacesTheSteps(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)
	for round := range 12 {
		id := o.submit(steps(true, "create", `{"name":"a"}`, "link", `{"from":"$0.id","to":"b"}`, "find", `{}`))
		var mu sync.Mutex
		counted := make(map[string]int)
		count := func(c call) outcome {
			mu.Lock()
			defer mu.Unlock()
			counted[c.tool]++
			return sent
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				d := o.newDriver(o.db)
				for range 6 {
					if _, _, err := d.Sweep(t.Context()); err != nil {
						t.Errorf("Sweep = %v", err)
					}
				}
			})
		}
		all.Go(func() {
			for range 6 {
				o.work(count)
			}
		})
		all.Go(func() {
			for range round % 4 {
				if _, _, err := o.driver.Sweep(t.Context()); err != nil {
					t.Errorf("Sweep = %v", err)
				}
			}
			if err := o.service.Cancel(t.Context(), o.tenant, id, "ada"); err != nil && !errors.Is(err, fault.Conflict) {
				t.Errorf("Cancel = %v", err)
			}
		})
		all.Wait()
		for !o.get(id).State.Ended() {
			o.exec("UPDATE workflows SET check_at = now() WHERE check_at > now()")
			o.run(count)
		}

		b := o.get(id)
		want := map[string]int{"create": 0, "link": 0}
		switch b.State {
		case workflow.StateCompleted:
			want = map[string]int{"create": 1, "link": 1}
		case workflow.StateReverted:
		case workflow.StateRunning, workflow.StateReverting, workflow.StateStuck, workflow.StateCompensationFailed, workflow.StateFailed, workflow.StateCancelled, workflow.StateResolved:
			t.Fatalf("the workflow stands at %s", stands(b))
		}
		if left := counted["create"] - counted["delete"]; left != want["create"] || counted["create"] > 1 {
			t.Errorf("round %d: %v, and the workflow stands at %s", round, counted, stands(b))
		}
		if left := counted["link"] - counted["unlink"]; left != want["link"] || counted["link"] > 1 {
			t.Errorf("round %d: %v, and the workflow stands at %s", round, counted, stands(b))
		}
	}
}

func TestTheSameWorkflowAtOnceIsOne(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)
	r := steps(false, "find", `{}`)
	const many = 8
	ids, news := make([]workflow.ID, many), make([]bool, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			id, known, err := o.service.Submit(t.Context(), o.by(), r)
			if err != nil {
				t.Errorf("Submit = %v", err)
			}
			ids[i], news[i] = id, !known
		})
	}
	all.Wait()

	fresh := 0
	for i := range many {
		if ids[i] != ids[0] {
			t.Errorf("the workflow is %s and %s", ids[0], ids[i])
		}
		if news[i] {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d of %d were new, want one", fresh, many)
	}
}

// Retry and Resolve race: one of them wins, and the reversal is proposed once
// more or not at all.
func TestRetryRacesResolve(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)
	for range 6 {
		id := o.compensationAlone()
		var all sync.WaitGroup
		errs := make([]error, 2)
		all.Go(func() { errs[0] = o.service.Retry(t.Context(), o.tenant, id, "ada", "") })
		all.Go(func() { errs[1] = o.service.Resolve(t.Context(), o.tenant, id, "bo", "n", false) })
		all.Wait()
		calls := o.run(always(sent))

		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, fault.Conflict) {
				t.Errorf("the loser hears %v, want fault.Conflict", err)
			}
		}
		if b := o.get(id); won != 1 || b.State != workflow.StateReverted || len(calls) > 1 {
			t.Errorf("%d won, %d calls, and the workflow stands at %s", won, len(calls), stands(b))
		}
	}
}

// compensationAlone returns a workflow of two steps whose first could not be
// reverted.
func (o *fixture) compensationAlone() workflow.ID {
	o.t.Helper()
	id := o.submit(steps(true, "create", `{"name":"a"}`, "link", `{"from":"a","to":"b"}`))
	o.run(func(c call) outcome {
		if c.tool == "create" {
			return sent
		}
		return failed
	})
	o.wants(id, "compensation_failed: revert_failed failed")
	return id
}

// A workflow that cannot be moved on for an error does not hold up the others.
func TestUnreadableWorkflowDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)
	broken, fine := o.submit(steps(false, "find", `{}`)), o.submit(steps(false, "find", `{"a":1}`))
	o.exec("UPDATE workflow_steps SET options = '[]' WHERE workflow_id = $1", broken.String())

	o.run(always(sent))

	o.wants(fine, "completed: done")
	var waits bool
	if err := postgres.InTx(t.Context(), o.db, postgres.Admin(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "SELECT check_at > now() FROM workflows WHERE workflow_id = $1", broken.String()).Scan(&waits)
	}); err != nil || !waits {
		t.Errorf("the broken workflow is looked at again at once: %v", err)
	}
}
