// Package settings owns the compiled configuration of one tenant: the modes,
// rules about arguments, grants, reviews, preferences and modes of sessions as
// inputs of policy, together with the tenant's catalog and limits. It stores
// them, imports and exports them as one document, and caches them compiled, for
// lookups without a database. Package policy makes the decisions.
package settings

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/source/webhook"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Settings are one tenant's catalog, policy and limits at one version. They are
// immutable and safe for concurrent use.
type Settings struct {
	*catalog.Catalog

	Tenant  envelope.TenantID
	Version int64
	// Limits are the tenant's settings that limit the calls, their times and
	// their rate.
	Limits *limits.Set

	organisation policy.Rules
	// danger is the mode of the risk danger: deny or require_approval.
	danger      envelope.Mode
	automations map[string]policy.Rules
	layers      layers
	decider     *policy.Decider
	reviews     map[policy.Key][]ReviewRule
}

// Proposal is the input of policy about a proposed action, in addition to its
// tool.
type Proposal struct {
	Automation string
	// AskedApproval is set if the agent requests a person's approval.
	AskedApproval bool
	// Employee is the agent's identity; the zero value means none.
	Employee envelope.EmployeeID
	// Risk is the higher of the agent's and the tool's risk.
	Risk envelope.Risk
	// Listed is set if a recipient is on the do-not-contact list.
	Listed bool
	// Session is the agent's session; empty if none.
	Session string
	// Args are the arguments of the call.
	Args json.RawMessage
	// Tools are the patterns of the proposer's token; nil means all.
	Tools []string
	// Person is the proposer: the person behind the token, or the token; zero if
	// none. That person's own grants do not cover the proposal.
	Person uuid.UUID
	// AnyArgs is set if the arguments are not known yet, as in a list of tools:
	// rules about arguments and grants are then not evaluated. Otherwise empty
	// Args mean no arguments.
	AnyArgs bool
	// Now is the database's clock, for expiry. If it is zero, no grant is valid,
	// and every session's mode is.
	Now time.Time
}

// Decide evaluates policy for a tool. An automation without rules of its own has
// no effect; nor does an unknown employee, unless the tenant has a default
// entry.
func (s *Settings) Decide(t *catalog.Tool, p Proposal) policy.Decision {
	in := policy.Input{
		Key:           t.Key,
		Automation:    s.rules(p.Automation),
		Organisation:  s.organisation,
		Risk:          t.Risk,
		Danger:        s.danger,
		AskedApproval: p.AskedApproval,
		Drifted:       t.Drifted() && !movedDelivery(t, p.Automation),
		Listed:        p.Listed,
		Everybody:     s.layers.everybody,
		Tools:         p.Tools,
		Quarantined:   t.Quarantined,
	}
	var fixed []string
	in.Person, fixed = s.alwaysPerson(t.Key)
	in.PersonGrants = len(fixed) > 0
	// A message of a subscription is written by Countersign: it has no employee,
	// and no agent chose its arguments.
	_, delivery := Delivery(p.Automation)
	if employee, known := s.Limits.Employee(p.Employee); known && !delivery {
		in.Trust, in.EnvelopeRisk = policy.Trust(employee.Trust), p.Risk
		in.MissingScopes = policy.MissingScopes(employee.Scopes, t.Scopes)
	}
	if len(s.layers.personal) > 0 {
		in.Personal = s.layers.personal[p.Employee]
	}
	if session, ok := s.layers.sessions[p.Session]; ok {
		in.Session = session.at(p.Now)
	}
	if !p.AnyArgs && !delivery {
		s.decideArgs(t, &p, &in, fixed)
	}
	if p.Automation == ReturnAutomation {
		in.Grant, in.Quorum = policy.GrantFound{ID: ReturnAutomation}, 0
	}
	return s.decider.Decide(in)
}

// decideArgs adds the inputs that depend on the arguments, if the tenant has
// any. Only grants that fix the arguments at the pointers count.
func (s *Settings) decideArgs(t *catalog.Tool, p *Proposal, in *policy.Input, fixed []string) {
	if !s.layers.arguments.Empty() {
		in.Matches = s.Matches(t, p)
	}
	for _, g := range s.layers.grants[t.Key] {
		if g.covers(t, p) && g.pins.Fix(fixed...) {
			in.Grant = policy.GrantFound{ID: g.ID.String(), Version: versionText(g.Version)}
			in.Quorum = s.Review(t, p.Risk).Approvals
			return
		}
	}
}

// Matches returns the rules about arguments that apply to a proposal, ordered by
// id. If the agent raised the risk, rules that apply at the tool's own risk
// count too, so that no agent can avoid a rule by raising it.
func (s *Settings) Matches(t *catalog.Tool, p *Proposal) []policy.Match {
	found := s.layers.arguments.Match(p.Automation, t.Key, func() *policy.Subject { return s.subject(t, p) })
	own := t.Risk.Envelope()
	if p.Risk == own {
		return found
	}
	plain := *p
	plain.Risk = own
	for _, m := range s.layers.arguments.Match(p.Automation, t.Key, func() *policy.Subject { return s.subject(t, &plain) }) {
		if !slices.ContainsFunc(found, func(other policy.Match) bool { return other.Rule == m.Rule }) {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b policy.Match) int { return strings.Compare(a.Rule, b.Rule) })
	return found
}

// subject returns the input of rules about arguments.
func (s *Settings) subject(t *catalog.Tool, p *Proposal) *policy.Subject {
	subject := &policy.Subject{
		Args: p.Args, Key: t.Key, Risk: t.Risk, Effect: t.Effect, EnvelopeRisk: p.Risk, Automation: p.Automation, Session: p.Session,
		Scopes: []string{},
	}
	if p.Employee != (envelope.EmployeeID{}) {
		subject.Employee = p.Employee.String()
	}
	if e, ok := s.Limits.Employee(p.Employee); ok {
		subject.Known = p.Employee != (envelope.EmployeeID{}) && e.ID == p.Employee
		subject.Trust = policy.Trust(e.Trust)
		subject.Scopes = append(subject.Scopes, e.Scopes...)
	}
	return subject
}

// Viewer is a viewer of the catalog, with the properties that policy would
// evaluate in its proposals.
type Viewer struct {
	Employee envelope.EmployeeID
	Session  string
	// Tools are the patterns of the viewer's token; nil means all.
	Tools      []string
	Automation string
	// Lists is the set of tools that the viewer may list.
	Lists Listing
	// Now is the database's clock, for expiry.
	Now time.Time
}

// Visible returns the tools that a viewer may use, ordered by key: those that
// their sources currently offer and that policy does not deny the viewer for all
// arguments.
func (s *Settings) Visible(by Viewer) []*catalog.Tool {
	var seen []*catalog.Tool
	for _, t := range s.Tools() {
		if s.Offers(t) && s.MayUse(t, by) {
			seen = append(seen, t)
		}
	}
	return seen
}

// MayUse reports whether policy does not deny a viewer a tool for all arguments.
func (s *Settings) MayUse(t *catalog.Tool, by Viewer) bool {
	return s.Decide(t, by.Proposal(t)).Mode != envelope.ModeDeny
}

// Coverage counts the rules about arguments, reviews and grants that can apply
// to calls of a tool. It leaves out rules and grants of another automation,
// session or employee than the viewer's; a viewer without one is anybody.
func (s *Settings) Coverage(t *catalog.Tool, by Viewer) (rules, reviews, grants int) {
	for _, pattern := range policy.Patterns(t.Key) {
		reviews += len(s.reviews[pattern])
	}
	for _, g := range s.layers.grants[t.Key] {
		if by.Now.Before(g.ExpiresAt) && t.Is(g.Digest) && either(g.Automation, by.Automation) && either(g.Session, by.Session) && either(g.Employee, by.Employee) {
			grants++
		}
	}
	return s.layers.arguments.Count(by.Automation, t.Key), reviews, grants
}

// either reports whether two values are equal or one of them is zero.
func either[T comparable](a, b T) bool {
	var zero T
	return a == zero || b == zero || a == b
}

// DeniedAsDanger reports whether a decision denies a tool only for its risk: the
// risk is danger, the tenant denies that, and no mode is set for the tool.
func (s *Settings) DeniedAsDanger(t *catalog.Tool, d policy.Decision) bool {
	base, _, _ := strings.Cut(d.Source, "+")
	return base == policy.LayerInferred && t.Risk == policy.RiskDanger && s.danger != envelope.ModeRequireApproval
}

// Proposal returns a call of a tool by the viewer with any arguments.
func (by Viewer) Proposal(t *catalog.Tool) Proposal {
	return Proposal{
		Automation: by.Automation, Employee: by.Employee, Session: by.Session, Tools: by.Tools, Risk: t.Risk.Envelope(),
		AnyArgs: true, Now: by.Now,
	}
}

// ReturnAutomation is the automation id of returns: calls that end the temporary
// effect of an earlier one. It is reserved, and the approval of the earlier call
// covers them like a grant.
const ReturnAutomation = "countersign.return"

// subscriptionPrefix is the prefix of the automation ids of subscriptions. It is
// reserved for their deliveries.
const subscriptionPrefix = "countersign.subscription."

// SubscriptionAutomation returns the automation id of a subscription's
// deliveries.
func SubscriptionAutomation(id uuid.UUID) string { return subscriptionPrefix + id.String() }

// Delivery returns the subscription of an automation id, and false if it is not
// one.
func Delivery(automation string) (uuid.UUID, bool) {
	text, ok := strings.CutPrefix(automation, subscriptionPrefix)
	if !ok {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}

// Repeat is a delivery that is sent again by an action.
type Repeat struct {
	// Of is the delivery, and Number counts its resends including this one.
	Of     envelope.ActionID
	Number int
}

// RepeatOf returns the delivery that an action sends again; false for any other
// action. Only Countersign itself proposes under the automation of a subscription.
func RepeatOf(automation, external string) (Repeat, bool) {
	of, delivery := Delivery(automation)
	rest, named := strings.CutPrefix(external, resendsOf(of))
	id, number, _ := strings.Cut(rest, ":")
	parsed, errID := uuid.Parse(id)
	n, errNumber := strconv.Atoi(number)
	if !delivery || !named || errID != nil || errNumber != nil {
		return Repeat{}, false
	}
	return Repeat{envelope.ActionID(parsed), n}, true
}

// ResendNames returns the common beginning of the external ids of a delivery's
// resends, which end with twelve digits; ok is false for any other action.
func ResendNames(automation string, delivery envelope.ActionID) (base string, ok bool) {
	of, ok := Delivery(automation)
	return resendsOf(of) + delivery.String() + ":", ok
}

// resendsOf begins the external ids of the resends of a subscription.
func resendsOf(subscription uuid.UUID) string { return "message:" + subscription.String() + ":resend:" }

// DeliveryTools returns the tools with which a subscription to a source of a
// kind delivers; none for a kind that cannot deliver.
func DeliveryTools(kind string) []string {
	switch kind {
	case catalog.KindWebhook:
		return []string{webhook.ToolDeliver}
	case catalog.KindSlack:
		return []string{slack.ToolMessageSend, slack.ToolMessageUpdate, slack.ToolMessageEphemeral, slack.ToolViewOpen}
	}
	return nil
}

// alwaysPerson reports whether a person approves every call of a tool, whatever
// the tenant allows, and the pointers to the arguments that a grant has to fix in
// place of the person.
func (s *Settings) alwaysPerson(tool policy.Key) (always bool, fixed []string) {
	always, fixed = mail.AlwaysPerson(tool.Action)
	if of, known := s.Source(tool.Source); always && known && of.Kind != catalog.KindMail {
		return false, nil
	}
	return always, fixed
}

// movedDelivery reports whether a message of a subscription goes to a source
// with a changed address: a subscription delivers to the current address of its
// source.
func movedDelivery(t *catalog.Tool, automation string) bool {
	_, delivery := Delivery(automation)
	return delivery && t.Moved && t.Drift == catalog.DriftNone
}

// rules returns the rules of an automation. A deleted or disabled subscription
// has none, and its remaining deliveries are denied.
func (s *Settings) rules(automation string) policy.Rules {
	rules, known := s.automations[automation]
	if !known && strings.HasPrefix(automation, subscriptionPrefix) {
		return s.automations[subscriptionPrefix]
	}
	return rules
}
