package workflow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/action/workflow"
)

func always(out outcome) func(call) outcome { return func(call) outcome { return out } }

// failing returns out for the calls of a tool, and completes the others.
func failing(tool string, out outcome) func(call) outcome {
	return func(c call) outcome {
		if c.tool == tool {
			return out
		}
		return sent
	}
}

func TestStepsRunInOrderWithEarlierAnswers(t *testing.T) {
	t.Parallel()
	o := newFixture(t)

	id := o.submit(steps(false, "create", `{"name":"Ana","tags":["$$5","$x"]}`, "find", `{"q":{"all":["$0.id",{"n":"$0.age"}]}}`, "link", `{"from":"$1.hits[1].id","to":"$1[\"a.b\"]"}`))
	calls := o.run(func(c call) outcome {
		if c.tool == "find" {
			return answering(`{"hits":[{"id":"h-0"},{"id":"h-1"}],"a.b":"odd"}`)
		}
		return answering(`{"id":"c-1","age":12345678901234567890}`)
	})

	b := o.wants(id, "completed: done done done")
	want := []call{
		{"create", "workflow:" + id.String() + ":0", `{"name":"Ana","tags":["$5","$x"]}`},
		{"find", "workflow:" + id.String() + ":1", `{"q":{"all":["c-1",{"n":12345678901234567890}]}}`},
		{"link", "workflow:" + id.String() + ":2", `{"to":"odd","from":"h-1"}`},
	}
	if diff := cmp.Diff(want, calls, cmp.AllowUnexported(call{})); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if b.Code != "" || b.EndedAt == nil || b.WaitsFor != nil || len(b.Actions()) != 3 {
		t.Errorf("workflow = %+v", b)
	}
}

func TestWithoutAtomicItStopsAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	o := newFixture(t)

	id := o.submit(steps(false, "create", `{"name":"Ana"}`, "send", `{}`, "find", `{}`))
	calls := o.run(failing("send", failed))

	b := o.wants(id, "failed: done failed skipped")
	if b.Code != workflow.CodeStepFailed || b.StoppedAt == nil || *b.StoppedAt != 1 || b.Steps[1].Code != "tool_error" {
		t.Errorf("it failed for %s at %v: %+v", b.Code, b.StoppedAt, b.Steps[1])
	}
	if diff := cmp.Diff([]string{"create", "send"}, names(calls)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestAnAtomicWorkflowGoesBackInReverse(t *testing.T) {
	t.Parallel()
	o := newFixture(t)

	id := o.submit(steps(true, "create", `{"name":"Ana"}`, "find", `{}`, "link", `{"from":"$0.id","to":"b"}`, "create", `{"name":"Bo"}`))
	calls := o.run(func(c call) outcome {
		if c.args == `{"name":"Bo"}` {
			return failed
		}
		return sent
	})

	b := o.wants(id, "reverted: reverted kept reverted failed")
	if diff := cmp.Diff([]string{"create", "find", "link", "create", "unlink", "delete"}, names(calls)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if got := calls[4]; got.args != `{"to":"b","from":"c-1"}` || got.external != "revert:"+b.Steps[2].Action.String()+":001" {
		t.Errorf("the link was taken back by %+v", got)
	}
	if got := calls[5].args; got != `{"id":"c-1"}` {
		t.Errorf("the contact was deleted with %s", got)
	}
	if b.Code != workflow.CodeStepFailed {
		t.Errorf("code = %s", b.Code)
	}
}
