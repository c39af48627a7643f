package policies

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
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
		decisions, err := decision.Decide(ctx, tx, []*decision.Action{asked(snap, tool, body, state.Now)})
		if err != nil {
			return answer, err
		}
		d := decisions[0]
		return wire.Explanation{Tool: tool.Key.String(), Mode: d.Mode, Source: d.Source, Decision: d.ID, Version: snap.Version, Trace: d.Trace}, nil
	}))
}

// asked returns the action that a question about a tool is about.
func asked(snap *settings.Settings, tool *catalog.Tool, q wire.Question, now time.Time) *decision.Action {
	return &decision.Action{Settings: snap, Tool: tool, Proposal: settings.Proposal{
		Automation: q.Automation, AskedApproval: q.Approval == envelope.ApprovalRequired, Employee: q.Employee, Session: q.Session,
		Risk: policy.RaiseRisk(q.Risk, tool.Risk.Envelope()), Args: q.Args, AnyArgs: q.Args == nil, Now: now,
	}}
}

// Matrix handles GET /api/v1/policy/matrix. It returns the decision of policy
// about any call of each tool that the caller may list, as Explain does.
func Matrix(c *request.Call) error {
	employee, _, err := c.Employee()
	if err != nil {
		return err
	}
	return c.Result(request.Read(c, func(ctx context.Context, tx pgx.Tx) (answer wire.Page[wire.MatrixRow], err error) {
		snap, state, err := c.Catalog.CurrentAndState(ctx, tx, c.By.Tenant)
		if err != nil {
			return answer, err
		}
		tools := snap.Listed(c.Viewer(state))
		if c.Query.Has("q") {
			tools = snap.Search(tools, c.Query.Get("q"))
		}
		page, err := request.SortedPage(c, "policy-matrix", tools, func(t *catalog.Tool) string { return t.Key.String() })
		if err != nil {
			return answer, err
		}
		q := wire.Question{Automation: c.Query.Get("automation_id"), Session: c.Query.Get("session_id"), Employee: employee}
		actions := request.Map(page.Items, func(t *catalog.Tool) *decision.Action { return asked(snap, t, q, state.Now) })
		decisions, err := decision.Decide(ctx, tx, actions)
		if err != nil {
			return answer, err
		}
		by := settings.Viewer{Employee: q.Employee, Session: q.Session, Automation: q.Automation, Now: state.Now}
		answer.NextCursor, answer.Items = page.NextCursor, make([]wire.MatrixRow, len(decisions))
		for i, d := range decisions {
			answer.Items[i] = matrixRow(page.Items[i], d)
			answer.Items[i].Rules, answer.Items[i].Reviews, answer.Items[i].Grants = snap.Coverage(page.Items[i], by)
		}
		return answer, nil
	}))
}

func matrixRow(t *catalog.Tool, d policy.Decision) wire.MatrixRow {
	silent := func(s policy.Step) bool { return s.Said == "" && s.Detail == "" }
	return wire.MatrixRow{
		Tool: t.Key.String(), Title: t.Title, Risk: string(t.Risk), Mode: d.Mode, Source: d.Source,
		Trace: slices.DeleteFunc(slices.Clone(d.Trace), silent),
	}
}
