package reader

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/draft"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// kindLate is the reason for a decision without a tier that was not asked in
// time.
const kindLate model.Kind = "late"

// questions holds the input from models for a decision, and the questions still
// open.
type questions struct {
	replies []cascade.Reply
	open    []cascade.Tier
	// withheld reports whether proposals wait for the open questions. degraded
	// lists the tiers missing from the decision and the reasons.
	withheld bool
	degraded string
	steps    []decide.Step
}

// questions returns the questions about a message; again is the stored state if
// it was decided before. It asks none about a message that the owner has
// touched.
func (c *chunk) questions(m *mail, f decide.Facts, again *Stored) (q questions) {
	if again != nil {
		q.replies = again.answers.Replies
	}
	switch {
	case f.Earlier.Touched, c.reader.Questions == nil:
	case again != nil && again.reason == reasonAsked:
		q.open = again.answers.Open
	default:
		q.open = c.reader.Questions.Wanted(cascade.Mail{
			ID: m.id, Account: c.lease.Account.ID, Subject: m.values.Subject, Body: m.values.Body, Prediction: f.Prediction,
			Decision: decide.Decide(f), Signals: f.Signals, Settings: f.Settings, Replies: q.replies,
		})
	}
	var without []string
	for _, tier := range q.open {
		if kind := c.reader.Questions.Unavailable(tier); kind != "" {
			without = append(without, fmt.Sprintf("%s: %s", tier, kind))
		}
	}
	switch asked := again != nil && again.reason == reasonAsked; {
	case len(q.open) == 0:
	case len(without) == 0 && !asked:
		q.withheld = true
		q.steps = []decide.Step{{Rule: "models", To: "withheld", Because: fmt.Sprintf("%s is asked first, and until then, at most for %v, nothing is proposed",
			strings.Join(cascade.Names(q.open), ", "), c.reader.cfg.Withhold)}}
	case len(without) == 0:
		without = append(without, fmt.Sprintf("%s: %s", q.open[0], kindLate))
	}
	if len(without) > 0 {
		q.steps = []decide.Step{{Rule: "models", To: "degraded", Because: "decided without questions that may still be asked later: " + strings.Join(without, "; ")}}
	}
	for _, r := range q.replies {
		if r.Failed != "" {
			without = append(without, fmt.Sprintf("%s: %s", r.Tier, r.Failed))
		}
	}
	q.degraded = strings.Join(without, "; ")
	return q
}

// note records the tier, model and pending questions of a decision.
func (q questions) note(d *decisionRow) {
	d.Tier, d.Degraded, d.Withheld = tierEmbedded, q.degraded, q.withheld
	d.Answers, d.Wanted = append([]cascade.Reply{}, q.replies...), append([]cascade.Tier{}, q.open...)
	for _, r := range q.replies {
		if r.Answered() && slices.Index(cascade.Tiers(), r.Tier) >= slices.Index(cascade.Tiers(), d.Tier) {
			d.Tier, d.Model, d.Prompt = r.Tier, r.Model, r.Prompt
		}
	}
}

// tierEmbedded is the tier of a decision without a language model.
const tierEmbedded cascade.Tier = "embedded"

// wantTexts requests the texts that the account wants automatically.
func (c *chunk) wantTexts(ctx context.Context, tx pgx.Tx) error {
	if !c.reader.cfg.Texts {
		return nil
	}
	var messages []uuid.UUID
	var kinds []string
	want := func(d decisionRow, kind draft.Kind) {
		messages, kinds = append(messages, d.Message), append(kinds, string(kind))
	}
	for _, d := range c.decisions {
		if d.Withheld {
			continue // to be decided again with the answers of models
		}
		if c.lease.Account.Texts.Summaries == draft.Wanted && d.Bucket.NeedsOwner() && !d.Signals.Phishing && !d.Signals.Injection {
			want(d, draft.Summary)
		}
		if c.lease.Account.Texts.Drafts == draft.Wanted && c.lease.Account.Proposes() && d.Decision.Want(decide.Draft) != nil {
			want(d, draft.Reply)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return askTexts(ctx, tx, c.lease, messages, kinds)
}
