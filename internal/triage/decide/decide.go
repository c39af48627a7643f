// Package decide says what becomes of a message: what it does, how soon its
// owner needs to see it, how much the agent may do about it, and which actions
// are wanted. It is pure: all that counts is in Facts, and every rule leaves a
// step in the trace. It owns the tables of levels, cohorts, acts and vetoes; it
// makes no proposals and knows no tools.
//
// Flags only ever lower: no risk or injection that is found in a message raises
// a level or adds an action that could happen without a person.
package decide

import (
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Bucket is how soon the owner needs to see a message.
type Bucket string

// The buckets, most urgent first.
const (
	Urgent        Bucket = "urgent"
	Actionable    Bucket = "actionable"
	Informational Bucket = "informational"
	Archived      Bucket = "archived"
)

// NeedsOwner reports whether a message of the bucket waits for its owner.
func (b Bucket) NeedsOwner() bool { return b == Urgent || b == Actionable }

// Facts is all that a decision rests on.
type Facts struct {
	Headers Headers
	// Folder is what the folder is for in which the message lies.
	Folder mailbox.Use
	// Flags are flags, keywords and labels, as the provider has them.
	Flags          []string
	Authentication signal.Authentication
	Signals        signal.Result
	Prediction     classify.Prediction
	// Sender and List are what was known before this message came.
	Sender, List signal.Sender
	// OwnerReplied says that the owner has answered in the thread.
	OwnerReplied bool
	// FollowUp says that the owner waits for something in the thread.
	FollowUp bool
	// Answered says that language models were asked about the message, and that the
	// prediction is also theirs.
	Answered bool
	// Amends is the bucket of the message that this one answers; empty if that was
	// never decided.
	Amends  Bucket
	Earlier Earlier
	// Built says that the message was put together from fields, since its account
	// does not give the original.
	Built bool
	// Settings are those of the account.
	Settings Settings
}

// Earlier is what the owner did to the message since triage first saw it.
type Earlier struct {
	// Undone are actions of triage that the owner took back.
	Undone []Action `json:"undone,omitempty"`
	// Touched says that the owner moved or flagged the message.
	Touched bool `json:"touched,omitempty"`
}

// Settings are what the owner of an account has set.
type Settings struct {
	// Addresses are those of the owner, Domains those of the owner's organisation
	// (never one of a public mail provider).
	Addresses []string `json:"addresses,omitempty"`
	Domains   []string `json:"domains,omitempty"`
	// Levels are those that differ from the defaults.
	Levels map[Cohort]Level `json:"levels,omitempty"`
	// VIP and Muted are addresses or domains.
	VIP   []string `json:"vip,omitempty"`
	Muted []string `json:"muted,omitempty"`
	// Newsletters and Social are domains, beside those that are built in.
	Newsletters []string `json:"newsletters,omitempty"`
	Social      []string `json:"social,omitempty"`
	// TaskLabels are labels that mean a task, beside those that are built in.
	TaskLabels []string `json:"task_labels,omitempty"`
	// ObserveOnly has every action wait for a person.
	ObserveOnly bool `json:"observe_only,omitempty"`
	// Quarantine has a move to the junk folder proposed for phishing.
	Quarantine bool `json:"quarantine,omitempty"`
	// Confident is the confidence under which a level is lowered, Unsure that under
	// which the owner is asked instead. 0 stands for 0.7 and 0.5.
	Confident float64 `json:"confident,omitempty"`
	Unsure    float64 `json:"unsure,omitempty"`
}

// Decision is what becomes of a message.
type Decision struct {
	Act      classify.Act      `json:"act"`
	Category classify.Category `json:"category"`
	Priority classify.Priority `json:"priority"`
	Bucket   Bucket            `json:"bucket"`
	Cohort   Cohort            `json:"cohort"`
	// Asked is the level of the cohort. Allowed is what is left of it.
	Asked   Level      `json:"asked"`
	Allowed Level      `json:"allowed"`
	Lowered []Lowering `json:"lowered,omitempty"`
	// Confidence is how far the bucket is to be believed.
	Confidence float64 `json:"confidence"`
	// Question says that the owner is to be asked what the message is.
	Question bool `json:"question,omitempty"`
	// Wants are the actions to propose.
	Wants []Want `json:"wants,omitempty"`
	// Vetoes are the names of those that hold.
	Vetoes []string `json:"vetoes,omitempty"`
	// Hint says what helps the owner with the message.
	Hint Hint `json:"hint,omitempty"`
	// Trace tells the whole decision, also where nothing happens.
	Trace []Step `json:"trace"`
}

// Want returns the want of an action; nil for none.
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
	// Confirm says that a person has to approve it. Without, policy decides.
	Confirm bool `json:"confirm,omitempty"`
}

// Lowering is a rule that lowered the level.
type Lowering struct {
	Rule string `json:"rule"`
	From Level  `json:"from"`
	To   Level  `json:"to"`
}

// Step is a rule that was asked, and what it changed. It holds no text of the
// mail.
type Step struct {
	Rule    string `json:"rule"`
	From    string `json:"from,omitempty"`
	To      string `json:"to"`
	Because string `json:"because"`
}

// Decide applies every rule. It never fails: what is unknown is treated as the
// case in which least is done.
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

// state is a decision in the making.
type state struct {
	facts    Facts
	decision Decision
	// act and category are how sure the models are of them.
	act, category float64
	row           actRow
	// moves says that the message is moved without a person, kept why its text
	// prevents that.
	moves bool
	kept  string
}

func (s *state) step(rule, from, to, because string) {
	s.decision.Trace = append(s.decision.Trace, Step{Rule: rule, From: from, To: to, Because: because})
}

// may reports whether the flags of the message leave an ability.
func (s *state) may(a signal.Ability) bool { return s.facts.Signals.Restriction().Allows(a) }
