// Package subscription owns what events become for the outside: the three events of
// an invocation, the subscriptions of receivers, the messages that they get,
// and what comes back from the buttons in a message. A relay follows the
// events behind each subscription and proposes one envelope for each message,
// in the transaction that moves the subscription on, so that every message has
// the retries, the ledger and the limits of any other action and is proposed
// once.
//
// It refuses to call anybody, to tell of its own messages, and to decide: a
// button that was pressed is handed to whoever the operator behind it is.
package subscription

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MaxSubscriptions bounds those of one tenant: each reads every event.
const MaxSubscriptions = 50

// Subscription is a receiver and what it wants to hear of.
type Subscription struct {
	ID uuid.UUID
	// Name is unique in the tenant.
	Name string
	// Source is the source of kind webhook or slack that delivers.
	Source string
	// Kinds are the names of the events of an invocation, and kinds of
	// transitions.
	Kinds []string
	// Tool is a pattern of the tools to hear of; "*" is all, and events that
	// are about no tool.
	Tool string
	// MinRisk is the lowest risk to hear of; low is all.
	MinRisk envelope.Risk
	// Channel is where messages go in Slack.
	Channel string
	// Link is an address to which the id of an action is appended, for a
	// button that opens it; empty for none.
	Link string
	// Bucket is the rate bucket of its deliveries; empty is the usual one.
	Bucket string
	// HasSigningSecret says that buttons can act for it.
	HasSigningSecret bool
	Enabled          bool
	// DisabledReason says why it was switched off by itself.
	DisabledReason string
	// Behind counts the events that it has not been told of, up to
	// BehindBound.
	Behind               int
	CreatedAt, UpdatedAt time.Time
	UpdatedBy            string
}

// BehindBound bounds Subscription.Behind.
const BehindBound = 10_000

// Check says what is wrong with a subscription to a source of a kind, as an
// *envelope.InvalidError.
func (s Subscription) Check(kind string) error {
	var wrong []envelope.FieldError
	refuse := func(at string, rule envelope.Rule, message string) {
		wrong = append(wrong, envelope.FieldError{Pointer: at, Rule: rule, Message: message})
	}
	if len(settings.DeliveryTools(kind)) == 0 {
		refuse("/source", "kind", "must be a source of the kind webhook or slack")
	}
	for _, k := range s.Kinds {
		if !slices.Contains(Kinds(), k) {
			refuse("/kinds", envelope.RuleEnum, "there is no such kind of event; see the list of kinds")
			break
		}
	}
	if _, err := policy.ParsePattern(s.Tool); err != nil {
		refuse("/tool", envelope.RulePattern, err.Error())
	}
	if kind == catalog.KindSlack && s.Channel == "" {
		refuse("/channel", envelope.RuleRequired, "messages in Slack need a channel")
	}
	if kind == catalog.KindWebhook && (s.Channel != "" || s.Link != "" || s.HasSigningSecret) {
		refuse("/channel", envelope.RuleUnknownField, "channel, link and signing_secret are for Slack; a webhook signs with its source's own secret")
	}
	if s.Link != "" && !plainLink(s.Link) {
		refuse("/link", envelope.RuleFormat, "must be an absolute https address without user, or http to the machine itself")
	}
	if len(wrong) > 0 {
		return &envelope.InvalidError{Fields: wrong}
	}
	return nil
}

// DefaultKinds are what a receiver of a kind hears of that names nothing.
func DefaultKinds(kind string) []string {
	if kind == catalog.KindSlack {
		return []string{ApprovalRequest}
	}
	return []string{ApprovalRequest, ApprovalResult, Completed}
}

// Kinds are all that a subscription can be for.
func Kinds() []string {
	return []string{
		ApprovalRequest, ApprovalResult, Completed,
		string(audit.Proposed), string(audit.Decided), string(audit.Voted), string(audit.Edited), string(audit.Expiring),
		string(audit.Escalated), string(audit.Settled), string(audit.Undone), string(audit.ReturnedToApproval), string(audit.Replayed),
		string(audit.Discarded), string(audit.Resolved), string(audit.Killed), string(audit.Configured), string(audit.Noticed),
		string(audit.Pruned), string(audit.WorkflowChanged),
	}
}

// wants says under which name a subscription hears of an item of an event,
// and false if it does not. Of an item that it asked for twice, as the event
// of an invocation and as a transition, it hears once, as the former.
func (s *Subscription) wants(kind audit.Kind, it audit.Item) (string, bool) {
	if name := InvocationKind(kind, it); name != "" && slices.Contains(s.Kinds, name) {
		return name, true
	}
	return string(kind), slices.Contains(s.Kinds, string(kind))
}

// covers says whether a subscription is for an envelope.
func (s *Subscription) covers(e *envelope.Envelope) bool {
	pattern, err := policy.ParsePattern(s.Tool)
	return err == nil && Matches(pattern, policy.Key{Source: e.Tool.Source, Action: e.Tool.Name}) && rank(e.Risk) >= rank(s.MinRisk)
}

// everything says that a subscription also hears of what is about no tool.
func (s *Subscription) wantsAll() bool {
	pattern, err := policy.ParsePattern(s.Tool)
	return err == nil && pattern == policy.Key{Source: "*", Action: "*"} && rank(s.MinRisk) == rank(envelope.RiskLow)
}

// Covers says whether a pattern that policy.ParsePattern read is about a tool.
func Matches(pattern, key policy.Key) bool {
	part := func(p, k string) bool { return p == "*" || p == k }
	return part(pattern.Source, key.Source) && part(pattern.Action, key.Action)
}

func rank(r envelope.Risk) int {
	switch r {
	case envelope.RiskHigh:
		return 3
	case envelope.RiskMedium:
		return 2
	case envelope.RiskLow:
		return 1
	}
	return 1
}

// errHeld says that a subscription cannot go on for now.
func errPaused(why string) error { return fault.New(fault.Busy, "%s", why) }
