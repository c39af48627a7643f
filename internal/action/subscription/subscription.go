// Package subscription owns the delivery of events to webhooks and Slack: the
// three invocation events, the subscriptions, their messages, and the requests
// that Slack sends for buttons. A relay reads new events of a subscription and
// proposes one action for each message, in the transaction that advances the
// subscription's cursor. So every message has the retries, the audit log and the
// limits of any other action, and is proposed once.
//
// The package calls no receiver, sends no messages about messages, and decides
// nothing.
package subscription

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// maxSubscriptions bounds the subscriptions of a tenant: each reads every
// event.
const maxSubscriptions = 50

// Subscription is a receiver and the events that it receives.
type Subscription struct {
	ID uuid.UUID
	// Name is unique in the tenant.
	Name string
	// Source is the source of kind webhook or slack that delivers.
	Source string
	// Kinds are events of an invocation, and kinds of transitions.
	Kinds []string
	// Tool is a pattern of tools; "*" is all, and events without a tool.
	Tool string
	// MinRisk is the lowest risk of the actions whose events are sent.
	MinRisk envelope.Risk
	// Channel is the channel in Slack.
	Channel string
	// Link is the address of the button that opens an action, without the id;
	// empty for no button.
	Link string
	// Bucket is the rate bucket of its deliveries; empty is the default.
	Bucket string
	// HasSigningSecret reports whether its messages can have buttons.
	HasSigningSecret bool
	// ShowMail reports whether messages in Slack about actions of triage show sender
	// and subject of the mail.
	ShowMail bool
	Enabled  bool
	// DisabledReason is the reason why Countersign disabled it.
	DisabledReason string
	// Behind counts the events after its cursor, up to behindBound.
	Behind               int
	CreatedAt, UpdatedAt time.Time
	UpdatedBy            envelope.Actor
}

// behindBound bounds Subscription.Behind.
const behindBound = 10_000

// Check checks a subscription to a source of a kind. The error is an
// *envelope.InvalidError.
func (s Subscription) Check(kind string) error {
	var p check.Problems
	if len(settings.DeliveryTools(kind)) == 0 {
		p.Add("/source", "kind", "must be a source of the kind webhook or slack")
	}
	if slices.ContainsFunc(s.Kinds, func(k string) bool { return !slices.Contains(Kinds(), k) }) {
		p.Add("/kinds", envelope.RuleEnum, "unknown kind of event; see the list of kinds")
	}
	if _, err := policy.ParsePattern(s.Tool); err != nil {
		p.Add("/tool", envelope.RulePattern, "%s", err)
	}
	if kind == catalog.KindSlack && s.Channel == "" {
		p.Add("/channel", envelope.RuleRequired, "messages in Slack need a channel")
	}
	if kind == catalog.KindWebhook && (s.Channel != "" || s.Link != "" || s.HasSigningSecret || s.ShowMail) {
		p.Add("/channel", envelope.RuleUnknownField, "channel, link, signing_secret and show_mail are for Slack; a webhook signs with its source's own secret")
	}
	if s.Link != "" && !plainLink(s.Link) {
		p.Add("/link", envelope.RuleFormat, "must be an absolute https address without user, or http to the machine itself")
	}
	return p.Err()
}

// DefaultKinds returns the kinds of a subscription that names none.
func DefaultKinds(kind string) []string {
	if kind == catalog.KindSlack {
		return []string{ApprovalRequest}
	}
	return []string{ApprovalRequest, ApprovalResult, Completed}
}

// Kinds returns all kinds that a subscription can have.
func Kinds() []string {
	return []string{
		ApprovalRequest, ApprovalResult, Completed,
		string(audit.Proposed), string(audit.Decided), string(audit.Voted), string(audit.Edited), string(audit.Expiring),
		string(audit.Escalated), string(audit.Settled), string(audit.Undone), string(audit.ReturnedToApproval), string(audit.Replayed),
		string(audit.Discarded), string(audit.Resolved), string(audit.Killed), string(audit.Configured), string(audit.RetentionReported),
		string(audit.Pruned), string(audit.WorkflowChanged), string(audit.SessionStarted), string(audit.SessionEnded), string(audit.LoginRefused),
	}
}

// wants returns the name under which a subscription receives an item of an
// event, and false if it does not. An item that matches twice, as an invocation
// event and as a transition, is received once, as the former.
func (s *Subscription) wants(kind audit.Kind, it audit.Item) (string, bool) {
	if name := InvocationKind(kind, it); name != "" && slices.Contains(s.Kinds, name) {
		return name, true
	}
	return string(kind), slices.Contains(s.Kinds, string(kind))
}

// covers reports whether a subscription is for the tool and risk of an action.
func (s *Subscription) covers(e *envelope.Envelope) bool {
	pattern, err := policy.ParsePattern(s.Tool)
	return err == nil && Matches(pattern, policy.Key{Source: e.Tool.Source, Action: e.Tool.Name}) && policy.RiskRank(e.Risk) >= policy.RiskRank(s.MinRisk)
}

// wantsAll reports whether a subscription receives events without a tool.
func (s *Subscription) wantsAll() bool {
	pattern, err := policy.ParsePattern(s.Tool)
	return err == nil && pattern == policy.Key{Source: "*", Action: "*"} && policy.RiskRank(s.MinRisk) == policy.RiskRank(envelope.RiskLow)
}

// Matches reports whether a pattern that policy.ParsePattern read matches a tool.
func Matches(pattern, key policy.Key) bool {
	part := func(p, k string) bool { return p == "*" || p == k }
	return part(pattern.Source, key.Source) && part(pattern.Action, key.Action)
}
