package actions

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// dryRun is what a call would do.
type dryRun struct {
	intake.Prediction
	// Call is what would be sent.
	Call wire.PlannedCall `json:"call"`
	// KnownID is the action that has this external id and content already.
	KnownID *envelope.ActionID `json:"known_action_id"`
	// Plan proves that a later call is this one.
	Plan      string    `json:"plan"`
	PlanUntil time.Time `json:"plan_expires_at"`
}

// answerDryRun answers with what a proposal would do. It stores one row of the
// execution log and nothing else.
func answerDryRun(c *request.Call, p *envelope.Proposal) error {
	by := c.Submitter()
	v, err := c.Intake.Preview(c.R.Context(), by, p)
	if err != nil {
		return err
	}
	noted, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (execution.Execution, error) {
		return execution.RecordDryRun(ctx, tx, by, p, v)
	})
	if err != nil {
		return err
	}
	inv := invocation{
		ID: noted.ID, Status: execution.StatusDryRun, Tool: v.Tool.Key.String(), Known: v.Known != (envelope.ActionID{}),
		Policy: policyDecision{Mode: v.Decision.Mode, Source: v.Decision.Source, Trace: v.Decision.TraceJSON},
		DryRun: &dryRun{
			Prediction: v.Prediction, Plan: v.Plan.String(), PlanUntil: v.Plan.IssuedAt.Add(intake.PlanLifetime).UTC(),
			Call: wire.PlannedCall{
				Tool: v.Tool.Key.String(), Args: v.Args, Effect: v.Tool.Effect, Repeatable: v.Tool.Effect != envelope.EffectOnce,
			},
		},
	}
	if inv.Known {
		inv.DryRun.KnownID = &v.Known
	}
	return c.JSON(http.StatusOK, inv)
}
