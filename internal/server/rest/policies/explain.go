package policies

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// explanation is a decision with a step for each layer.
type explanation struct {
	Key      string        `json:"tool"`
	Mode     envelope.Mode `json:"mode"`
	Source   string        `json:"mode_source"`
	Decision uuid.UUID     `json:"decision_id"`
	Version  int64         `json:"config_version"`
	Trace    []policy.Step `json:"trace"`
}

// explainBody is the body of POST /api/v1/policy/explain.
type explainBody struct {
	Tool       string              `json:"tool"`
	Args       json.RawMessage     `json:"args"`
	Employee   envelope.EmployeeID `json:"employee_id"`
	Session    string              `json:"session_id"`
	Automation string              `json:"automation_id"`
	Risk       envelope.Risk       `json:"risk"`
	Approval   envelope.Approval   `json:"approval"`
}

// POST /api/v1/policy/explain says what policy would decide about a call, and
// why. It stores nothing.
func Explain(c *request.Call, body explainBody) error {
	var answer explanation
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		snap, state, err := c.Catalog.CurrentAndState(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		tool, err := snap.Resolve(envelope.Tool{Name: body.Tool})
		if invalid, ok := errors.AsType[*envelope.InvalidError](err); ok {
			for i := range invalid.Fields {
				invalid.Fields[i].Pointer = "/tool" // a text here, and not an object with a name as in a proposal
			}
		}
		if err != nil {
			return request.Moved("/tool/name", "/tool", err)
		}
		if body.Args != nil {
			if err := tool.Check(body.Args); err != nil {
				return err
			}
		}
		decisions, err := decision.Decide(ctx, tx, []*decision.Action{{Settings: snap, Tool: tool, Proposal: settings.Proposal{
			Automation: body.Automation, AskedApproval: body.Approval == envelope.ApprovalRequired, Employee: body.Employee, Session: body.Session,
			Risk: policy.RaiseRisk(body.Risk, tool.Risk.Envelope()), Args: body.Args, AnyArgs: body.Args == nil, Now: state.Now,
		}}})
		if err != nil {
			return err
		}
		d := decisions[0]
		answer = explanation{tool.Key.String(), d.Mode, d.Source, d.ID, snap.Version, d.Trace}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}
