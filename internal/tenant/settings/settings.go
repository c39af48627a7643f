// Package settings owns the compiled configuration of one tenant: the modes,
// rules about arguments, grants, reviews, preferences and sessions' modes that
// policy decides by, together with the tenant's catalog and limits. It stores
// them, reads and writes them as one document, and caches them compiled, so that
// Settings answer without a database. It does not decide: package policy does,
// from what the Settings give it.
package settings

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/source/webhook"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Settings are one tenant's catalog, policy and limits at one version. They
// are safe for concurrent use and never change.
type Settings struct {
	*catalog.Catalog

	Tenant  envelope.TenantID
	Version int64
	// Limits are the tenant's own settings of what may be sent, when, and how
	// fast.
	Limits *limits.Set

	organisation policy.Rules
	// danger is what follows from the risk danger: deny or require_approval.
	danger      envelope.Mode
	automations map[string]policy.Rules
	layers      layers
	decider     *policy.Decider
	reviews     map[policy.Key][]ReviewRule
}

// Proposal is what policy reads of a proposed action, beside its tool.
type Proposal struct {
	Automation string
	// AskedApproval says that the agent wants a person to look.
	AskedApproval bool
	// Employee is the agent's identity; the zero value is nobody.
	Employee envelope.EmployeeID
	// Risk is the higher of what the agent said and the tool's own.
	Risk envelope.Risk
	// Listed says that it addresses somebody on the do-not-contact list.
	Listed bool
	// Session is the agent's; empty for none.
	Session string
	// Args are what the tool is called with.
	Args json.RawMessage
	// Tools are the patterns of the tools that the proposer's token is for;
	// nil is all.
	Tools []string
	// Person is who proposes: the person behind the token, or the token; zero if
	// it is nobody. No grant of theirs covers the proposal.
	Person uuid.UUID
	// AnyArgs says that nobody knows yet what the tool will be called with, as
	// where tools are listed: rules about arguments and grants are not asked.
	// Without it, no Args are no arguments.
	AnyArgs bool
	// Now is the database's clock, which says what has expired. If it is zero,
	// no grant holds, and every session's mode does.
	Now time.Time
}

// Decide asks policy about a tool. An automation without rules of its own
// adds nothing; nor does an employee who is not registered, unless the tenant
// has an entry for those.
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
	// A message of a subscription is Countersign's own words: no employee's,
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
		s.decideArgs(t, &p, &in)
	}
	return s.decider.Decide(in)
}

// decideArgs asks what depends on the arguments, where the tenant has any of
// it.
func (s *Settings) decideArgs(t *catalog.Tool, p *Proposal, in *policy.Input) {
	if !s.layers.arguments.Empty() {
		in.Matches = s.matches(t, p)
	}
	for _, g := range s.layers.grants[t.Key] {
		if g.covers(t, p) {
			in.Grant = policy.GrantFound{ID: g.ID.String(), Version: versionText(g.Version)}
			in.Quorum = s.Review(t, p.Risk).Approvals
			return
		}
	}
}

// matches returns the rules about arguments that apply to a proposal, in order of
// their ids. Those that apply at the tool's own risk count too where the agent
// said a higher one, so that no agent escapes a rule by what it says.
func (s *Settings) matches(t *catalog.Tool, p *Proposal) []policy.Match {
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

// subject is what rules about arguments see of a proposal.
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

// Viewer is somebody who looks at the catalog, as policy would see what they
// propose.
type Viewer struct {
	Employee envelope.EmployeeID
	Session  string
	// Tools are the patterns of the tools that their token is for; nil is all.
	Tools      []string
	Automation string
	// Lists is which tools they may list.
	Lists Listing
	// Now is the database's clock, which says what has expired.
	Now time.Time
}

// Visible returns, in order of key, the tools that a viewer may use: those
// that their sources offer now and that policy does not deny the viewer
// whatever the arguments.
func (s *Settings) Visible(by Viewer) []*catalog.Tool {
	var seen []*catalog.Tool
	for _, t := range s.Tools() {
		if s.Offers(t) && s.MayUse(t, by) {
			seen = append(seen, t)
		}
	}
	return seen
}

// MayUse reports whether policy does not deny a viewer a tool whatever the arguments.
func (s *Settings) MayUse(t *catalog.Tool, by Viewer) bool {
	return s.Decide(t, by.Proposal(t)).Mode != envelope.ModeDeny
}

// DeniedAsDanger reports whether a decision denies a tool for its risk alone:
// the risk is danger, the tenant denies that, and no mode is set for the tool.
func (s *Settings) DeniedAsDanger(t *catalog.Tool, d policy.Decision) bool {
	base, _, _ := strings.Cut(d.Source, "+")
	return base == policy.LayerInferred && t.Risk == policy.RiskDanger && s.danger != envelope.ModeRequireApproval
}

// Proposal is a call of a tool by the viewer, without a word about its
// arguments.
func (by Viewer) Proposal(t *catalog.Tool) Proposal {
	return Proposal{
		Automation: by.Automation, Employee: by.Employee, Session: by.Session, Tools: by.Tools, Risk: t.Risk.Envelope(),
		AnyArgs: true, Now: by.Now,
	}
}

// subscriptionPrefix begins the ids of the automations under which
// subscriptions deliver. Nobody else can propose under it.
const subscriptionPrefix = "countersign.subscription."

// SubscriptionAutomation is the automation under which a subscription
// delivers.
func SubscriptionAutomation(id uuid.UUID) string { return subscriptionPrefix + id.String() }

// Delivery says which subscription an automation is, and false if it is none.
func Delivery(automation string) (uuid.UUID, bool) {
	text, ok := strings.CutPrefix(automation, subscriptionPrefix)
	if !ok {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}

// DeliveryTools are the tools that a subscription to a source of a kind
// delivers with; none for a kind that cannot deliver.
func DeliveryTools(kind string) []string {
	switch kind {
	case catalog.KindWebhook:
		return []string{webhook.ToolDeliver}
	case catalog.KindSlack:
		return []string{slack.ToolMessageSend, slack.ToolMessageUpdate, slack.ToolMessageEphemeral, slack.ToolViewOpen}
	}
	return nil
}

// movedDelivery reports whether a message of a subscription goes to a source whose
// address changed: a subscription delivers wherever its source is.
func movedDelivery(t *catalog.Tool, automation string) bool {
	_, delivery := Delivery(automation)
	return delivery && t.Moved && t.Drift == catalog.DriftNone
}

// rules are those of an automation. A subscription that is gone, or off, has
// none any more, and what it still had to deliver is denied.
func (s *Settings) rules(automation string) policy.Rules {
	rules, known := s.automations[automation]
	if !known && strings.HasPrefix(automation, subscriptionPrefix) {
		return s.automations[subscriptionPrefix]
	}
	return rules
}
