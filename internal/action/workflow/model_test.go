package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// end is the outcome of a call in a plan.
type end int

const (
	endSent end = iota
	endThere
	endFailed
	// The outcome is unknown, and is then resolved.
	endHappened
	endRerun
	endGivenUp
)

// back is the outcome of a step's reversal.
type back int

const (
	backDone back = iota
	backHappened
	// The reversal fails, and then a person does something about it.
	backRetried
	backReplayed
	backResolved
	backAbandoned
)

// plan is a workflow and its future events.
type plan struct {
	atomic bool
	steps  []planStep
	// cancelAt is the step during whose wait the workflow is cancelled; -1 for
	// none.
	cancelAt int
}

type planStep struct {
	tool string
	end  end
	back back
	// from is an earlier step that it refers to; -1 for none.
	from int
}

func randomPlan(r *rand.Rand) plan {
	p := plan{atomic: r.IntN(4) > 0, cancelAt: -1}
	var named []int
	for i := range 1 + r.IntN(6) {
		s := planStep{tool: []string{"create", "link", "find"}[r.IntN(3)], from: -1}
		if r.IntN(4) == 0 {
			s.end = end(1 + r.IntN(2))
		}
		if s.tool == "link" && r.IntN(4) == 0 {
			// A resolved outcome has no answer, and a link needs none.
			s.end = endHappened + end(r.IntN(3))
		}
		if r.IntN(3) == 0 {
			s.back = back(r.IntN(6))
		}
		if len(named) > 0 && r.IntN(2) == 0 {
			s.from = named[r.IntN(len(named))]
		}
		if s.tool != "link" {
			named = append(named, i)
		}
		p.steps = append(p.steps, s)
	}
	if r.IntN(4) == 0 {
		p.cancelAt = r.IntN(len(p.steps))
	}
	return p
}

// model returns the expected final state of the workflow and the expected
// calls, in order.
func (p plan) model() (stands string, calls []string) {
	states := slices.Repeat([]string{"skipped"}, len(p.steps))
	stopped, state := false, "completed"
	for i, s := range p.steps {
		if stopped = p.cancelAt == i; stopped {
			states[i], state = "failed", "cancelled"
			break
		}
		calls = append(calls, fmt.Sprint(i))
		if s.end == endRerun {
			calls = append(calls, fmt.Sprint(i))
		}
		states[i] = "done"
		if stopped = s.end == endFailed || s.end == endGivenUp; stopped {
			states[i], state = "failed", "failed"
			break
		}
	}
	if !stopped || !p.atomic {
		return strings.Join(append([]string{state + ":"}, states...), " "), calls
	}
	state = "reverted"
	for i := len(states) - 1; i >= 0 && state == "reverted"; i-- {
		if states[i] != "done" {
			continue
		}
		s, name := p.steps[i], fmt.Sprintf("%d:reverse", i)
		if s.tool == "find" || s.end == endThere {
			states[i] = "kept"
			continue
		}
		states[i], calls = "reverted", append(calls, name)
		switch s.back {
		case backRetried:
			calls = append(calls, name+":1")
		case backReplayed:
			calls = append(calls, name)
		case backResolved:
			states[i] = "resolved"
		case backAbandoned:
			states[i], state = "resolved", "resolved"
		case backDone, backHappened:
		}
	}
	return strings.Join(append([]string{state + ":"}, states...), " "), calls
}

// request is the submitted form of the plan.
func (p plan) request() workflow.Request {
	var all []string
	for i, s := range p.steps {
		inputs := fmt.Sprintf(`{"name":"n%d"}`, i)
		if s.tool == "link" {
			inputs = fmt.Sprintf(`{"from":"n%d","to":"t"}`, i)
		}
		if s.from >= 0 {
			inputs = strings.Replace(inputs, fmt.Sprintf(`"n%d"`, i), fmt.Sprintf(`"$%d.id"`, s.from), 1)
		}
		all = append(all, s.tool, inputs)
	}
	return steps(p.atomic, all...)
}

// simulation plays a plan.
type simulation struct {
	*fixture
	plan   plan
	id     workflow.ID
	tried  map[string]int
	drive  func()
	called []string
}

// ends returns the outcome of a call. calls counts the earlier calls of the
// same name.
func (w *simulation) ends(c call) outcome {
	name := w.nameOf(c)
	w.called = append(w.called, name)
	before := w.tried[name]
	w.tried[name]++
	at, reversal, _ := strings.Cut(name, ":")
	s := w.plan.steps[at[0]-'0']
	if reversal == "" {
		switch s.end {
		case endSent:
		case endThere:
			return outcome{status: envelope.StatusConflict, result: `{"id":"there"}`}
		case endFailed:
			return failed
		case endHappened, endRerun, endGivenUp:
			if before == 0 {
				return unknown
			}
		}
		return sent
	}
	switch s.back {
	case backDone:
	case backHappened:
		if before == 0 {
			return unknown
		}
	case backRetried, backReplayed, backResolved, backAbandoned:
		if reversal == "reverse" && before == 0 {
			return failed
		}
	}
	return sent
}

// nameOf returns the number of a call's step, and behind it that of its
// reversal.
func (w *simulation) nameOf(c call) string {
	w.t.Helper()
	reverted := reversal.Reverts(c.external)
	if reverted == nil {
		return strings.TrimPrefix(c.external, "workflow:"+w.id.String()+":")
	}
	i := slices.IndexFunc(w.get(w.id).Steps, func(s workflow.Step) bool { return s.Action != nil && *s.Action == *reverted })
	name := fmt.Sprintf("%d:reverse", i)
	if try := c.external[len(c.external)-3:]; try != "001" {
		name += ":" + string(try[2]-1)
	}
	return name
}

// play has everything happen, and returns the workflow at its end.
func (w *simulation) play() *workflow.Workflow {
	w.t.Helper()
	w.id = w.submit(w.plan.request())
	for range 1000 {
		w.drive()
		b := w.get(w.id)
		w.sound(b)
		switch {
		case b.State.Ended():
			return b
		case b.State == workflow.StateStuck:
			w.findOut(b)
		case b.State == workflow.StateCompensationFailed:
			w.seeTo(b)
		case w.plan.cancelAt >= 0 && b.CancelledBy == "" && b.Steps[w.plan.cancelAt].State == workflow.StepRunning:
			if err := w.service.Cancel(w.t.Context(), w.tenant, w.id, "ada"); err != nil {
				w.t.Fatal(err)
			}
		default:
			w.work(w.ends)
		}
	}
	w.t.Fatalf("the workflow does not end: %s", stands(w.get(w.id)))
	return nil
}

// sound checks the invariants: no two steps run concurrently, and no step
// begins before the one before it has ended.
func (w *simulation) sound(b *workflow.Workflow) {
	w.t.Helper()
	busy, seen := 0, "done"
	for i, s := range b.Steps {
		switch s.State {
		case workflow.StepRunning, workflow.StepReverting:
			busy++
		case workflow.StepPlanned:
			seen = "planned"
		case workflow.StepDone:
			if seen == "planned" {
				w.t.Errorf("step %d was done before those before it", i)
			}
		case workflow.StepFailed, workflow.StepSkipped, workflow.StepKept, workflow.StepReverted, workflow.StepRevertFailed, workflow.StepResolved:
		}
	}
	if busy > 1 {
		w.t.Errorf("%d steps run at once: %s", busy, stands(b))
	}
}

// findOut resolves the call that the workflow is stuck at.
func (w *simulation) findOut(b *workflow.Workflow) {
	w.t.Helper()
	found := deadletter.Resolution{Happened: true}
	for _, s := range b.Steps {
		if s.Action == nil || *s.Action != *b.WaitsFor {
			continue
		}
		switch w.plan.steps[slices.IndexFunc(b.Steps, func(o workflow.Step) bool { return o.Action == s.Action })].end {
		case endRerun:
			found = deadletter.Resolution{}
		case endGivenUp:
			found = deadletter.Resolution{GiveUp: true}
		case endSent, endThere, endFailed, endHappened:
		}
	}
	w.resolve(*b.WaitsFor, found)
}

// seeTo handles a failed reversal as the plan has it.
func (w *simulation) seeTo(b *workflow.Workflow) {
	w.t.Helper()
	i := slices.IndexFunc(b.Steps, func(s workflow.Step) bool { return s.State == workflow.StepRevertFailed })
	var err error
	switch w.plan.steps[i].back {
	case backRetried:
		err = w.service.Retry(w.t.Context(), w.tenant, w.id, "ada", "")
	case backReplayed:
		w.as(func(ctx context.Context, tx pgx.Tx) error {
			_, err := deadletter.Replay(ctx, tx, w.tenant, deadletter.BulkRequest{IDs: []envelope.ActionID{*b.Steps[i].ReversalAction}, Limit: 1, Actor: "ada"}, deadletter.ReplayOptions{})
			return err
		})
	case backResolved, backAbandoned:
		err = w.service.Resolve(w.t.Context(), w.tenant, w.id, "ada", "n", w.plan.steps[i].back == backAbandoned)
	case backDone, backHappened:
		w.t.Fatalf("the reversal of step %d failed: %+v", i, b.Steps[i])
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *simulation) matches(seed uint64) {
	w.t.Helper()
	b := w.play()
	want, calls := w.plan.model()
	if got := stands(b); got != want {
		w.t.Errorf("seed %d: the workflow stands at %q (%s: %s), and the model at %q; plan %+v", seed, got, b.Code, b.Message, want, w.plan)
	}
	if diff := cmp.Diff(calls, w.called); diff != "" {
		w.t.Errorf("seed %d: calls (-model +got):\n%s; plan %+v", seed, diff, w.plan)
	}
}

func TestRandomWorkflowsMatchTheModel(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)
	for seed := range uint64(60) {
		w := &simulation{fixture: o, plan: randomPlan(rand.New(rand.NewPCG(seed, 1))), tried: make(map[string]int), drive: o.sweep}
		w.matches(seed)
	}
}

// Several drivers run concurrently, each of which dies repeatedly at any
// statement, before its commit and just after it.
func TestDriversThatDieLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	o := newSharedFixture(t)
	db := &mortal{pool: o.db, rand: rand.New(rand.NewPCG(7, 7))}
	drivers := make([]*workflow.Driver, 3)
	for i := range drivers {
		drivers[i] = workflow.NewDriver(db, intake.New(db, settings.NewCache(), intake.Config{ApprovalWait: time.Hour}), slog.New(slog.DiscardHandler))
	}
	drive := func() {
		for range 2 {
			o.exec("UPDATE workflows SET check_at = now() WHERE check_at > now()")
			var all sync.WaitGroup
			for _, d := range drivers {
				all.Go(func() { _, _, _ = d.Sweep(t.Context()) }) // it dies, and that is the point
			}
			all.Wait()
		}
		// A driver that does not die finishes the workflows that can be.
		o.exec("UPDATE workflows SET check_at = now() WHERE check_at > now()")
		o.sweep()
	}
	for seed := range uint64(12) {
		w := &simulation{fixture: o, plan: randomPlan(rand.New(rand.NewPCG(seed, 2))), tried: make(map[string]int), drive: drive}
		w.matches(seed)
	}
	if db.deaths.Load() < 20 {
		t.Errorf("only %d deaths", db.deaths.Load())
	}
}

// mortal is a pool whose connections die: one in three transactions loses its
// connection at one of its first statements, before its commit, or after it.
type mortal struct {
	pool   postgres.Begins
	deaths atomic.Int64

	mu   sync.Mutex
	rand *rand.Rand
}

var errDied = errors.New("the process died")

// BeginTx begins a transaction that may be doomed.
func (m *mortal) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	tx, err := m.pool.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rand.IntN(3) > 0 {
		return tx, nil
	}
	return &doomed{Tx: tx, of: m, left: 1 + m.rand.IntN(20), late: m.rand.IntN(2) == 0}, nil
}

// doomed is a transaction that dies after a number of statements, or at its
// commit.
type doomed struct {
	pgx.Tx
	of   *mortal
	left int
	late bool
}

func (d *doomed) die(ctx context.Context) error {
	d.of.deaths.Add(1)
	_ = d.Conn().Close(ctx)
	_ = d.Rollback(ctx) // only so that the pool learns of it
	return errDied
}

func (d *doomed) step(ctx context.Context) error {
	if d.left--; d.left == 0 {
		return d.die(ctx)
	}
	return nil
}

// Exec dies or passes on.
func (d *doomed) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := d.step(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return d.Tx.Exec(ctx, sql, args...)
}

// Query dies or passes on.
func (d *doomed) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := d.step(ctx); err != nil {
		return nil, err
	}
	return d.Tx.Query(ctx, sql, args...)
}

// Commit dies before or after.
func (d *doomed) Commit(ctx context.Context) error {
	if !d.late {
		return d.die(ctx)
	}
	if err := d.Tx.Commit(ctx); err != nil {
		return err
	}
	d.of.deaths.Add(1)
	return errDied
}

func TestASharedDatabaseHasSeveralTenants(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	a, b := fixtureIn(t, db), fixtureIn(t, db)

	first, second := a.submit(steps(false, "find", `{}`)), b.submit(steps(false, "find", `{}`))
	a.run(always(sent))

	a.wants(first, "completed: done")
	b.wants(second, "completed: done")
}
