package approval

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// decisionTx is a transaction in which one person decides about some envelopes.
// It holds their locks, so nothing else changes them.
type decisionTx struct {
	tx       pgx.Tx
	by       Decider
	settings *settings.Settings
	items    map[envelope.ActionID]*item
}

// item is an action under decision.
type item struct {
	decision.Action
	action envelope.ActionID
	state  envelope.Approval
	// closed is the reason why the action can no longer be decided; nil while it
	// is pending.
	closed     error
	isProposer bool
	// alone reports whether one vote suffices, also the proposer's.
	alone bool
	// edited reports whether a person changed the proposal.
	edited bool
	// editors are the people who changed it.
	editors    []uuid.UUID
	tool       policy.Key
	toolDigest []byte
	// decided is the id of the stored decision; now is the current decision of
	// policy.
	decided uuid.UUID
	now     policy.Decision
	round
}

// round is a round of votes about the current version of an action.
type round struct {
	number, needed, given int
	// digest is the subject of the votes; nil if there are no votes.
	digest []byte
	// voters are the people whose votes count. void are the people who voted in
	// the round but may no longer decide, or not with the token that they used.
	voters, void []uuid.UUID
}

func (d *Service) open(ctx context.Context, tx pgx.Tx, by Decider, actions ...envelope.ActionID) (*decisionTx, error) {
	s := &decisionTx{tx: tx, by: by}
	var err error
	if s.items, err = read(ctx, tx, by, actions); err != nil {
		return nil, err
	}
	if s.settings, err = d.catalog.Current(ctx, tx, by.Tenant); err != nil {
		return nil, err
	}
	s.resolveTools()
	return s, nil
}

// resolveTools sets the settings of the items, and their tools if they still
// exist.
func (s *decisionTx) resolveTools() {
	for _, m := range s.items {
		m.Settings = s.settings
		m.Tool, _ = s.settings.Tool(m.tool)
	}
}

// find returns an action, in the version that was seen, if the decider may
// decide about it. Otherwise it returns the reason.
func (s *decisionTx) find(action envelope.ActionID, seenAs string) (*item, error) {
	m, ok := s.items[action]
	switch {
	case !ok:
		return nil, fault.New(fault.NotFound, "no action %s", action)
	case m.checkDecider(s.by) != nil:
		return nil, m.checkDecider(s.by)
	case seenAs != "" && seenAs != etag(m.Args, m.toolDigest, m.decided, m.number):
		return nil, fault.Coded(wire.CodeStale, fault.Stale, "action %s has changed since it was read: its arguments, its tool, the policy decision or the votes differ; read it again", action)
	}
	return m, nil
}

// checkDecider returns the reason why a person may not decide about the
// action, or nil.
func (m *item) checkDecider(by Decider) error {
	switch {
	case by.Tools != nil && !policy.Covers(by.Tools, m.tool):
		return fault.Coded(wire.CodeTools, fault.Denied, "the token does not cover the tool %s", m.tool)
	case m.isProposer && !m.alone:
		return fault.Coded(wire.CodeOwnProposal, fault.Denied, "this is your own proposal; another person must decide")
	case m.closed != nil:
		return m.closed
	case m.state != envelope.ApprovalRequired:
		return fault.Coded(wire.CodeDecided, fault.Conflict, "action %s does not wait for a decision: this request already decided it", m.action)
	}
	return nil
}

// findSeen is find for a binding decision: if the action was edited, the decider
// must name the version.
func (s *decisionTx) findSeen(action envelope.ActionID, ifMatch string) (*item, error) {
	m, err := s.find(action, ifMatch)
	if err == nil && ifMatch == "" && m.edited {
		return nil, fault.New(fault.Unconditional, "action %s was edited after it was proposed; look at it, and decide with its ETag in If-Match", action)
	}
	return m, err
}

// checkDefinition returns fault.Conflict if the tool has changed since the
// proposal.
func (m *item) checkDefinition() error { return checkDefinition(m.Tool, m.tool, m.toolDigest) }

func checkDefinition(now *catalog.Tool, tool policy.Key, digest []byte) error {
	if now == nil {
		return fault.Coded(wire.CodeToolGone, fault.Conflict, "its source no longer has the tool %s", tool)
	}
	if !now.Is(digest) {
		return fault.Coded(wire.CodeDrift, fault.Conflict, "the tool's definition, or the address of its source, changed after this was proposed; it must be proposed again")
	}
	return nil
}

// CheckApprovable returns fault.Conflict if an action can no longer be approved
// because its tool was removed or changed, or because policy now denies it. decide
// returns the current decision of policy.
func CheckApprovable(now *catalog.Tool, tool policy.Key, digest []byte, decide func() (policy.Decision, error)) error {
	if err := checkDefinition(now, tool, digest); err != nil {
		return err
	}
	d, err := decide()
	if err == nil && d.Mode == envelope.ModeDeny {
		err = fault.Coded(wire.CodePolicyDenied, fault.Conflict, "policy now denies this: %s", d.Source)
	}
	return err
}

// checkEditor returns fault.Denied if the person edited the arguments and a review
// rule requires another person. Without such a rule the editor's vote counts: an
// edit begins a new round, so all other voters agree to the edited version, and a
// rule for two people still needs two.
func (m *item) checkEditor(person uuid.UUID) error {
	if slices.Contains(m.editors, person) && m.Settings.Review(m.Tool, m.Risk).EditsByAnother {
		return fault.Coded(wire.CodeOwnEdit, fault.Denied, "you edited the arguments; a review rule requires other people to approve edited arguments")
	}
	return nil
}

// requestedVote is a vote cast for an envelope.
type requestedVote struct {
	action  envelope.ActionID
	ifMatch string
	// find is findSeen, or find if the version was already checked.
	find func(*decisionTx, envelope.ActionID, string) (*item, error)
}

// countedVote is a vote that counts.
type countedVote struct {
	*item
	digest []byte
}

// approve counts votes. A vote that does not count gets the reason as its
// result, and nothing is stored for it.
func (s *decisionTx) approve(ctx context.Context, note string, requested []requestedVote) ([]Result, error) {
	all := make([]Result, len(requested))
	if err := s.decideAll(ctx); err != nil {
		return nil, err
	}
	var counted, granted []countedVote
	for i, b := range requested {
		all[i].Action = b.action
		c, err := s.countVote(b)
		switch {
		case err == nil:
			counted = append(counted, c)
			all[i].Approval, all[i].Needed, all[i].Given = envelope.ApprovalRequired, c.needed, c.given
		case fault.KindOf(err) == "":
			return nil, err
		default:
			all[i].Err = err
			continue
		}
		if c.given >= c.needed {
			granted = append(granted, c)
			all[i].Approval = envelope.ApprovalGranted
			c.state = envelope.ApprovalGranted // so that the same id twice is one decision
		}
	}
	if len(counted) == 0 {
		return all, nil
	}
	if err := insertVotes(ctx, s.tx, s.by, envelope.DecisionGrant, note, counted); err != nil {
		return nil, err
	}
	if len(granted) > 0 {
		if err := s.grant(ctx, note, granted); err != nil {
			return nil, err
		}
	}
	return all, audit.Write(ctx, s.tx, s.events(note, counted)...)
}

// grant ends the wait of envelopes that have enough votes.
func (s *decisionTx) grant(ctx context.Context, note string, granted []countedVote) error {
	actions := make([]envelope.ActionID, len(granted))
	for i, c := range granted {
		actions[i] = c.action
	}
	if err := decide(ctx, s.tx, s.by, envelope.DecisionGrant, note, granted); err != nil {
		return err
	}
	return outbox.Enqueue(ctx, s.tx, s.by.Tenant, actions...)
}

// events returns the events of votes: voted while more people must agree, decided
// when enough do.
func (s *decisionTx) events(note string, counted []countedVote) []audit.Event {
	voted := audit.Event{Tenant: s.by.Tenant, Kind: audit.Voted, Actor: s.by.actor()}
	decided := audit.Event{Tenant: s.by.Tenant, Kind: audit.Decided, Actor: s.by.actor()}
	for _, c := range counted {
		it := audit.Item{
			Action: c.action, Status: envelope.StatusPending, Approval: c.state, Note: note,
			Detail: map[string]any{"given": c.given, "needed": c.needed, "approval_digest": fmt.Sprintf("%x", c.digest)},
		}
		if c.state == envelope.ApprovalGranted {
			decided.Items = append(decided.Items, it)
		} else {
			voted.Items = append(voted.Items, it)
		}
	}
	return []audit.Event{voted, decided}
}

// countVote counts one vote, in memory.
func (s *decisionTx) countVote(b requestedVote) (countedVote, error) {
	m, err := b.find(s, b.action, b.ifMatch)
	if err != nil {
		return countedVote{}, err
	}
	after, err := m.vote(s.by)
	if err != nil {
		return countedVote{}, err
	}
	m.round = after
	return countedVote{m, after.digest}, nil
}

// vote returns the round with the decider's vote added, or the reason why that
// vote does not count. It changes nothing. Approve counts votes with it, and the
// inbox uses it to show whose vote would count.
func (m *item) vote(by Decider) (round, error) {
	if err := CheckApprovable(m.Tool, m.tool, m.toolDigest, func() (policy.Decision, error) { return m.now, nil }); err != nil {
		return round{}, err
	}
	bound, _, err := ComputeDigest(&m.Action)
	if err != nil {
		return round{}, &fault.Error{Kind: fault.Conflict, Code: string(wire.CodeUnreadable), Cause: err, Text: fmt.Sprintf("the arguments of action %s cannot be read", m.action)}
	}
	if m.alone {
		bound.Needed, bound.Alone = 1, true
	}
	after := m.round
	after.digest, after.needed = bound.Bytes(), bound.Needed
	if m.digest != nil && !slices.Equal(m.digest, after.digest) || slices.Contains(m.void, by.person()) {
		// The earlier votes were under another policy decision, or the person votes
		// again, which begins a new round.
		after.number, after.given, after.voters, after.void = m.number+1, 0, nil, nil
	}
	if err := m.checkEditor(by.person()); err != nil {
		return round{}, err
	}
	if slices.Contains(after.voters, by.person()) {
		return round{}, fault.Coded(wire.CodeVoted, fault.Conflict, "you have agreed to action %s; it needs somebody else as well", m.action)
	}
	after.given, after.voters = after.given+1, append(slices.Clone(after.voters), by.person())
	return after, nil
}

// Left returns the number of other people who must still agree after an approval
// by the decider, or the total if the decider's vote would not count. It locks
// and changes nothing.
func (d *Service) Left(ctx context.Context, tx pgx.Tx, by Decider, action envelope.ActionID) (int, error) {
	items, err := readUnlocked(ctx, tx, by, []envelope.ActionID{action})
	m, ok := items[action]
	if err != nil || !ok {
		return 0, err
	}
	s := &decisionTx{tx: tx, by: by, items: items}
	if s.settings, err = d.catalog.Current(ctx, tx, by.Tenant); err != nil {
		return 0, err
	}
	s.resolveTools()
	if err := s.decideAll(ctx); err != nil {
		return 0, err
	}
	after := m.round
	if voted, err := m.vote(by); err == nil && m.checkDecider(by) == nil {
		after = voted
	}
	return max(0, after.needed-after.given), nil
}

// deny refuses envelopes.
func (s *decisionTx) deny(ctx context.Context, note string, requested []requestedVote) ([]Result, error) {
	all := make([]Result, len(requested))
	var denied []countedVote
	for i, b := range requested {
		all[i].Action = b.action
		m, err := b.find(s, b.action, b.ifMatch)
		if err != nil {
			all[i].Err = err
			continue
		}
		m.state = envelope.ApprovalDenied
		denied = append(denied, countedVote{m, nil})
		all[i].Approval, all[i].Needed, all[i].Given = m.state, m.needed, m.given
	}
	if len(denied) == 0 {
		return all, nil
	}
	if err := insertVotes(ctx, s.tx, s.by, envelope.DecisionDeny, note, denied); err != nil {
		return nil, err
	}
	if err := decide(ctx, s.tx, s.by, envelope.DecisionDeny, note, denied); err != nil {
		return nil, err
	}
	event := audit.Event{Tenant: s.by.Tenant, Kind: audit.Decided, Actor: s.by.actor()}
	for _, c := range denied {
		event.Items = append(event.Items, audit.Item{Action: c.action, Status: envelope.StatusSkipped, Approval: c.state, Note: note})
	}
	return all, audit.Write(ctx, s.tx, event)
}

// decideAll evaluates policy for the items whose tools still exist.
func (s *decisionTx) decideAll(ctx context.Context) error {
	var items []*item
	var actions []*decision.Action
	for _, m := range s.items {
		if m.Tool != nil {
			items, actions = append(items, m), append(actions, &m.Action)
		}
	}
	decisions, err := decision.Decide(ctx, s.tx, actions)
	for i, d := range decisions {
		items[i].now = d
	}
	return err
}
