// Package decide decides about a message: its bucket, the level of autonomy for
// it, and the wanted actions. It is pure: all input is in Facts, and every rule
// adds a step to the trace. It owns the tables of levels, cohorts, acts and
// vetoes; it makes no proposals and knows no tools.
//
// Flags only ever lower: no risk or injection found in a message raises a
// level or adds an action that could happen without a person.
package decide

import (
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Bucket is the urgency of a message for its owner.
type Bucket string

// The buckets, most urgent first.
const (
	Urgent        Bucket = "urgent"
	Actionable    Bucket = "actionable"
	Informational Bucket = "informational"
	Archived      Bucket = "archived"
)

// NeedsOwner reports whether messages of the bucket wait for the owner.
func (b Bucket) NeedsOwner() bool { return b == Urgent || b == Actionable }

// Facts is the whole input of a decision.
type Facts struct {
	Headers Headers
	// Folder is the use of the message's folder.
	Folder mailbox.Use
	// Flags are flags, keywords and labels as the provider spells them.
	Flags          []string
	Authentication signal.Authentication
	Signals        signal.Result
	Prediction     classify.Prediction
	// Sender and List are the histories before this message arrived.
	Sender, List signal.Sender
	// OwnerReplied reports whether the owner has answered in the thread.
	OwnerReplied bool
	// FollowUp reports whether the owner waits for an answer in the thread.
	FollowUp bool
	// Answered reports whether the prediction includes answers of language
	// models.
	Answered bool
	// Amends is the bucket of the message that this one answers, or "" if that
	// was never decided.
	Amends  Bucket
	Earlier Earlier
	// Return is the time of ReturnOf for the event of the message.
	Return time.Time
	// Built reports whether the message was put together from fields, since its
	// account does not return the original.
	Built bool
	// Settings are those of the account.
	Settings Settings
	// Travelling reports whether triage is set travelling.
	Travelling bool
}

// Earlier holds the owner's actions on the message since triage first read it.
type Earlier struct {
	// Undone are the actions of triage that the owner reversed.
	Undone []Action `json:"undone,omitempty"`
	// Touched reports whether the owner moved or flagged the message.
	Touched bool `json:"touched,omitempty"`
}

// Settings are the owner's settings for an account.
type Settings struct {
	// Addresses are the owner's addresses, Domains those of the owner's
	// organisation (never of a public mail provider).
	Addresses []string `json:"addresses,omitempty"`
	Domains   []string `json:"domains,omitempty"`
	// Levels holds the levels that differ from the defaults.
	Levels map[Cohort]Level `json:"levels,omitempty"`
	// VIP and Muted are addresses or domains.
	VIP   []string `json:"vip,omitempty"`
	Muted []string `json:"muted,omitempty"`
	// Newsletters and Social are domains, in addition to the built-in ones.
	Newsletters []string `json:"newsletters,omitempty"`
	Social      []string `json:"social,omitempty"`
	// TaskLabels are labels that mean a task, in addition to the built-in ones.
	TaskLabels []string `json:"task_labels,omitempty"`
	// ObserveOnly makes every action require a person.
	ObserveOnly bool `json:"observe_only,omitempty"`
	// Quarantine proposes moving phishing to the junk folder.
	Quarantine bool `json:"quarantine,omitempty"`
	// Snooze snoozes a message about an event in place of archiving it, and Trash
	// moves bulk mail of a muted sender to the trash in its place.
	Snooze bool `json:"snooze,omitempty"`
	Trash  bool `json:"trash,omitempty"`
	// Confident is the confidence below which a level is lowered, Unsure that
	// below which the owner is asked instead. 0 means 0.7 and 0.5.
	Confident float64 `json:"confident,omitempty"`
	Unsure    float64 `json:"unsure,omitempty"`
}

// Decision is the decision about a message.
type Decision struct {
	Act      classify.Act      `json:"act"`
	Category classify.Category `json:"category"`
	Priority classify.Priority `json:"priority"`
	Bucket   Bucket            `json:"bucket"`
	Cohort   Cohort            `json:"cohort"`
	// Asked is the level of the cohort, and Allowed the level after lowering.
	Asked   Level      `json:"asked"`
	Allowed Level      `json:"allowed"`
	Lowered []Lowering `json:"lowered,omitempty"`
	// Confidence is the confidence in the bucket.
	Confidence float64 `json:"confidence"`
	// Question reports whether to ask the owner for the message's kind.
	Question bool `json:"question,omitempty"`
	// Wants are the actions to propose.
	Wants []Want `json:"wants,omitempty"`
	// Vetoes are the names of the vetoes that hold.
	Vetoes []string `json:"vetoes,omitempty"`
	// Hint is a way to help the owner with the message.
	Hint Hint `json:"hint,omitempty"`
	// Trace explains the whole decision, even if nothing happens.
	Trace []Step `json:"trace"`
}

// Want returns the want of an action, or nil.
func (d Decision) Want(a Action) *Want {
	for i := range d.Wants {
		if d.Wants[i].Action == a {
			return &d.Wants[i]
		}
	}
	return nil
}

// Want is an action to propose.
type Want struct {
	Action Action `json:"action"`
	// Confirm reports whether a person has to approve it. Otherwise policy
	// decides.
	Confirm bool `json:"confirm,omitempty"`
}

// Lowering is a rule that lowered the level.
type Lowering struct {
	Rule string `json:"rule"`
	From Level  `json:"from"`
	To   Level  `json:"to"`
}

// Step is an applied rule and its effect. It contains no text of the mail.
type Step struct {
	Rule    string `json:"rule"`
	From    string `json:"from,omitempty"`
	To      string `json:"to"`
	Because string `json:"because"`
}

// Decide applies every rule. It never fails: an unknown value has the least
// effect.
func Decide(f Facts) Decision {
	s := &state{facts: f}
	s.understand()
	s.chooseCohort()
	s.chooseBucket()
	s.chooseLevel()
	s.askOwner()
	s.applyVetoes()
	s.chooseActions()
	return s.decision
}

// state is a decision in progress.
type state struct {
	facts    Facts
	decision Decision
	// act and category are the models' confidences.
	act, category float64
	row           actRow
	// moves reports whether the message is moved without a person; kept is the
	// reason if its text prevents that.
	moves bool
	kept  string
	// header holds the facts of the header. clear reports whether it permits a
	// move, whatever the level, and no text vetoes one.
	header HeaderFacts
	clear  bool
}

func (s *state) step(rule, from, to, because string) {
	s.decision.Trace = append(s.decision.Trace, Step{Rule: rule, From: from, To: to, Because: because})
}

// may reports whether the flags of the message allow an ability.
func (s *state) may(a signal.Ability) bool { return s.facts.Signals.Restriction().Allows(a) }
