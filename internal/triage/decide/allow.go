package decide

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// loweringRow is a row of the table of lowerings.
type loweringRow struct {
	name, because string
	// to returns the lowered level.
	to func(Facts, Decision) Level
}

func lowerings() []loweringRow {
	// atMost caps the level if a condition holds.
	atMost := func(most Level, holds func(Facts) bool) func(Facts, Decision) Level {
		return func(f Facts, d Decision) Level {
			if holds(f) {
				return min(d.Allowed, most)
			}
			return d.Allowed
		}
	}
	return []loweringRow{
		{"offered", "L6 is not offered, and no other number is a level", func(_ Facts, d Decision) Level {
			if d.Allowed < L0 {
				return L0
			}
			return min(d.Allowed, L5)
		}},
		{"claimed", "the sender may be somebody else: at most the level of the claimed sender", func(f Facts, d Decision) Level {
			if claims(f) {
				return min(d.Allowed, claimed(f))
			}
			return d.Allowed
		}},
		{"genuine", "unproven: at most its level if it were proven", func(f Facts, d Decision) Level {
			if !aligned(f) {
				return max(L0, min(d.Allowed, genuine(f)))
			}
			return d.Allowed
		}},
		{"words", "only its words make the message transactional: at most its level without them", func(f Facts, d Decision) Level {
			if d.Cohort == Transactional && !isMachine(f) {
				return max(L0, min(d.Allowed, wordless(f)))
			}
			return d.Allowed
		}},
		{"built", "the account does not return the original of the message: its content is unproven", atMost(L2, func(f Facts) bool { return f.Built })},
		{"unproven", "above L2, authentication has to prove the sender", atMost(L2, func(f Facts) bool { return !aligned(f) })},
		{"confidence", "the confidence is low: one level down", func(f Facts, d Decision) Level {
			if d.Confidence < f.Settings.ConfidentFrom() {
				return max(L0, d.Allowed-1)
			}
			return d.Allowed
		}},
		{"suspicious", "a suspicious message is never acted on without a person", atMost(L2, func(f Facts) bool { return f.Signals.Suspicious })},
		{"phishing", "for a message that may be phishing, every tool except quarantine is off", atMost(L1, func(f Facts) bool { return f.Signals.Phishing })},
		{"injection", "for a message that gives instructions to an assistant, every tool is off", atMost(L0, func(f Facts) bool { return f.Signals.Injection })},
		{"travelling", "the owner travels: a person approves everything", atMost(L2, func(f Facts) bool { return f.Travelling })},
		{"observe_only", "the account is only observed: a person approves everything", atMost(L3, func(f Facts) bool { return f.Settings.ObserveOnly })},
	}
}

func levelOf(f Facts, c Cohort) Level {
	if set, ok := f.Settings.Levels[c]; ok {
		return set
	}
	return defaultLevel(c)
}

func (s *state) chooseLevel() {
	d := &s.decision
	d.Asked = levelOf(s.facts, d.Cohort)
	d.Allowed = d.Asked
	s.step("level", "", d.Asked.String(), "the level of the cohort "+string(d.Cohort))
	for _, row := range lowerings() {
		to := row.to(s.facts, *d)
		if to == d.Allowed {
			continue
		}
		s.step("level "+row.name, d.Allowed.String(), to.String(), row.because)
		d.Lowered = append(d.Lowered, Lowering{Rule: row.name, From: d.Allowed, To: to})
		d.Allowed = to
	}
}

// candidates returns the actions that suit the message, regardless of whether
// they are allowed. Labels sort automated mail: mail of people has none, so
// that no words can request one.
func (s *state) candidates() []Action {
	d := s.decision
	var all []Action
	if g := groupOf(d.Cohort); g == groupBulk || g == groupTransactional {
		all = append(all, Label)
	}
	// A message that stays only by a veto gets no flag: the veto adds nothing.
	if d.Bucket == Urgent && !(s.clear && bool(Allow(s.header))) {
		all = append(all, Flag)
	}
	if s.row.draft && d.Bucket.NeedsOwner() {
		all = append(all, Draft)
	}
	if d.Bucket == Archived || s.row.bucket == Archived && len(d.Vetoes) > 0 {
		all = append(all, s.away())
	}
	if s.unsubscribes() {
		all = append(all, Unsubscribe)
	}
	if s.facts.Signals.Phishing && s.facts.Settings.Quarantine {
		all = append(all, Quarantine)
	}
	return all
}

func (s *state) chooseActions() {
	d := &s.decision
	for _, action := range s.candidates() {
		if because := s.refusal(action); because != "" {
			s.step("action", string(action), "not proposed", because)
			continue
		}
		because := s.confirmation(action)
		d.Wants = append(d.Wants, Want{Action: action, Confirm: because != ""})
		if because == "" {
			s.step("action", string(action), "proposed; policy decides", fmt.Sprintf("%v is allowed", d.Allowed))
			continue
		}
		s.step("action", string(action), "proposed; a person approves", because)
	}
	if len(d.Wants) == 0 {
		s.step("result", "", "nothing is proposed", "no action is left; the message is only shown as "+string(d.Bucket))
	}
}

// confirmation returns why a person has to approve an action, or "" if policy
// decides.
func (s *state) confirmation(action Action) string {
	alone, allowed := rowOf(action).alone, s.decision.Allowed
	switch {
	case alone == never:
		return "it is always confirmed by a person"
	case allowed < alone:
		return fmt.Sprintf("automatic from %v, but only %v is allowed", alone, allowed)
	case rowOf(action).moves && !s.moves:
		return cmp.Or(s.kept, "its header does not permit a move")
	case s.row.confirm:
		return "for this act and cohort nothing is automatic"
	case s.decision.Question || action == Label && s.category < s.unsure():
		return "the confidence is too low"
	}
	return ""
}

// refusal returns why an action is not proposed, or "" if it is.
func (s *state) refusal(action Action) string {
	d, f, row := s.decision, s.facts, rowOf(action)
	switch {
	case f.Signals.Injection:
		return "the message gives instructions to an assistant"
	case !s.may(signal.Tools) && action != Quarantine:
		return "the message may be phishing"
	case action == Draft && !s.may(signal.Draft):
		return "the message is suspicious"
	case d.Allowed < row.propose:
		return fmt.Sprintf("proposed from %v, but only %v is allowed", row.propose, d.Allowed)
	case f.Earlier.Touched:
		return "its owner has moved or flagged it since"
	case slices.Contains(f.Earlier.Undone, action):
		return "its owner has reversed it"
	case row.moves && len(d.Vetoes) > 0:
		return "vetoed: " + d.Vetoes[0]
	case action == Quarantine && slices.Contains(d.Vetoes, "elsewhere"):
		return "it is not in the inbox"
	case d.Question && action != Label:
		return "its owner is asked first"
	case action == Flag && slices.Contains(d.Vetoes, "starred"):
		return "it is already starred"
	}
	return ""
}
