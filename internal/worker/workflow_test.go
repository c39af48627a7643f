package worker_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// workflowOf submits a workflow of calls, in each of which $ stands for the answer
// of the previous one.
func (y *fixture) workflowOf(atomic bool, tools ...string) workflow.ID {
	y.t.Helper()
	r := workflow.Request{Atomic: atomic, ExternalID: uuid.NewString()}
	for i, tool := range tools {
		inputs := `{"n":0}`
		if i > 0 {
			inputs = `{"n":"$` + string(rune('0'+i-1)) + `.n"}`
		}
		r.Steps = append(r.Steps, workflow.StepRequest{Tool: "fake:" + tool, Inputs: json.RawMessage(inputs)})
	}
	id, _, err := workflow.NewService(y.db, settings.NewCache(), func() {}).Submit(y.t.Context(), intake.Submitter{Tenant: y.tenant, Name: "agent"}, r)
	if err != nil {
		y.t.Fatal(err)
	}
	return id
}

// counting answers with one more than it was given.
func counting(_ context.Context, call source.Call) sourcetest.Step {
	var in struct{ N int }
	if json.Unmarshal(call.Args, &in) != nil {
		return sourcetest.Failed()
	}
	out, err := json.Marshal(map[string]int{"n": in.N + 1})
	if err != nil {
		return sourcetest.Failed()
	}
	return sourcetest.Done(string(out))
}

func TestTheFleetRunsAWorkflow(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	for _, tool := range []string{toolRead, toolKeyed, toolOnce} {
		y.src.On(tool, counting)
	}
	y.run(y.fleet(y.src, config("w1")))

	id := y.workflowOf(false, toolRead, toolKeyed, toolOnce, toolKeyed)

	y.until("SELECT state = 'completed' FROM workflows WHERE workflow_id = $1", id.String())
	if got := one[string](y, "SELECT args->>'n' FROM actions WHERE external_id = $1", "workflow:"+id.String()+":3"); got != "3" {
		t.Errorf("the last step was called with %s, want 3: one more from each before it", got)
	}
}

// Two fleets, one of which is stopped in the middle: an atomic workflow whose last
// step fails is reverted, each effect once.
func TestTheFleetTakesAWorkflowBack(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		for tool, by := range map[string]string{toolKeyed: toolOnce, toolOnce: toolKeyed} {
			err := catalog.DescribeTool(ctx, tx, y.tenant, policy.Key{Source: "fake", Action: tool}, catalog.Description{Reversal: &catalog.Reversal{
				Tool: policy.Key{Source: "fake", Action: by}, Args: json.RawMessage(`{"back":true,"n":"$inputs/n"}`),
			}})
			if err != nil {
				return err
			}
		}
		return nil
	})
	y.src.On(toolKeyed, counting)
	y.src.On(toolOnce, func(ctx context.Context, call source.Call) sourcetest.Step {
		var in struct {
			N    int
			Back bool
		}
		if json.Unmarshal(call.Args, &in) == nil && in.N == 2 && !in.Back {
			return sourcetest.Failed()
		}
		return counting(ctx, call)
	})
	stop := y.run(y.fleet(y.src, config("w1")))
	y.run(y.fleet(y.src, config("w2")))

	id := y.workflowOf(true, toolKeyed, toolOnce, toolOnce)
	y.until("SELECT EXISTS (SELECT FROM actions WHERE workflow_id = $1)", id.String())
	stop()

	y.until("SELECT state = 'reverted' FROM workflows WHERE workflow_id = $1", id.String())
	if got := one[int](y, "SELECT count(1) FROM actions WHERE workflow_id = $1 AND automation_id = 'countersign.reversal'", id.String()); got != 2 {
		t.Errorf("%d reversals, want 2", got)
	}
	if got := y.src.TotalEffects(); got != 4 {
		t.Errorf("%d effects, want two and their reversals", got)
	}
}

func TestTheFleetForgetsOldWorkflows(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.workflowOf(false, toolRead)
	y.exec("UPDATE workflows SET state = 'completed', ended_at = now() - interval '40 days'")
	y.exec("INSERT INTO retention (tenant_id, kind, days, action) VALUES ($1, 'actions', 30, 'delete')", y.tenant.String())

	y.run(y.fleet(y.src, config("w1")))

	y.until("SELECT NOT EXISTS (SELECT FROM workflows)")
}
