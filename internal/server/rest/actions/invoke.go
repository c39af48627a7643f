package actions

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// invokeBody is the body of a call of a tool.
type invokeBody struct {
	Inputs     json.RawMessage    `json:"inputs"`
	DryRun     bool               `json:"dry_run"`
	Wait       *envelope.Duration `json:"wait"`
	Plan       string             `json:"plan"`
	ExternalID string             `json:"external_id"`
	envelopeFields
}

// envelopeFields are copied into the envelope.
type envelopeFields struct {
	AutomationID json.RawMessage `json:"automation_id,omitempty"`
	EmployeeID   json.RawMessage `json:"employee_id,omitempty"`
	SessionID    json.RawMessage `json:"session_id,omitempty"`
	Risk         json.RawMessage `json:"risk,omitempty"`
	Approval     json.RawMessage `json:"approval,omitempty"`
	Constraints  json.RawMessage `json:"constraints,omitempty"`
}

// Invoke handles POST /api/v1/tools/{tool}. It calls a tool and answers with
// the outcome of the call.
func Invoke(c *request.Call, in invokeBody) error {
	if in.Wait != nil {
		if err := request.CheckDuration("/wait", *in.Wait, 0, request.MaxWait); err != nil {
			return err
		}
	}
	named, tool, err := resolveTool(c, c.R.PathValue("tool"))
	if err != nil {
		return err
	}
	p, err := invocationProposal(c, in, named, tool)
	if err != nil {
		return asCallError(err)
	}
	if in.DryRun {
		if in.Plan != "" {
			return request.Invalid("/plan", "dry_run", "belongs to the call after the dry run; send only one of them")
		}
		return asCallError(answerDryRun(c, p))
	}
	by, err := withPlan(c, in.Plan, "/plan")
	if err != nil {
		return err
	}
	c.WaitFor = request.DefaultWait
	if in.Wait != nil {
		c.WaitFor = time.Duration(*in.Wait)
	}
	by.Awaited = c.WaitFor > 0
	answers, err := accept(c, by, p)
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return asCallError(err)
	}
	view, err := awaitOutcome(c, answers[0], in.Wait != nil)
	if err != nil {
		return err
	}
	return answerInvocation(c, view, answers[0].Known)
}

// resolveTool finds the tool that a path names: source:tool, its full name, or
// a name that only one source has. A source:tool that no longer exists is
// returned without its definition, so that an earlier call of it is still
// known.
func resolveTool(c *request.Call, text string) (envelope.Tool, *catalog.Tool, error) {
	snap, err := c.Settings.Current(c.R.Context(), c.By.Tenant)
	if err != nil {
		return envelope.Tool{}, nil, err
	}
	key, keyed := policy.ParseKey(text)
	named := envelope.Tool{Name: text}
	if keyed == nil {
		named = envelope.Tool{Source: key.Source, Name: key.Action}
	}
	tool, err := snap.Resolve(named, c.By.Tools)
	if err != nil && keyed == nil {
		return named, nil, nil
	}
	if err != nil {
		return named, nil, asCallError(c.Suggest(request.NounTool, text, err))
	}
	return envelope.Tool{Source: tool.Key.Source, Name: tool.Key.Action}, tool, nil
}

// invocationProposal returns the proposal of a call.
// Tools that only read need no external id, since repeating them has no effect;
// neither does a dry run.
func invocationProposal(c *request.Call, in invokeBody, named envelope.Tool, tool *catalog.Tool) (*envelope.Proposal, error) {
	key := c.R.Header.Get("Idempotency-Key")
	if key != "" && in.ExternalID != "" && key != in.ExternalID {
		return nil, request.Invalid("/external_id", "same", "differs from the Idempotency-Key; send only one of them")
	}
	in.ExternalID = cmp.Or(in.ExternalID, key)
	if in.ExternalID == "" && !in.DryRun && tool != nil && tool.Effect != envelope.EffectRead {
		return nil, request.Invalid("/external_id", envelope.RuleRequired, "set external_id or the header Idempotency-Key, so that sending the call again is safe")
	}
	if len(in.Inputs) == 0 {
		in.Inputs = json.RawMessage("{}")
	}
	return request.ParseCall(struct {
		request.Invocation
		envelopeFields
	}{request.Invocation{Type: envelope.TypeExec, ExternalID: in.ExternalID, Tool: named, Args: in.Inputs}, in.envelopeFields})
}

// withPlan returns the caller with the plan that it sent, if any.
func withPlan(c *request.Call, token, at string) (intake.Submitter, error) {
	by := c.Submitter()
	if token == "" {
		return by, nil
	}
	plan, err := intake.ParsePlan(token)
	if err != nil {
		return by, request.Invalid(at, envelope.RuleFormat, request.Detail(err))
	}
	if plan.Expired(time.Now()) {
		return by, fault.Coded(wire.CodePlan, fault.Conflict, "the plan is older than %s; make another dry run", intake.PlanLifetime)
	}
	by.Plan = &plan
	return by, nil
}

// awaitOutcome returns an action when it has ended, or after the caller's
// wait. Without an explicit wait, it does not wait for an approval.
func awaitOutcome(c *request.Call, a intake.Answer, told bool) (outbox.View, error) {
	if !told && !a.Scheduled() {
		if v, err := read(c, a.Action); err != nil || v.Envelope.Approval == envelope.ApprovalRequired {
			return v, err
		}
	}
	return awaitProposed(c, a)
}

// asCallError turns an error about an envelope into one about a call: an
// unknown tool is not found, and the arguments are inputs.
func asCallError(err error) error {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return err
	}
	fields := make([]envelope.FieldError, len(broken.Fields))
	for i, f := range broken.Fields {
		if catalog.Unknown(f) {
			return fault.New(fault.NotFound, "%s", f.Message)
		}
		switch {
		case f.Pointer == "/args" || strings.HasPrefix(f.Pointer, "/args/"):
			f.Pointer = "/inputs" + strings.TrimPrefix(f.Pointer, "/args")
		case f.Pointer == "/tool" || strings.HasPrefix(f.Pointer, "/tool/"):
			f.Pointer = "/path/tool"
		}
		fields[i] = f
	}
	return &envelope.InvalidError{Fields: fields}
}
