package reversal_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

func TestAReversalIsAnActionFilledFromTheFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.done("create", `{"name":"Ana"}`, sent)

	a := f.revert(id)
	calls := f.settle(sent)

	if a.Err != nil || a.Known || a.Tool != key("create") || a.By != key("delete") || a.Phase != envelope.PhaseApproved {
		t.Errorf("Revert = %+v", a)
	}
	if want := []string{`delete {"id":"c-1"}`}; !slices.Equal(calls, want) {
		t.Errorf("calls = %q, want %q", calls, want)
	}
	first, back := f.view(id), f.view(a.Action)
	if first.RevertedBy == nil || *first.RevertedBy != (outbox.Reversal{Action: a.Action, Phase: envelope.PhaseCompleted}) {
		t.Errorf("the first is reverted by %+v", first.RevertedBy)
	}
	if reverts := reversal.Reverts(back.Envelope.ExternalID); reverts == nil || *reverts != id || back.Envelope.AutomationID != reversal.Automation {
		t.Errorf("the reversal is %+v", back.Envelope)
	}
	again := f.revert(id)
	if again.Err != nil || !again.Known || again.Action != a.Action || again.Phase != envelope.PhaseCompleted {
		t.Errorf("reverting again = %+v, want the same reversal", again)
	}
}

func TestIrreversibleActionsAreRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pending := func() envelope.ActionID {
		f.mode("", "crm:create", envelope.ModeRequireApproval)
		defer f.mode("", "crm:create", envelope.ModeAllow)
		return f.propose("create", `{"name":"p"}`, envelope.EmployeeID{})
	}
	reverted := f.done("create", `{"name":"r"}`, sent)
	back := f.made(reverted)
	f.settle(sent)
	for name, test := range map[string]struct {
		id   envelope.ActionID
		want string
	}{
		"nothing is declared":              {f.done("send", `{}`, sent), "/tool no_reversal"},
		"it only read":                     {f.done("find", `{}`, sent), "/effect read"},
		"nobody knows whether it happened": {f.done("create", `{"name":"u"}`, unknown), "/phase unknown"},
		"it failed":                        {f.done("create", `{"name":"f"}`, refused), "/phase no_effect"},
		"it has not been sent":             {pending(), "/phase not_sent"},
		"its effect was there already":     {f.done("create", `{"name":"c"}`, outcome{status: envelope.StatusConflict, result: `{"id":"c-1"}`}), "/envelope/result/status already_present"},
		"the answer lacks what is needed":  {f.done("create", `{"name":"m"}`, outcome{status: envelope.StatusSent, result: `{"contact":"c-1"}`}), "/outputs/id reference_missing"},
		"what is needed is a secret":       {f.done("create", `{"name":"s"}`, outcome{status: envelope.StatusSent, result: `{"id":"[REDACTED]"}`}), "/outputs/id reference_redacted"},
		"what is needed does not fit":      {f.done("create", `{"name":"n"}`, outcome{status: envelope.StatusSent, result: `{"id":7}`}), "/reversal/args/id type"},
		"it is a reversal":                 {back, "/reverts reversal"},
	} {
		a := f.revert(test.id)
		if got := refusedFor(a.Err); got != test.want || a.Action != (envelope.ActionID{}) {
			t.Errorf("%s: Revert = %q (%v), want %q", name, got, a.Err, test.want)
		}
	}
	if a := f.revert(envelope.NewActionID()); !errors.Is(a.Err, fault.NotFound) {
		t.Errorf("an action that does not exist: %v", a.Err)
	}
	hidden := f.request(reverted)
	hidden.Sees = func(session string) bool { return session != "s-one" }
	answers, err := f.service.Revert(t.Context(), hidden)
	if err != nil || !errors.Is(answers[0].Err, fault.NotFound) || answers[0].Action != (envelope.ActionID{}) {
		t.Errorf("an action of another session: %+v, %v", answers, err)
	}
}

func TestAReversalIsRefusedWhileItsSourceIsOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.done("create", `{"name":"Ana"}`, sent)
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutSource(ctx, tx, f.tenant, catalog.Source{ID: "crm", Kind: catalog.KindBuiltin})
	})

	if a := f.revert(id); a.Err == nil || f.view(id).RevertedBy != nil {
		t.Errorf("Revert = %+v", a)
	}
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutSource(ctx, tx, f.tenant, catalog.Source{ID: "crm", Kind: catalog.KindBuiltin, Enabled: true})
	})
	f.made(id)
}

// A repeated request gets the existing reversal, even if the catalog has
// changed.
func TestChangedDeclarationMakesNoSecondReversal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id, other := f.done("create", `{"name":"a"}`, sent), f.done("create", `{"name":"b"}`, sent)
	back := f.made(id)

	f.declare("create", "archive", `{"id":"$outputs/id"}`)
	changed, late := f.revert(id), f.revert(other)
	f.declare("create", "", "")
	taken := f.revert(id)

	if changed.Action != back || taken.Action != back || !changed.Known || !taken.Known {
		t.Errorf("after changes of the catalog: %+v and %+v, want %s", changed, taken, back)
	}
	if late.By != key("archive") {
		t.Errorf("the first reversal after the change is by %s, want archive", late.By)
	}
}

func TestOnlyReversalsWithoutEffectAreRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.mode(reversal.Automation, "crm:delete", envelope.ModeRequireApproval)
	waiting := f.done("create", `{"name":"a"}`, sent)
	first := f.made(waiting)
	if again := f.revert(waiting); again.Action != first || again.Phase != envelope.PhasePending {
		t.Errorf("while one waits: %+v", again)
	}
	f.as(func(ctx context.Context, tx pgx.Tx) error { return outbox.Undo(ctx, tx, f.tenant, first, "ada") })
	second := f.made(waiting)
	if got := f.view(waiting).RevertedBy; got == nil || got.Action != second || second == first {
		t.Errorf("it is reverted by %+v, want %s", got, second)
	}

	f.mode(reversal.Automation, "crm:delete", envelope.ModeDeny)
	denied := f.done("create", `{"name":"b"}`, sent)
	if one, two := f.made(denied), f.made(denied); one == two || f.view(one).Phase != envelope.PhaseDenied {
		t.Errorf("a reversal that policy denies: %s and %s", one, two)
	}

	f.mode(reversal.Automation, "crm:delete", envelope.ModeAllow)
	failing := f.done("create", `{"name":"c"}`, sent)
	dead := f.made(failing)
	f.settle(refused)
	if a := f.revert(failing); refusedFor(a.Err) != "/reverted_by dead_letter" {
		t.Errorf("a reversal that is a dead letter: %+v", a)
	}
	f.discard(dead)
	if again := f.made(failing); again == dead {
		t.Error("a reversal that was given up is not made again")
	}
	f.settle(sent)

	lost := f.done("create", `{"name":"d"}`, sent)
	doubtful := f.made(lost)
	f.settle(unknown)
	if a := f.revert(lost); a.Err != nil || a.Action != doubtful || a.Phase != envelope.PhaseUnknown {
		t.Errorf("a reversal of unknown outcome: %+v", a)
	}
	// A person replays it with allow_duplicates, and then policy denies it. The
	// outcome of the first attempt is unknown.
	f.mode(reversal.Automation, "crm:delete", envelope.ModeDeny)
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		_, err := deadletter.Replay(ctx, tx, f.tenant, deadletter.BulkRequest{IDs: []envelope.ActionID{doubtful}, Limit: 1, Actor: "ada"}, deadletter.ReplayOptions{AllowDuplicates: true})
		if err == nil {
			_, err = tx.Exec(ctx, "WITH gone AS (DELETE FROM outbox WHERE action_id = $1) UPDATE actions SET approval_state = 'denied' WHERE action_id = $1", doubtful.String())
		}
		return err
	})
	if a := f.revert(lost); refusedFor(a.Err) != "/reverted_by sent_before" {
		t.Errorf("a reversal that was denied after it may have been sent: %+v", a)
	}
}

// A reversal is proposed in the name, session and tools of who reverts.
func TestAReversalGivesNoMoreRightsThanItsTool(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	employee := envelope.EmployeeID(uuid.New())
	id := f.propose("create", `{"name":"Ana"}`, employee)
	other := f.propose("create", `{"name":"Bo"}`, employee)
	f.settle(sent)

	narrow := f.request(id)
	narrow.By.Tools, narrow.By.Session = []string{"crm:create"}, "s-two"
	answers, err := f.service.Revert(t.Context(), narrow)
	if err != nil {
		t.Fatal(err)
	}
	if answers[0].Err == nil || answers[0].Action != (envelope.ActionID{}) {
		t.Errorf("a token that is not for the tool of the reversal: %+v, want an error and no action", answers[0])
	}
	if v := f.view(f.made(id)); v.Envelope.EmployeeID != (envelope.EmployeeID{}) || v.Envelope.SessionID != "" {
		t.Errorf("whoever may not name the employee reverts for %+v", v.Envelope)
	}
	named := f.request(other)
	named.By.Names = identity.EveryName()
	if answers, err = f.service.Revert(t.Context(), named); err != nil {
		t.Fatal(err)
	}
	if v := f.view(answers[0].Action); v.Envelope.EmployeeID != employee {
		t.Errorf("whoever may name the employee reverts for %+v", v.Envelope)
	}
}

func TestADryRunProposesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.mode(reversal.Automation, "crm:delete", envelope.ModeRequireApproval)
	id, send := f.done("create", `{"name":"Ana"}`, sent), f.done("send", `{}`, sent)
	req := f.request(id, send, id)
	req.DryRun = true

	answers, err := f.service.Revert(t.Context(), req)

	if err != nil || len(answers) != 3 || answers[0].Phase != envelope.PhasePending || answers[0].By != key("delete") || answers[2].Action != answers[0].Action ||
		refusedFor(answers[1].Err) != "/tool no_reversal" {
		t.Errorf("Revert = %+v, %v", answers, err)
	}
	if f.view(id).RevertedBy != nil || f.view(answers[0].Action).Phase != "" {
		t.Error("a dry run proposed something")
	}
}

// Concurrent reverts of the same actions, in any order, make one reversal each.
func TestRevertsAtOnceMakeOneReversal(t *testing.T) {
	t.Parallel()
	f := newSharedFixture(t)
	var ids []envelope.ActionID
	for range 6 {
		ids = append(ids, f.propose("create", `{"name":"Ana"}`, envelope.EmployeeID{}))
	}
	f.settle(sent)
	const people = 6
	var mu sync.Mutex
	made := make(map[envelope.ActionID][]reversal.Answer)
	var all sync.WaitGroup
	for n := range people {
		all.Go(func() {
			_, service := f.services()
			named := append(slices.Clone(ids[n:]), ids[:n]...)
			answers, err := service.Revert(t.Context(), f.request(named...))
			if err != nil {
				t.Errorf("Revert = %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, a := range answers {
				made[a.Reverted] = append(made[a.Reverted], a)
			}
		})
	}
	all.Wait()

	for _, id := range ids {
		fresh := 0
		for _, a := range made[id] {
			if a.Err != nil || a.Action != made[id][0].Action {
				t.Errorf("answers about one action: %+v and %+v", a, made[id][0])
			}
			if !a.Known {
				fresh++
			}
		}
		if fresh != 1 || len(made[id]) != people {
			t.Errorf("%d of %d answers are about a new reversal, want 1 of %d", fresh, len(made[id]), people)
		}
	}
	if calls := f.settle(sent); len(calls) != len(ids) {
		t.Errorf("%d calls, want one for each of %d", len(calls), len(ids))
	}
}

func TestAnAtomicWorkflowThatGoesOnKeepsItsSteps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	driver, service := f.driver()
	sweep := func() {
		for {
			n, _, err := driver.Sweep(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				return
			}
		}
	}
	submit := func() *workflow.Workflow {
		by := f.by()
		by.Names = identity.EveryName()
		id, _, err := service.Submit(t.Context(), by, workflow.Request{Atomic: true, ExternalID: uuid.NewString(), Steps: []workflow.StepRequest{
			{Tool: "crm:create", Inputs: json.RawMessage(`{"name":"a"}`)}, {Tool: "crm:create", Inputs: json.RawMessage(`{"name":"b"}`)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		sweep()
		f.settle(sent)
		sweep()
		var w *workflow.Workflow
		f.as(func(ctx context.Context, tx pgx.Tx) (err error) {
			w, err = workflow.Get(ctx, tx, f.tenant, id)
			return err
		})
		return w
	}

	open := submit()
	if a := f.revert(*open.Steps[0].Action); refusedFor(a.Err) != "/workflow_id workflow" {
		t.Errorf("a step while its workflow goes on: %+v", a)
	}
	f.settle(refused)
	sweep()
	back := f.revert(*open.Steps[0].Action)
	if back.Err != nil || !back.Known || f.view(*open.Steps[0].Action).RevertedBy.Action != back.Action {
		t.Errorf("a step that its workflow reverts: %+v", back)
	}
	f.settle(sent)
	sweep()

	ended := submit()
	f.settle(sent)
	sweep()
	f.made(*ended.Steps[0].Action)
}

// Selections of many actions list those that may have had an effect, newest
// first.
func TestSelect(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	one := f.done("create", `{"name":"a"}`, sent)
	lost := f.done("create", `{"name":"b"}`, unknown)
	f.done("find", `{}`, sent)
	f.done("create", `{"name":"c"}`, refused)
	two := f.done("send", `{}`, sent)
	f.made(one)
	f.settle(sent)
	for name, test := range map[string]struct {
		filter reversal.Filter
		want   []envelope.ActionID
	}{
		"all":             {reversal.Filter{Limit: 10}, []envelope.ActionID{two, lost, one}},
		"a page":          {reversal.Filter{Before: two, Limit: 1}, []envelope.ActionID{lost}},
		"a tool":          {reversal.Filter{Source: "crm", Tool: "create", Limit: 10}, []envelope.ActionID{lost, one}},
		"another session": {reversal.Filter{Session: "s-two", Limit: 10}, nil},
		"a workflow":      {reversal.Filter{Workflow: uuid.New(), Limit: 10}, nil},
		"earlier":         {reversal.Filter{Until: f.view(one).Envelope.Timestamps.CreatedAt, Limit: 10}, nil},
	} {
		var got []envelope.ActionID
		f.as(func(ctx context.Context, tx pgx.Tx) (err error) {
			got, err = reversal.Select(ctx, tx, f.tenant, test.filter)
			return err
		})
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: Select = %v, want %v", name, got, test.want)
		}
	}
}
