package decide

import (
	"fmt"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// chooseBucket takes the bucket of the table and then applies the words of the
// message. The sender affects the order and the row, but never makes a message
// urgent.
func (s *state) chooseBucket() {
	s.row = actRows()[s.decision.Act][s.group()]
	s.decision.Hint = s.row.hint
	s.fromTable()
	s.fromPriority()
	if isMuted(s.facts) && s.decision.Bucket.NeedsOwner() {
		s.put(Informational, "muted", "its owner muted the sender")
	}
	s.chooseMove()
	s.decision.Confidence = s.sure()
	s.lowerFlagged()
}

// group returns the column of the table of acts. List mail that may need its
// owner is treated as mail of people.
func (s *state) group() group {
	g := groupOf(s.decision.Cohort)
	switch {
	case g != groupBulk || !mayNeedOwner(s.facts):
		return g
	case isIntraOrg(s.facts):
		return groupNear
	}
	return groupFar
}

// lowerFlagged removes what could lead the owner to a flagged message. It runs
// last and raises no confidence, so that a flag can only lower the level.
func (s *state) lowerFlagged() {
	d := &s.decision
	attention := s.may(signal.Attention)
	if !attention && d.Bucket.NeedsOwner() {
		s.put(Informational, "phishing", "a message that may be phishing never waits for its owner")
		d.Confidence = min(d.Confidence, s.sure())
	}
	if !attention && needsOwner(d.Priority) {
		s.step("phishing", string(d.Priority), string(classify.ForInfo), "a message that may be phishing never asks for its owner")
		d.Priority = classify.ForInfo
	}
	if !s.may(signal.Tools) {
		d.Hint = ""
	}
}

// put changes the bucket of the message.
func (s *state) put(to Bucket, rule, because string) {
	s.step(rule, string(s.decision.Bucket), string(to), because)
	s.decision.Bucket = to
}

// sure returns the probability that the bucket is right about whether the
// message needs its owner.
func (s *state) sure() float64 {
	switch {
	case s.facts.Signals.Unfamiliar:
		return 0
	case s.moves:
		return max(1-s.attention(), s.facts.Settings.ConfidentFrom(), s.unsure())
	case s.decision.Bucket.NeedsOwner():
		return s.attention()
	}
	return 1 - s.attention()
}

func (s *state) fromTable() {
	to, because := s.row.bucket, fmt.Sprintf("%s in the cohort %s", s.decision.Act, s.decision.Cohort)
	switch {
	case s.row.deadline && has(s.facts, signal.DeadlineDate):
		to, because = Actionable, because+", with a deadline"
	case s.row.amended && s.facts.Amends.NeedsOwner():
		to, because = Actionable, because+", which changes a message that waits for its owner"
	case s.row.amended && s.row.raised && s.facts.Amends == Informational:
		to, because = Actionable, because+", one more urgent than the message that it changes"
	}
	s.put(to, "bucket", because)
}

func (s *state) fromPriority() {
	p, priority, now := s.facts.Prediction, s.decision.Priority, s.decision.Bucket
	alike := isBulk(s.facts) && !mayNeedOwner(s.facts)
	guess := s.act < s.unsure()
	switch {
	case (needsOwner(priority) && alike || priority == classify.Personal || p.NeedsAttention) && now == Archived:
		s.put(Informational, "priority", "its words may ask for attention: it is not archived")
	case needsOwner(priority) && alike:
	case priority == classify.Urgent || p.Urgent && !alike:
		s.put(Urgent, "priority", "its words are urgent")
	case priority == classify.NeedsResponse && !now.NeedsOwner():
		s.put(Actionable, "priority", "its words need a response")
	case s.attention() >= waitsFrom && !alike && priority != classify.Promotional && !now.NeedsOwner():
		s.put(Actionable, "priority", "its words ask for attention")
	case priority == classify.Promotional && now.NeedsOwner() && !(p.NeedsAttention && isIntraOrg(s.facts) && aligned(s.facts)):
		s.put(Informational, "priority", "its words promote something")
	case priority == classify.Promotional && s.row.sold && !p.NeedsAttention:
		s.put(Archived, "priority", "its words promote something, in a cohort whose promotions are archived")
	case now.NeedsOwner() && !p.NeedsAttention && (priority == classify.ForInfo || guess):
		s.put(Informational, "priority", "its words ask for no attention")
	}
}

func isMuted(f Facts) bool { return f.Sender.Muted || listed(f.Headers.From, f.Settings.Muted) }

// waitsFrom is the score of the need for attention from which a message waits
// for its owner, whatever its act. It was chosen by cross-validation.
const waitsFrom = 0.35

// Default thresholds of confidence. Starting values.
const (
	defaultConfident = 0.7
	defaultUnsure    = 0.5
)

// ConfidentFrom returns the confidence below which a level is lowered.
func (s Settings) ConfidentFrom() float64 { return threshold(s.Confident, defaultConfident) }

func threshold(set, standard float64) float64 {
	if set > 0 && set <= 1 {
		return set
	}
	return standard
}

func (s *state) unsure() float64 { return threshold(s.facts.Settings.Unsure, defaultUnsure) }

// askOwner turns an uncertain decision into a question.
func (s *state) askOwner() {
	unsure := s.unsure()
	if s.decision.Confidence >= unsure || !s.may(signal.Tools) {
		return
	}
	if s.decision.Bucket == Archived {
		s.put(Informational, "question", "a message of low confidence is never archived")
	}
	if s.decision.Asked > L0 {
		s.decision.Question = true
		s.step("question", "", "its owner is asked", fmt.Sprintf("the confidence of %.2f is under %.2f", s.decision.Confidence, unsure))
	}
}
