package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
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
	// PredictRun: the call is made at once.
	PredictRun = "run"
	// PredictWait: the call is made later, without a person.
	PredictWait = "wait"
	// PredictAsk: a person has to approve the action.
	PredictAsk = "ask"
	// PredictSkip: policy allows the action, and a preflight check ends it.
	PredictSkip = "skip"
	// PredictDeny: policy denies the action.
	PredictDeny = "deny"
)

// Preview returns the expected result of a proposal. It does what Accept does up
// to the decision, and then makes the preflight checks; it writes nothing. What
// Accept refuses, Preview refuses with the same error. The limits of the
// submitter's session are left out, since Accept counts them.
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
	r, err := prepare(ctx, schema.NewBudget(len(p.Args)), new(envelope.Digester), snap, by, p)
	if err != nil {
		return Preview{}, err
	}
	if err := CheckAgentSession(ctx, tx, by, r.Session); err != nil {
		return Preview{}, err
	}
	v := Preview{Tool: r.Tool, Args: p.Args, Digest: r.digest, Risk: r.Risk, Employee: r.Employee, Session: r.Session}
	if r.hasKey() {
		answers := make([]Answer, 1)
		if _, err := findExisting(ctx, tx, by.Tenant, []row{r}, answers); err != nil {
			return Preview{}, err
		}
		if answers[0].Err != nil {
			return Preview{}, answers[0].Err
		}
		v.Known = answers[0].Action
	}
	l := previewFacts{snap: snap, row: &r, start: later(now, p.Constraints.NotBefore)}
	if err := l.read(ctx, tx, now); err != nil {
		return Preview{}, err
	}
	r.decision = r.Decide()
	v.Decision = r.decision
	v.Prediction = l.predict(now)
	v.Plan = Plan{Content: r.digest, Tool: r.Tool.Binding, Decision: r.decision.ID, IssuedAt: now.Truncate(time.Second)}
	return v, nil
}

// previewFacts are what the checks look at.
type previewFacts struct {
	snap *settings.Settings
	row  *row
	// start is when the action is due.
	start time.Time

	// gates are what the tenant's limits say at that time.
	gates  preflight.Facts
	bucket limits.BucketState
	// aloneUntil is when its source is used again; zero if it is.
	breakerUntil time.Time
}

// read reads the facts.
func (l *previewFacts) read(ctx context.Context, tx pgx.Tx, now time.Time) error {
	r, c := l.row, l.row.proposal.Constraints
	r.Now = now
	if err := decision.FindRecipients(ctx, tx, []*decision.Action{&r.Action}); err != nil {
		return err
	}
	l.gates = preflight.FactsOf(l.snap.Limits, preflight.Action{
		Tool: r.Tool.Key, Employee: r.Employee, Bucket: r.bucketName(), Urgent: c.Urgent, MustRunBefore: c.MustRunBefore, CreatedAt: now,
		Contacts: r.Contacts, Listed: r.Match,
	}, l.start)
	buckets, err := limits.BucketStates(ctx, tx, l.snap.Tenant, l.row.bucketName())
	if err != nil {
		return fmt.Errorf("bucket: %w", err)
	}
	if len(buckets) == 1 {
		l.bucket = buckets[0]
	}
	breakers, err := breaker.NotClosed(ctx, tx, l.snap.Tenant)
	if err != nil {
		return fmt.Errorf("breakers: %w", err)
	}
	for _, s := range breakers {
		if s.ID == l.row.Tool.Key.Source && s.State == breaker.StateOpen {
			l.breakerUntil = s.Until
		}
	}
	return nil
}

// predict makes each check by itself, as of when the proposal is due, and combines
// their answers.
func (l *previewFacts) predict(now time.Time) wire.Prediction {
	c := l.row.proposal.Constraints
	o := wire.Prediction{At: now.UTC(), Bucket: wire.BucketForecast{Name: l.row.bucketName(), Permits: l.bucket.Permits, OpensAt: l.bucket.OpensAt, Due: l.bucket.Due}}
	goes, stopped, skipped := l.start, false, false
	say := func(name string, a preflight.Answer) {
		w := wire.GateResult{Gate: name, Result: string(a.Result), Code: a.Code, Message: a.Message}
		switch {
		case a.Result == preflight.Skip:
			skipped = true
		case a.Result == preflight.Wait && a.Until.IsZero():
			stopped = true
		case a.Result == preflight.Wait:
			w.Until, goes = new(a.Until.UTC()), later(goes, a.Until)
		}
		o.Gates = append(o.Gates, w)
	}
	say("do_not_contact", preflight.Check(preflight.Facts{Now: l.start, DoNotContact: l.gates.DoNotContact}))
	say("pause", l.paused())
	say("not_before", waitUntil(now, c.NotBefore, "not_before", "it asks not to be sent before then"))
	say("quiet_hours", l.quiet())
	say("breaker", preflight.Check(preflight.Facts{Now: l.start, BreakerUntil: l.breakerUntil}))
	say("bucket", l.paced())
	// The deadline is asked about the time that the others leave.
	say("deadline", preflight.Check(preflight.Facts{Now: goes, MustRunBefore: c.MustRunBefore}))
	o.Result = predictedResult(l.row.decision.Mode, skipped, stopped || goes.After(now))
	if o.Result != PredictDeny && o.Result != PredictSkip && !stopped {
		o.GoesOutAt = new(goes.UTC())
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

func (l *previewFacts) paused() preflight.Answer {
	if l.gates.Pause != (preflight.Pause{}) {
		return preflight.Check(preflight.Facts{Now: l.start, Pause: l.gates.Pause})
	}
	if l.bucket.Paused {
		return preflight.Answer{Result: preflight.Wait, Code: preflight.CodePaused, Message: "an operator paused its bucket, its tenant or everything"}
	}
	return preflight.Answer{Result: preflight.Pass}
}

func (l *previewFacts) quiet() preflight.Answer {
	f := l.gates
	f.DoNotContact, f.Pause = contact.Match{}, preflight.Pause{}
	for i := range f.Quiet {
		f.Quiet[i].Spread = 0 // it depends on the action's id, which is not made yet
	}
	if !f.MustRunBefore.After(l.start) {
		f.MustRunBefore = time.Time{} // checked by itself
	}
	return preflight.Check(f)
}

func (l *previewFacts) paced() preflight.Answer {
	if l.bucket.OpensAt == nil {
		return preflight.Answer{Result: preflight.Pass}
	}
	return waitUntil(l.start, *l.bucket.OpensAt, "bucket", "the next may go then")
}

func waitUntil(now, until time.Time, code, message string) preflight.Answer {
	if !until.After(now) {
		return preflight.Answer{Result: preflight.Pass}
	}
	return preflight.Answer{Result: preflight.Wait, Code: code, Message: message, Until: until}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
