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

// Bounds of a review rule.
const (
	// MaxApprovals is the maximum number of approvals of a rule.
	MaxApprovals = 5
	// MaxReviewTime is the longest wait for a decision.
	MaxReviewTime = 30 * 24 * time.Hour
)

// ReviewRule configures the approval of envelopes that a pattern covers.
type ReviewRule struct {
	// Pattern is in the syntax of policy.ParsePattern.
	Pattern string `json:"tool"`
	// Risk is the lowest risk of an action that the rule covers.
	Risk envelope.Risk `json:"risk,omitzero"`
	// Approvals is the number of required approvals: 1 to MaxApprovals.
	Approvals int `json:"approvals,omitzero"`
	// Wait is the maximum wait for a decision, Warn the time before its end at
	// which a warning is sent, and Escalate the time after its start at which
	// more people are notified; zero for Warn or Escalate means never. Nil means
	// the value of less specific rules.
	Wait     *envelope.Duration `json:"wait,omitzero"`
	Warn     *envelope.Duration `json:"warn,omitzero"`
	Escalate *envelope.Duration `json:"escalate,omitzero"`
	// Edits is EditsAnother; empty means the value of other rules.
	Edits string `json:"edits,omitzero"`
	LastChange
}

// EditsAnother is the value of ReviewRule.Edits that keeps an editor of an
// action's arguments from approving it.
const EditsAnother = "another"

// check rejects invalid combinations, with an error for the rule's author.
func (r ReviewRule) check() error {
	if _, err := policy.ParsePattern(r.Pattern); err != nil {
		return err
	}
	wait, warn, escalate := length(r.Wait), length(r.Warn), length(r.Escalate)
	switch {
	case !r.Risk.Valid():
		return fault.New(fault.Invalid, "risk must be low, medium or high")
	case r.Approvals < 1 || r.Approvals > MaxApprovals:
		return fault.New(fault.Invalid, "the number of approvals must be 1 to %d", MaxApprovals)
	case r.Wait != nil && (wait < time.Second || wait > MaxReviewTime):
		return fault.New(fault.Invalid, "the wait for a decision must be 1 second to 30 days")
	case warn < 0 || warn > MaxReviewTime || escalate < 0 || escalate > MaxReviewTime:
		return fault.New(fault.Invalid, "a warning and an escalation must come within 30 days")
	case wait%time.Second != 0, warn%time.Second != 0, escalate%time.Second != 0:
		return fault.New(fault.Invalid, "the times of a review must be whole seconds")
	case r.Edits != "" && r.Edits != EditsAnother:
		return fault.New(fault.Invalid, "edits must be another, or omitted")
	case r.Wait != nil && (warn >= wait || escalate >= wait):
		return fault.New(fault.Invalid, "a warning and an escalation must come within the wait")
	}
	return nil
}

// length returns a duration; zero for nil.
func length(d *envelope.Duration) time.Duration { return time.Duration(postgres.OrZero(d)) }

// Review is the effective review of one envelope.
type Review struct {
	// Approvals is the number of required approvals, at least 1.
	Approvals int
	// Wait is the maximum wait for a decision; zero if no rule sets it.
	Wait time.Duration
	// Warn is the time before the end of the wait at which a warning is sent,
	// and Escalate the time after its start at which more people are notified;
	// zero means never.
	Warn, Escalate time.Duration
	// EditsByAnother is set if an editor of the arguments must not approve them.
	EditsByAnother bool

	warns bool // set if a rule sets Warn, also to never
}

// Review returns the review of an envelope of a risk for a tool. The number of
// approvals is the largest of all covering rules, so that no rule removes a
// required approval of another. Each time is from the most specific rule that
// sets it: first by pattern, then by risk.
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

// Or returns the review with defaults for times that no rule sets: the given
// wait, and a warning when a fifth of it is left.
func (r Review) Or(wait time.Duration) Review {
	r.Wait = cmp.Or(r.Wait, wait)
	if !r.warns {
		r.Warn = r.Wait / warnPart
	}
	r.Warn = min(r.Warn, r.Wait)
	return r
}

// warnPart is the inverse of the part of a wait that is left at the default
// warning.
const warnPart = 5

// compileReviews groups rules by their pattern, the higher risk first. A rule
// with an invalid pattern covers everything, since it may have been meant to.
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
