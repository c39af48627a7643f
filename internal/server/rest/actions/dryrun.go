package actions

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// answerDryRun answers with the outcome that a proposal would have. It stores one row of the
// execution log and nothing else.
func answerDryRun(c *request.Call, p *envelope.Proposal) error {
	by := c.Submitter()
	v, err := c.Intake.Preview(c.R.Context(), by, p)
	if err != nil {
		return err
	}
	noted, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (envelope.ActionID, error) {
		return execution.RecordDryRun(ctx, tx, by, p, v)
	})
	if err != nil {
		return err
	}
	inv := wire.Invocation{
		ID: noted, Status: wire.ExecutionDryRun, Tool: v.Tool.Key.String(), Known: v.Known != (envelope.ActionID{}),
		Policy: wire.PolicyDecision{Mode: v.Decision.Mode, Source: v.Decision.Source, Trace: v.Decision.Trace},
		DryRun: &wire.DryRun{
			Prediction: v.Prediction, Plan: v.Plan.String(), PlanUntil: v.Plan.IssuedAt.Add(intake.PlanLifetime).UTC(),
			Call: wire.PlannedCall{
				Tool: v.Tool.Key.String(), Args: v.Args, Effect: v.Tool.Effect, Repeatable: v.Tool.Effect != envelope.EffectOnce, Reversible: v.Tool.Reversible(),
			},
		},
	}
	if inv.Known {
		inv.DryRun.KnownID = &v.Known
	}
	return c.JSON(http.StatusOK, inv)
}
