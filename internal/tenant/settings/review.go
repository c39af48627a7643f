package settings

import (
	"cmp"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// The bounds of a review rule.
const (
	// MaxApprovals is the largest number of people that a rule can ask for.
	MaxApprovals = 5
	// MaxReviewTime is the longest wait for a decision.
	MaxReviewTime = 30 * 24 * time.Hour
)

// ReviewRule says how people look at the envelopes that a pattern covers.
type ReviewRule struct {
	// Pattern is as policy.ParsePattern reads it.
	Pattern string `json:"tool"`
	// Risk is the lowest risk of an action that the rule covers.
	Risk envelope.Risk `json:"risk,omitzero"`
	// Approvals is how many people must agree: 1 to MaxApprovals.
	Approvals int `json:"approvals,omitzero"`
	// Wait is how long a decision is waited for, Warn how long before the end
	// of that a warning is given, and Escalate after how much of it more
	// people are asked; zero for either of the last two is never. nil leaves
	// each to rules that are less particular.
	Wait     *envelope.Duration `json:"wait,omitzero"`
	Warn     *envelope.Duration `json:"warn,omitzero"`
	Escalate *envelope.Duration `json:"escalate,omitzero"`
	// Edits is EditsAnother, or empty to leave it to other rules.
	Edits string `json:"edits,omitzero"`
	LastChange
}

// EditsAnother is the value of ReviewRule.Edits that has whoever edited the
// arguments of an action not approve it.
const EditsAnother = "another"

// check refuses what makes no sense, in words for whoever wrote it.
func (r ReviewRule) check() error {
	if _, err := policy.ParsePattern(r.Pattern); err != nil {
		return err
	}
	wait, warn, escalate := length(r.Wait), length(r.Warn), length(r.Escalate)
	switch {
	case !r.Risk.Valid():
		return fault.New(fault.Invalid, "a risk is low, medium or high")
	case r.Approvals < 1 || r.Approvals > MaxApprovals:
		return fault.New(fault.Invalid, "an envelope needs 1 to %d approvals", MaxApprovals)
	case r.Wait != nil && (wait < time.Second || wait > MaxReviewTime):
		return fault.New(fault.Invalid, "a decision is waited for from a second to 30 days")
	case warn < 0 || warn > MaxReviewTime || escalate < 0 || escalate > MaxReviewTime:
		return fault.New(fault.Invalid, "a warning and an escalation are at most 30 days off")
	case wait%time.Second != 0, warn%time.Second != 0, escalate%time.Second != 0:
		return fault.New(fault.Invalid, "the times of a review are whole seconds")
	case r.Edits != "" && r.Edits != EditsAnother:
		return fault.New(fault.Invalid, "edits is another, or left out")
	case r.Wait != nil && (warn >= wait || escalate >= wait):
		return fault.New(fault.Invalid, "a warning and an escalation come within the wait")
	}
	return nil
}

// length returns a length of time; zero for nil.
func length(d *envelope.Duration) time.Duration { return time.Duration(postgres.OrZero(d)) }

// Review is how people look at one envelope.
type Review struct {
	// Needed is how many people must agree; at least 1.
	Approvals int
	// Wait is how long a decision is waited for; zero where no rule says.
	Wait time.Duration
	// Warn is how long before the end of that a warning is given, and Escalate
	// after how much of it more people are asked; zero is never.
	Warn, Escalate time.Duration
	// EditsByAnother says that whoever edited the arguments does not approve them.
	EditsByAnother bool

	warns bool // a rule says when, or that no warning is wanted
}

// Review returns how people look at an envelope of a risk for a tool. The
// largest number of all rules that cover it holds, so that no rule takes away
// a second person that another asks for. Each time is from the most particular
// rule that sets it: first by its pattern, then by its risk.
func (s *Settings) Review(t *catalog.Tool, risk envelope.Risk) Review {
	review := Review{Approvals: 1}
	if len(s.reviews) == 0 {
		return review
	}
	var times ReviewRule
	for _, pattern := range policy.Patterns(t.Key) {
		for _, rule := range s.reviews[pattern] {
			if policy.RiskRank(rule.Risk) > policy.RiskRank(risk) {
				continue
			}
			review.Approvals = max(review.Approvals, rule.Approvals)
			review.EditsByAnother = review.EditsByAnother || rule.Edits == EditsAnother
			times.Wait, times.Warn, times.Escalate = cmp.Or(times.Wait, rule.Wait), cmp.Or(times.Warn, rule.Warn), cmp.Or(times.Escalate, rule.Escalate)
		}
	}
	review.Wait, review.Warn, review.Escalate, review.warns = length(times.Wait), length(times.Warn), length(times.Escalate), times.Warn != nil
	return review
}

// Or returns the review with what follows where no rule sets a time: the wait
// is then as given, and a warning comes when a fifth of it is left.
func (r Review) Or(wait time.Duration) Review {
	if r.Wait == 0 {
		r.Wait = wait
	}
	if !r.warns {
		r.Warn = r.Wait / warnPart
	}
	r.Warn = min(r.Warn, r.Wait)
	return r
}

// warnPart is which part of a wait is left when a warning comes that nobody
// set a time for.
const warnPart = 5

// compileReviews groups rules by what they cover, the higher risk first. A
// rule whose pattern cannot be read may have been meant for anything, so it
// covers everything.
func compileReviews(rules []ReviewRule) map[policy.Key][]ReviewRule {
	if len(rules) == 0 {
		return nil
	}
	compiled := make(map[policy.Key][]ReviewRule)
	for _, risk := range []envelope.Risk{envelope.RiskHigh, envelope.RiskMedium, envelope.RiskLow} {
		for _, rule := range rules {
			if policy.RiskRank(rule.Risk) != policy.RiskRank(risk) {
				continue
			}
			pattern, err := policy.ParsePattern(rule.Pattern)
			if err != nil {
				pattern = policy.Key{Source: "*", Action: "*"}
			}
			compiled[pattern] = append(compiled[pattern], rule)
		}
	}
	return compiled
}
