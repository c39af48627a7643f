package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// complaints are the fields of an error, as "pointer rule".
func complaints(err error) []string {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return []string{fmt.Sprint(err)}
	}
	lines := []string{}
	for _, f := range broken.Fields {
		lines = append(lines, f.Pointer+" "+string(f.Rule))
	}
	slices.Sort(lines)
	return lines
}

func TestInvalidWorkflowsAreRejectedBeforeAnyStep(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	// send has no reversal, policy denies the reversal of ask, and the tool of
	// link's reversal is missing in the next case.
	for name, test := range map[string]struct {
		workflow workflow.Request
		want     []string
	}{
		"all is well":               {steps(true, "create", `{"name":"a"}`, "link", `{"from":"$0.id","to":"$0[\"id\"]"}`, "find", `{"any":"$1.x"}`), nil},
		"no steps":                  {steps(false), []string{"/steps max_items"}},
		"too many steps":            {steps(false, slices.Repeat([]string{"find", "{}"}, 101)...), []string{"/steps max_items"}},
		"an unknown tool":           {steps(false, "find", `{}`, "creat", `{"name":"a"}`), []string{"/steps/1/tool unknown_tool"}},
		"inputs that are no object": {steps(false, "find", `[]`), []string{"/steps/0/inputs type"}},
		"a key twice":               {steps(false, "find", `{"a":1,"a":2}`), []string{"/steps/0/inputs/a duplicate_key"}},
		"inputs that do not fit":    {steps(false, "create", `{"name":1,"x":2}`), []string{"/steps/0/inputs/name type", "/steps/0/inputs/x unknown_field"}},
		"an input that is missing":  {steps(false, "create", `{}`), []string{"/steps/0/inputs/name required"}},
		"beside a reference":        {steps(false, "find", `{}`, "link", `{"from":"$0.a"}`), []string{"/steps/1/inputs/to required"}},
		"around a reference":        {steps(false, "find", `{}`, "create", `{"name":"n","tags":{"a":"$0.a"}}`), []string{"/steps/1/inputs/tags type"}},
		"where none may stand":      {steps(false, "find", `{}`, "create", `{"name":"$0.a","x":"$0.b"}`), []string{"/steps/1/inputs/x unknown_field"}},
		"of a declared type":        {steps(false, "create", `{"name":"a"}`, "create", `{"name":"$0.age"}`), []string{"/steps/1/inputs/name type"}},
		"of a type that fits":       {steps(false, "create", `{"name":"a"}`, "create", `{"name":"$0.id","age":"$0.age"}`), nil},
		"of a type nobody declares": {steps(false, "create", `{"name":"a"}`, "create", `{"name":"$0.more.x","age":"$0.more.x"}`), nil},
		"to what is never answered": {steps(false, "create", `{"name":"a"}`, "create", `{"name":"$0.nick"}`), []string{"/steps/1/inputs/name reference"}},
		"where there is a choice":   {steps(false, "find", `{}`, "either", `{"kind":"$0.kind"}`), nil},
		"to no step":                {steps(false, "find", `{"a":"$5.00"}`), []string{"/steps/0/inputs/a reference"}},
		"to a later step":           {steps(false, "find", `{"a":"$1.x"}`, "find", `{}`), []string{"/steps/0/inputs/a order"}},
		"to itself":                 {steps(false, "find", `{"a":"$0.x"}`), []string{"/steps/0/inputs/a cycle"}},
		"in a circle":               {steps(false, "find", `{"a":"$2.x"}`, "find", `{"b":"$0.x"}`, "find", `{"c":["$1.x"]}`), []string{"/steps/0/inputs/a cycle", "/steps/1/inputs/b cycle", "/steps/2/inputs/c/0 cycle"}},
		"that is none":              {steps(false, "find", `{}`, "find", `{"a":"$0..x","b":"$0[x]","c":"$0.a[","d":"$100","e":"$x.y","f":"$"}`), []string{"/steps/1/inputs/a reference", "/steps/1/inputs/b reference", "/steps/1/inputs/c reference"}},
		"what policy denies":        {steps(false, "find", `{}`, "no", `{}`), []string{"/steps/1/tool policy_denied"}},
		"atomic, and irreversible":  {steps(true, "find", `{}`, "send", `{}`), []string{"/steps/1/tool irreversible"}},
		"several at once":           {steps(true, "send", `{}`, "create", `{}`), []string{"/steps/0/tool irreversible", "/steps/1/inputs/name required"}},
	} {
		_, err := o.service.Preview(t.Context(), o.by(), test.workflow)
		_, _, submitted := o.service.Submit(t.Context(), o.by(), test.workflow)
		got := complaints(err)
		if err == nil {
			got = nil
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: complaints (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(complaints(err), complaints(submitted)); diff != "" {
			t.Errorf("%s: a dry run says other than the submission:\n%s", name, diff)
		}
	}
}

func TestCyclesAreReported(t *testing.T) {
	t.Parallel()
	o := newFixture(t)

	_, err := o.service.Preview(t.Context(), o.by(), steps(false, "find", `{}`, "find", `{"b":"$2.x"}`, "find", `{"c":"$1.x"}`))

	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok || !strings.Contains(broken.Fields[0].Message, "1 → 2 → 1") {
		t.Errorf("Preview = %+v, want the circle 1 → 2 → 1", broken)
	}
}

func TestAnAtomicWorkflowNeedsReversalsThatWork(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(o *fixture){
		"the reversal's tool is gone":          func(o *fixture) { o.reversal("create", "vanish", `{}`) },
		"policy denies the reversal":           func(o *fixture) { o.mode(reversal.Automation, "crm:delete", envelope.ModeDeny) },
		"it needs what the inputs lack":        func(o *fixture) { o.reversal("create", "delete", `{"id":"$inputs/id"}`) },
		"it needs what is never answered":      func(o *fixture) { o.reversal("create", "delete", `{"id":"$outputs/key"}`) },
		"it needs what is below another value": func(o *fixture) { o.reversal("create", "delete", `{"id":"$inputs/name/first"}`) },
	} {
		o := newFixture(t)
		prepare(o)

		_, err := o.service.Preview(t.Context(), o.by(), steps(true, "create", `{"name":"a"}`))
		_, loose := o.service.Preview(t.Context(), o.by(), steps(false, "create", `{"name":"a"}`))

		if diff := cmp.Diff([]string{"/steps/0/tool irreversible"}, complaints(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if loose != nil {
			t.Errorf("%s: without atomic = %v", name, loose)
		}
	}
}

func TestDryRunReturnsThePlanAndWritesNothing(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	r := steps(true, "create", `{"name":"a"}`, "ask", `{"x":"$0.id"}`, "find", `{}`)

	got, err := o.service.Preview(t.Context(), o.by(), r)

	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range got {
		undo := ""
		if p.Reversal != nil {
			undo = p.Reversal.Tool.String()
		}
		lines = append(lines, strings.Join([]string{p.Tool.String(), string(p.Mode), strings.Join(p.References, " "), undo}, "|"))
	}
	want := []string{"crm:create|allow||crm:delete", "crm:ask|require_approval|$steps.0/id|crm:unlink", "crm:find|allow||"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("Preview (-want +got):\n%s", diff)
	}
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		all, err := workflow.List(ctx, tx, o.tenant, workflow.Filter{Limit: 10})
		if len(all) != 0 {
			t.Errorf("there are %d workflows", len(all))
		}
		return err
	})
}

func TestDoNotContactIsCheckedBeforeAnyStep(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		if err := limits.PutToolRule(ctx, tx, o.tenant, limits.ToolRule{Source: "crm", Name: "send", Recipients: &[]string{"/to"}}, "ada"); err != nil {
			return err
		}
		_, err := contact.PutEntries(ctx, tx, o.tenant, []contact.Entry{{Value: "ana@example.org"}}, "ada")
		return err
	})

	_, err := o.service.Preview(t.Context(), o.by(), steps(false, "send", `{"to":"bo@example.org"}`, "send", `{"to":"ana@example.org"}`))

	if diff := cmp.Diff([]string{"/steps/1/tool policy_denied"}, complaints(err)); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
}

func TestSubmitIsIdempotentByName(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	r := steps(false, "create", `{"name":"a"}`)
	id := o.submit(r)
	again := r
	again.Steps = []workflow.StepRequest{{Tool: "crm:create", Inputs: json.RawMessage(`{ "name" : "a" }`)}}
	other := r
	other.Steps = []workflow.StepRequest{{Tool: "crm:create", Inputs: json.RawMessage(`{"name":"b"}`)}}
	atomic := r
	atomic.Atomic = true

	got, known, err := o.service.Submit(t.Context(), o.by(), again)

	if got != id || !known || err != nil {
		t.Errorf("Submit again = %s, %t, %v, want %s and known", got, known, err, id)
	}
	for name, r := range map[string]workflow.Request{"other inputs": other, "atomic": atomic} {
		if _, _, err := o.service.Submit(t.Context(), o.by(), r); !errors.Is(err, fault.Conflict) {
			t.Errorf("Submit with %s = %v, want fault.Conflict", name, err)
		}
	}
	strange := o.by()
	strange.Token, strange.Session, strange.Sight = uuid.Must(uuid.NewV7()), "s-other", intake.SeesSession
	for name, r := range map[string]workflow.Request{"the same": again, "other inputs": other} {
		if _, _, err := o.service.Submit(t.Context(), strange, r); err == nil || err.Error() != intake.ErrTaken().Error() {
			t.Errorf("Submit of %s by another session = %v, want ErrTaken", name, err)
		}
	}
}

func TestASubmitterIsBound(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	by := o.by()
	by.Session, by.Employee = "mine", envelope.EmployeeID(uuid.Must(uuid.NewV7()))
	r := steps(false, "find", `{}`)
	r.Session, r.Employee, r.Automation = "theirs", envelope.EmployeeID(uuid.Must(uuid.NewV7())), "a"

	_, _, err := o.service.Submit(t.Context(), by, r)

	if diff := cmp.Diff([]string{"/employee_id employee", "/session_id session"}, complaints(err)); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
	r.Session, r.Employee, r.Automation = "", envelope.EmployeeID{}, reversal.Automation
	if _, _, err := o.service.Submit(t.Context(), by, r); !slices.Equal(complaints(err), []string{"/automation_id reserved"}) {
		t.Errorf("Submit under a reserved automation = %v", err)
	}
	r.Automation = ""
	id, _, err := o.service.Submit(t.Context(), by, r)
	if err != nil {
		t.Fatal(err)
	}
	if b := o.get(id); b.Session != "mine" || b.Employee != by.Employee {
		t.Errorf("the workflow is of session %q and employee %s", b.Session, b.Employee)
	}
}
