package policies

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Explain handles POST /api/v1/policy/explain. It returns the decision of
// policy about a call, with the reasons. It stores nothing.
func Explain(c *request.Call, body wire.Question) error {
	return c.Suggest(request.NounTool, body.Tool, request.Answer(c, func(ctx context.Context, tx pgx.Tx) (answer wire.Explanation, err error) {
		snap, state, err := c.Catalog.CurrentAndState(ctx, tx, c.By.Tenant)
		if err != nil {
			return answer, err
		}
		tool, err := snap.Resolve(envelope.Tool{Name: body.Tool}, c.By.Tools)
		if err != nil {
			// The tool is a text here, and not an object with a name as in a proposal.
			return answer, request.Moved("/tool/name", "/tool", request.Moved("/tool/source", "/tool", err))
		}
		if body.Args != nil {
			if err := tool.Check(ctx, body.Args); err != nil {
				return answer, err
			}
		}
		decisions, err := decision.Decide(ctx, tx, []*decision.Action{{Settings: snap, Tool: tool, Proposal: settings.Proposal{
			Automation: body.Automation, AskedApproval: body.Approval == envelope.ApprovalRequired, Employee: body.Employee, Session: body.Session,
			Risk: policy.RaiseRisk(body.Risk, tool.Risk.Envelope()), Args: body.Args, AnyArgs: body.Args == nil, Now: state.Now,
		}}})
		if err != nil {
			return answer, err
		}
		d := decisions[0]
		trace := request.Map(d.Trace, func(s policy.Step) wire.PolicyStep { return wire.PolicyStep(s) })
		return wire.Explanation{Tool: tool.Key.String(), Mode: d.Mode, Source: d.Source, Decision: d.ID, Version: snap.Version, Trace: trace}, nil
	}))
}
