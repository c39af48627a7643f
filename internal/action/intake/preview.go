package intake

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Preview is the expected result of a proposal.
type Preview struct {
	Tool *catalog.Tool
	// Args are the arguments of the call.
	Args       json.RawMessage
	Digest     envelope.Digest
	Risk       envelope.Risk
	Employee   envelope.EmployeeID
	Session    string
	Decision   policy.Decision
	Prediction wire.Prediction
	// Known is the action with this key and content, if the tenant has one, so
	// that nothing new is proposed; else the zero id.
	Known envelope.ActionID
	Plan  Plan
}

// The expected results of a proposal, in one word.
const (
	// PredictRun: the call is made immediately.
	PredictRun = "run"
	// PredictWait: the call is made later, without a person.
	PredictWait = "wait"
	// PredictAsk: the action needs approval.
	PredictAsk = "ask"
	// PredictSkip: policy allows the action, and a preflight check ends it.
	PredictSkip = "skip"
	// PredictDeny: policy denies the action.
	PredictDeny = "deny"
)

// Preview returns the expected result of a proposal. It takes the steps of
// Accept up to the decision and then makes the preflight checks; it writes
// nothing. It refuses the proposals that Accept refuses, with the same error.
// Session limits are left out, since Accept counts proposals against them.
func (in *Intake) Preview(ctx context.Context, by Submitter, p *envelope.Proposal) (Preview, error) {
	var v Preview
	err := slot.Briefly(slot.For(ctx, by.Tenant.String()), len(p.Args), func(ctx context.Context) (err error) {
		v, err = postgres.InTxReturning(ctx, in.db, postgres.API(by.Tenant), func(tx pgx.Tx) (Preview, error) {
			return in.preview(ctx, tx, by, p)
		})
		return err
	})
	return v, err
}

func (in *Intake) preview(ctx context.Context, tx pgx.Tx, by Submitter, p *envelope.Proposal) (Preview, error) {
	snap, state, err := in.catalog.CurrentAndState(ctx, tx, by.Tenant)
	if err != nil {
		return Preview{}, err
	}
	now := state.Now
	var r row
	if err := r.prepare(ctx, schema.NewBudget(len(p.Args)), new(envelope.Digester), snap, &by, p); err != nil {
		return Preview{}, by.Suggest(snap, now).Tool(p.Tool, err)
	}
	if err := CheckAgentSession(ctx, tx, by, r.Session); err != nil {
		return Preview{}, err
	}
	v := Preview{Tool: r.Tool, Args: p.Args, Digest: r.digest, Risk: r.Risk, Employee: r.Employee, Session: r.Session}
	if r.hasKey() {
		answers := make([]Answer, 1)
		if _, err := findExisting(ctx, tx, by.Tenant, []*row{&r}, answers); err != nil {
			return Preview{}, err
		}
		if answers[0].Err != nil {
			return Preview{}, answers[0].Err
		}
		v.Known = answers[0].Action
	}
	c := p.Constraints
	f, err := ForecastOf(ctx, tx, Due{
		Action: &r.Action, Bucket: r.bucketName(), Urgent: c.Urgent, NotBefore: c.NotBefore, MustRunBefore: c.MustRunBefore, CreatedAt: now,
	}, now)
	if err != nil {
		return Preview{}, err
	}
	r.decision = r.Decide()
	v.Decision = r.decision
	v.Prediction = f.prediction(r.decision.Mode, now)
	v.Plan = Plan{Content: r.digest, Tool: r.Tool.Binding, Decision: r.decision.ID, IssuedAt: now.Truncate(time.Second)}
	return v, nil
}

// prediction returns the expected result of a proposal with the given policy
// mode.
func (f *Forecast) prediction(mode envelope.Mode, now time.Time) wire.Prediction {
	o := wire.Prediction{At: now.UTC(), Gates: f.Gates, Bucket: f.Bucket, Result: predictedResult(mode, f.Skipped, f.Stopped || f.GoesOutAt.After(now))}
	if o.Result != PredictDeny && o.Result != PredictSkip && !f.Stopped {
		o.GoesOutAt = new(f.GoesOutAt.UTC())
	}
	return o
}

func predictedResult(mode envelope.Mode, skipped, waits bool) string {
	switch {
	case mode == envelope.ModeDeny:
		return PredictDeny
	case skipped:
		return PredictSkip
	case mode == envelope.ModeRequireApproval:
		return PredictAsk
	case waits:
		return PredictWait
	}
	return PredictRun
}
