package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Preview is what would become of a proposal, were it made now.
type Preview struct {
	Tool *catalog.Tool
	// Args are what the tool would be called with.
	Args     json.RawMessage
	Digest   envelope.Digest
	Risk     envelope.Risk
	Employee envelope.EmployeeID
	Session  string
	Decision policy.Decision
	Outlook  Outlook
	// Known is the action that the tenant has of this name and content: then
	// nothing would be proposed. It is the zero id if there is none.
	Known envelope.ActionID
	Plan  Plan
}

// Would is what would happen to a proposal, in one word.
type Would string

// What would happen.
const (
	// WouldRun: it would go out at once.
	WouldRun Would = "run"
	// WouldWait: it would go out later, without anybody's doing.
	WouldWait Would = "wait"
	// WouldAsk: a person would have to approve it.
	WouldAsk Would = "ask"
	// WouldSkip: it would be let through, and then taken off the schedule.
	WouldSkip Would = "skip"
	// WouldDeny: policy would refuse it.
	WouldDeny Would = "deny"
)

// Outlook is what the gates say of a proposal, and when it would go out.
type Outlook struct {
	Would Would `json:"would"`
	// At is when it was looked at, by the database's clock.
	At time.Time `json:"at"`
	// GoesOutAt is when it would go out at the soonest, and if a person has to
	// approve it, not before that. It is nil where it never would, or where
	// only an operator can say when.
	GoesOutAt *time.Time `json:"goes_out_at"`
	// Gates is what each of them says, in the order in which they are asked.
	Gates []GateResult `json:"gates"`
	// Bucket is the pace that it would keep to.
	Bucket BucketPreview `json:"bucket"`
}

// GateResult is what one gate says.
type GateResult struct {
	Gate    string            `json:"gate"`
	Verdict preflight.Verdict `json:"verdict"`
	Code    string            `json:"code,omitzero"`
	Message string            `json:"message,omitzero"`
	// Until is when a wait is over; nil if nobody can say.
	Until *time.Time `json:"until"`
}

// BucketPreview is how a bucket stands.
type BucketPreview struct {
	Name string `json:"name"`
	// Tokens is how many may go now; nil is any number.
	Tokens *int64 `json:"tokens"`
	// OpensAt is when the next may go; nil is now.
	OpensAt *time.Time `json:"opens_at"`
	// Due is how many wait for their turn before it, counted up to
	// limit.MaxCount.
	Due int64 `json:"due"`
}

// Preview says what would become of a proposal. It goes the way of Accept up
// to the decision, and then asks the gates; it writes nothing. What Accept
// would refuse, it refuses with the same error. How much the submitter's
// session may still propose is left out: that is counted when it does.
func (in *Intake) Preview(ctx context.Context, by Submitter, p *envelope.Proposal) (Preview, error) {
	var v Preview
	err := postgres.InTx(ctx, in.db, postgres.API(by.Tenant), func(tx pgx.Tx) error {
		var err error
		v, err = in.preview(ctx, tx, by, p)
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
	r, err := prepare(snap, by, p)
	if err != nil {
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
	v.Outlook = l.outlook(now)
	v.Plan = Plan{Content: r.digest, Tool: r.Tool.Digest, Decision: r.decision.ID, IssuedAt: now.Truncate(time.Second)}
	return v, nil
}

// previewFacts is what the gates are asked about.
type previewFacts struct {
	snap *settings.Settings
	row  *row
	// start is when it would be due.
	start time.Time

	// gates are what the tenant's limits say at that time.
	gates  preflight.Facts
	bucket limits.BucketState
	// aloneUntil is when its source is used again; zero if it is.
	aloneUntil time.Time
}

// read finds out how things stand.
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
	alone, err := breaker.NotClosed(ctx, tx, l.snap.Tenant)
	if err != nil {
		return fmt.Errorf("breakers: %w", err)
	}
	for _, s := range alone {
		if s.ID == l.row.Tool.Key.Source && s.State == breaker.StateOpen {
			l.aloneUntil = s.Until
		}
	}
	return nil
}

// outlook asks each gate by itself, as it would be asked when the proposal is
// due, and adds up what they say.
func (l *previewFacts) outlook(now time.Time) Outlook {
	c := l.row.proposal.Constraints
	o := Outlook{At: now.UTC(), Bucket: BucketPreview{Name: l.row.bucketName(), Tokens: l.bucket.Tokens, OpensAt: l.bucket.OpensAt, Due: l.bucket.Due}}
	goes, stopped, skipped := l.start, false, false
	say := func(name string, a preflight.Answer) {
		w := GateResult{Gate: name, Verdict: a.Verdict, Code: a.Code, Message: a.Message}
		switch {
		case a.Verdict == preflight.Skip:
			skipped = true
		case a.Verdict == preflight.Wait && a.Until.IsZero():
			stopped = true
		case a.Verdict == preflight.Wait:
			w.Until, goes = new(a.Until.UTC()), later(goes, a.Until)
		}
		o.Gates = append(o.Gates, w)
	}
	say("do_not_contact", preflight.Check(preflight.Facts{Now: l.start, DoNotContact: l.gates.DoNotContact}))
	say("pause", l.paused())
	say("not_before", waitUntil(now, c.NotBefore, "not_before", "it asks not to be sent before then"))
	say("quiet_hours", l.quiet())
	say("breaker", preflight.Check(preflight.Facts{Now: l.start, BreakerUntil: l.aloneUntil}))
	say("bucket", l.paced())
	// The deadline is asked about the time that the others leave.
	say("deadline", preflight.Check(preflight.Facts{Now: goes, MustRunBefore: c.MustRunBefore}))
	o.Would = would(l.row.decision.Mode, skipped, stopped || goes.After(now))
	if o.Would != WouldDeny && o.Would != WouldSkip && !stopped {
		o.GoesOutAt = new(goes.UTC())
	}
	return o
}

func would(mode envelope.Mode, skipped, waits bool) Would {
	switch {
	case mode == envelope.ModeDeny:
		return WouldDeny
	case skipped:
		return WouldSkip
	case mode == envelope.ModeRequireApproval:
		return WouldAsk
	case waits:
		return WouldWait
	}
	return WouldRun
}

func (l *previewFacts) paused() preflight.Answer {
	if l.gates.Pause != (preflight.Pause{}) {
		return preflight.Check(preflight.Facts{Now: l.start, Pause: l.gates.Pause})
	}
	if l.bucket.Paused {
		return preflight.Answer{Verdict: preflight.Wait, Code: preflight.CodePaused, Message: "an operator paused its bucket, its tenant or everything"}
	}
	return preflight.Answer{Verdict: preflight.Pass}
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
		return preflight.Answer{Verdict: preflight.Pass}
	}
	return waitUntil(l.start, *l.bucket.OpensAt, "bucket", "the next may go then")
}

func waitUntil(now, until time.Time, code, message string) preflight.Answer {
	if !until.After(now) {
		return preflight.Answer{Verdict: preflight.Pass}
	}
	return preflight.Answer{Verdict: preflight.Wait, Code: code, Message: message, Until: until}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
