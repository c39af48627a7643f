// Package policies handles requests about policy: the document, modes, rules,
// grants, preferences, simulation and explanation.
package policies

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/insight/simulate"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/document"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// cursorSimulation is the name of simulations in cursors.
const cursorSimulation = "policy-simulate"

// Get handles GET /api/v1/policy. It shows the policy as one document.
func Get(c *request.Call) error { return request.Show(c, settings.Export) }

// Put handles PUT /api/v1/policy. It replaces the policy by a document; with
// dry_run it returns the changes without making them.
func Put(c *request.Call, doc settings.Document) error {
	return request.PutDocument(c, settings.Export, func(ctx context.Context, tx pgx.Tx, dry bool) ([]document.Change, error) {
		return c.Catalog.Apply(ctx, tx, c.By.Tenant, doc, c.By.Actor(), dry)
	})
}

// CheckDocument checks a document of policy, in JSON, as the API does.
func CheckDocument(text []byte) error {
	return request.CheckDocument[settings.Document]("putPolicy", text)
}

// Simulate handles POST /api/v1/policy/simulate. It tries a policy on past
// actions, which it reads in a read-only transaction. Deciding about them is
// long work.
func Simulate(c *request.Call) error {
	doc, req, err := simulateRequest(c, time.Now())
	if err != nil {
		return err
	}
	page, err := actions.ReadPast(c, req)
	if err != nil {
		return err
	}
	ctx := c.R.Context()
	var report simulate.Report
	err = slot.InTurns(ctx, func(next func() error) error {
		if err := request.Below("/policy", page.Snapshot.CheckDocument(doc)); err != nil {
			return err
		}
		begun := time.Now()
		report = page.Compare(doc, func() bool { return time.Since(begun) > actions.SimulateTimeout || next() != nil })
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if report.Next != nil {
		report.NextCursor = new(request.WriteCursor(cursorSimulation, *report.Next))
	}
	return c.JSON(http.StatusOK, report.SimulationPage)
}

// simulateRequest decodes the policy and the range of past actions.
func simulateRequest(c *request.Call, now time.Time) (settings.Document, simulate.Request, error) {
	body := struct {
		Policy settings.Document `json:"policy"`
		From   time.Time         `json:"since"`
		To     *time.Time        `json:"until"`
		Tool   string            `json:"tool"`
		Cursor string            `json:"cursor"`
		Most   int               `json:"limit"`
		// Overrides are risks and effect classes to try.
		Overrides []struct {
			Tool   policy.Key
			Risk   policy.ToolRisk
			Effect envelope.Effect
		}
	}{Tool: "*", Most: simulate.MaxPage}
	if err := c.Decode(&body); err != nil {
		return body.Policy, simulate.Request{}, err
	}
	req := simulate.Request{From: body.From, To: now, Limit: body.Most}
	if body.To != nil {
		req.To = *body.To
	}
	if !req.From.Before(req.To) {
		return body.Policy, req, request.Invalid("/until", "order", "must be later than since")
	}
	var err error
	if req.Tool, err = policy.ParsePattern(body.Tool); err != nil {
		return body.Policy, req, request.Invalid("/tool", envelope.RuleFormat, "must be source:action, source:*, *:action or *")
	}
	req.Overrides = make(map[policy.Key]catalog.Overrides, len(body.Overrides))
	for _, o := range body.Overrides {
		req.Overrides[o.Tool] = catalog.Overrides{Risk: o.Risk, Effect: o.Effect}
	}
	if req.Before, err = request.ParseCursor(cursorSimulation, body.Cursor); err != nil {
		return body.Policy, req, request.Invalid("/cursor", envelope.RuleFormat, "is not a cursor of a simulation; send next_cursor unchanged, or omit it to start over")
	}
	return body.Policy, req, nil
}
