// Package timeline owns the past and the future of one action. Its history
// contains the proposal, the decisions of people, every attempt and the end,
// oldest first. It is composed from the rows of the action, and from events for
// facts without a row. Its forecast is the time at which it would be sent if it
// were approved now, by the checks of approvals and workers. The package only
// reads, and decides nothing; its caller checks who may see the action.
package timeline

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// presentation is the form of a kind of event in histories.
type presentation struct {
	// kinds are the possible kinds of history item; none if an event of the kind
	// does not concern an existing action.
	kinds []wire.HistoryKind
	// indexed is set if events of the kind are read, because no row has their
	// contents. The index events_of_actions contains them.
	indexed bool
}

// presentations returns the presentation of every kind of event.
func presentations() map[audit.Kind]presentation {
	return map[audit.Kind]presentation{
		audit.Proposed:           {kinds: []wire.HistoryKind{wire.HistoryProposed, wire.HistoryAsked, wire.HistoryDenied}},
		audit.Decided:            {kinds: []wire.HistoryKind{wire.HistoryApproved, wire.HistoryDenied, wire.HistoryExpired}},
		audit.Voted:              {kinds: []wire.HistoryKind{wire.HistoryVoted}},
		audit.Edited:             {kinds: []wire.HistoryKind{wire.HistoryEdited}},
		audit.Settled:            {kinds: []wire.HistoryKind{wire.HistoryAttempt, wire.HistoryEnded, wire.HistoryKilled}},
		audit.Resolved:           {kinds: []wire.HistoryKind{wire.HistoryResolved}},
		audit.Expiring:           {kinds: []wire.HistoryKind{wire.HistoryExpiring}, indexed: true},
		audit.Escalated:          {kinds: []wire.HistoryKind{wire.HistoryEscalated}, indexed: true},
		audit.ReturnedToApproval: {kinds: []wire.HistoryKind{wire.HistoryReturned}, indexed: true},
		audit.Undone:             {kinds: []wire.HistoryKind{wire.HistoryUndone}, indexed: true},
		audit.Killed:             {kinds: []wire.HistoryKind{wire.HistoryKilled}, indexed: true},
		audit.Replayed:           {kinds: []wire.HistoryKind{wire.HistoryReplayed}, indexed: true},
		audit.Discarded:          {kinds: []wire.HistoryKind{wire.HistoryDiscarded}, indexed: true},
		// These do not concern an existing action.
		audit.ProposalRefused:   {},
		audit.Configured:        {},
		audit.RetentionReported: {},
		audit.Pruned:            {},
		audit.WorkflowChanged:   {},
		audit.SessionStarted:    {},
		audit.SessionEnded:      {},
		audit.LoginRefused:      {},
	}
}

// record holds the stored data of an action.
type record struct {
	view     outbox.View
	proposer envelope.Actor
	origin   *wire.Origin
	workflow uuid.UUID
	// votes, attempts, events and reversals are oldest first.
	votes     []wire.Vote
	attempts  []wire.Attempt
	events    []event
	reversals []reversal
}

// event is the part of an event about the action.
type event struct {
	at    time.Time
	kind  audit.Kind
	actor envelope.Actor
	note  string
}

// reversal is an action that reverts the action.
type reversal struct {
	at       time.Time
	proposer envelope.Actor
	wire.Reverted
}

// items returns the history, oldest first. Items of the same time stay in the
// order in which they are added here.
func (r *record) items() []wire.HistoryItem {
	all := r.proposal()
	all = append(all, r.decisions()...)
	all = append(all, r.fromEvents()...)
	all = append(all, r.fromAttempts()...)
	for _, n := range r.reversals {
		all = append(all, wire.HistoryItem{At: n.at, Kind: wire.HistoryReverted, Actor: n.proposer, Detail: &wire.HistoryDetail{Reversal: &n.Reverted}})
	}
	slices.SortStableFunc(all, func(a, b wire.HistoryItem) int { return a.At.Compare(b.At) })
	if w := r.view.Waiting(); w != nil {
		all = append(all, wire.HistoryItem{At: all[len(all)-1].At, Kind: wire.HistoryWaits, Detail: &wire.HistoryDetail{Waiting: w}})
	}
	for i := range all {
		all[i].At, all[i].Actor = all[i].At.UTC(), person(all[i].Actor)
	}
	return all
}

// person returns the actor if it has a token or an operator; "" for Countersign
// itself, whose names have no ids.
func person(a envelope.Actor) envelope.Actor {
	if _, token, operator := a.Parts(); token == uuid.Nil && operator == uuid.Nil {
		return ""
	}
	return a
}

// proposal returns the proposal and its immediate consequence.
func (r *record) proposal() []wire.HistoryItem {
	v, at := &r.view, r.view.Envelope.Timestamps.CreatedAt
	all := []wire.HistoryItem{{At: at, Kind: wire.HistoryProposed, Actor: r.proposer, Detail: &wire.HistoryDetail{
		Origin: r.origin, Mode: v.Mode, Source: v.ModeSource, WorkflowID: r.workflow,
	}}}
	switch {
	case v.Envelope.Approval == envelope.ApprovalAuto:
	case v.Envelope.Approval == envelope.ApprovalDenied && v.DecidedAt == nil:
		all = append(all, wire.HistoryItem{At: at, Kind: wire.HistoryDenied, Detail: &wire.HistoryDetail{Mode: v.Mode, Source: v.ModeSource}})
	case r.requestedAtFirst():
		all = append(all, wire.HistoryItem{At: at, Kind: wire.HistoryAsked, Detail: r.requestDetail(len(r.returns()) == 0)})
	}
	return all
}

// requestDetail returns the detail of a request for approval. Only for the last
// request is it known how many must agree, and until when.
func (r *record) requestDetail(last bool) *wire.HistoryDetail {
	if !last {
		return nil
	}
	return &wire.HistoryDetail{Needed: max(r.view.Review.Needed, 1), ExpiresAt: postgres.UTC(r.view.ApprovalExpiresAt)}
}

// returns returns the times at which the action returned to approval.
func (r *record) returns() []time.Time {
	var at []time.Time
	for _, e := range r.events {
		if e.kind == audit.ReturnedToApproval {
			at = append(at, e.at)
		}
	}
	return at
}

// requestedAtFirst reports whether the proposal itself needed approval. For an
// action that returned to approval, this is derived from earlier decisions.
func (r *record) requestedAtFirst() bool {
	returns := r.returns()
	if len(returns) == 0 {
		return true
	}
	return len(r.votes) > 0 && r.votes[0].At.Before(returns[0])
}

// decisions returns people's decisions, or the expiry.
func (r *record) decisions() []wire.HistoryItem {
	var all []wire.HistoryItem
	for i, v := range r.votes {
		it := wire.HistoryItem{At: v.At, Kind: wire.HistoryVoted, Actor: v.By, Note: v.Note, Detail: &wire.HistoryDetail{Round: v.Round}}
		switch {
		case v.Decision == envelope.DecisionDeny:
			it.Kind = wire.HistoryDenied
		case r.decides(i):
			it.Kind = wire.HistoryApproved
		}
		all = append(all, it)
	}
	for _, e := range approval.Edits(r.view) {
		all = append(all, wire.HistoryItem{At: e.At, Kind: wire.HistoryEdited, Actor: e.By, Note: e.Note, Detail: &wire.HistoryDetail{Pointers: e.Pointers}})
	}
	if r.view.Envelope.Approval == envelope.ApprovalExpired && r.view.DecidedAt != nil {
		all = append(all, wire.HistoryItem{At: *r.view.DecidedAt, Kind: wire.HistoryExpired})
	}
	return all
}

// decides reports whether a vote to approve completed an approval: the last of
// all votes if the action is approved, and the last before each return to
// approval.
func (r *record) decides(i int) bool {
	last := i == len(r.votes)-1
	for _, at := range r.returns() {
		if r.votes[i].At.Before(at) && (last || !r.votes[i+1].At.Before(at)) {
			return true
		}
	}
	return last && r.view.Envelope.Approval == envelope.ApprovalGranted
}

// fromEvents returns the items for events without a row.
func (r *record) fromEvents() []wire.HistoryItem {
	var all []wire.HistoryItem
	known, returns := presentations(), len(r.returns())
	for _, e := range r.events {
		if e.kind == audit.Undone || e.kind == audit.Killed {
			continue // the row of the end has more: fromAttempts
		}
		it := wire.HistoryItem{At: e.at, Kind: known[e.kind].kinds[0], Actor: e.actor, Note: e.note}
		if e.kind == audit.ReturnedToApproval {
			returns--
			it.Detail = r.requestDetail(returns == 0)
			if returns == 0 && r.view.Envelope.Approval == envelope.ApprovalRequired {
				it.Note = r.view.DecisionNote
			}
		}
		all = append(all, it)
	}
	return all
}

// fromAttempts returns the attempts, and the ends without one.
func (r *record) fromAttempts() []wire.HistoryItem {
	var all []wire.HistoryItem
	for i := range r.attempts {
		a := &r.attempts[i]
		it := wire.HistoryItem{At: a.FinishedAt, Kind: wire.HistoryEnded, Attempt: a}
		skipped := a.Status == envelope.StatusSkipped
		switch {
		case a.StartedAt == nil && a.Code == deadletter.CodeResolved:
			// The row has the recorded outcome and its author.
			it.Kind, it.Actor, it.Note = wire.HistoryResolved, envelope.Actor(a.Worker), a.Message
		case skipped && a.Code == preflight.CodeKilled:
			it.Kind, it.Actor = wire.HistoryKilled, r.actorOf(audit.Killed)
		case skipped && a.Code == outbox.CodeUndone:
			it.Kind, it.Actor = wire.HistoryUndone, r.actorOf(audit.Undone)
		case !skipped && called(a):
			it.Kind = wire.HistoryAttempt
		}
		all = append(all, it)
	}
	return all
}

// called reports whether a call was made and its end is known. If a worker ends
// an action without a call, or on behalf of another worker, no time passes.
func called(a *wire.Attempt) bool {
	return a.Status == envelope.StatusSent || a.Status == envelope.StatusConflict || a.StartedAt != nil && a.StartedAt.Before(a.FinishedAt)
}

// actorOf returns the actor of the last event of a kind, or "".
func (r *record) actorOf(kind audit.Kind) envelope.Actor {
	for _, e := range slices.Backward(r.events) {
		if e.kind == kind {
			return e.actor
		}
	}
	return ""
}
