// Package audit owns the record of what happened: the events of each tenant,
// written in the transaction of the change that they describe, and a chain of
// hashes over them, whose checkpoints make a later change of an event visible.
// It exports events, verifies the chain, and prunes events past their retention.
//
// It does not redact values (package redact does), and it never changes an
// event.
package audit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// Kind is the kind of an event.
type Kind string

// The kinds of event.
const (
	// Proposed: actions were accepted, and policy decided.
	Proposed Kind = "proposed"
	// ProposalRefused: proposals made in SQL became no actions. Subject is the
	// proposal's id, Code the rule that it broke.
	ProposalRefused Kind = "proposal_refused"
	// Decided: a person approved or denied, or nobody did in time.
	Decided Kind = "decided"
	// Voted: a person approved, and more people must.
	Voted Kind = "voted"
	// Edited: a person changed what will be sent.
	Edited Kind = "edited"
	// Expiring: nobody has decided, and the time to do so is nearly over.
	Expiring Kind = "expiring"
	// Escalated: nobody has decided for so long that more people are told.
	Escalated Kind = "escalated"
	// Settled: attempts ended.
	Settled Kind = "settled"
	// Undone: actions were withdrawn before they were sent.
	Undone Kind = "undone"
	// ReturnedToApproval: actions that were approved or allowed need a person
	// after all.
	ReturnedToApproval Kind = "returned_to_approval"
	// Replayed: dead letters were scheduled again.
	Replayed Kind = "replayed"
	// Discarded: dead letters were given up.
	Discarded Kind = "discarded"
	// Resolved: somebody recorded the outcome of actions of unknown outcome.
	Resolved Kind = "resolved"
	// Killed: the kill switch ended actions.
	Killed Kind = "killed"
	// Configured: a source, a tool or a rule of policy was changed.
	Configured Kind = "configured"
	// RetentionReported: rows are past their retention, and are kept.
	RetentionReported Kind = "retention_reported"
	// Pruned: retention deleted events of checkpoints.
	Pruned Kind = "pruned"
	// WorkflowChanged: a workflow changed its state. Subject is its id, Code the
	// new state.
	WorkflowChanged Kind = "workflow_changed"
	// SessionStarted: a person logged in in a browser. Subject is the id of the
	// browser session, Code how it was opened.
	SessionStarted Kind = "session_started"
	// SessionEnded: browser sessions ended before their time was over. Subject is
	// the id of the session, Code what ended it.
	SessionEnded Kind = "session_ended"
	// LoginRefused: a login in a browser was refused. Subject is whom it is counted
	// for, Code the reason.
	LoginRefused Kind = "login_refused"
)

// Event is something that happened to a batch of one tenant's actions.
type Event struct {
	Tenant envelope.TenantID
	Kind   Kind
	// Actor is who did it: the holder of a token, "policy", or "worker/…".
	Actor envelope.Actor
	Items []Item
}

// EventsOf returns an event for each tenant that has items.
func EventsOf(kind Kind, actor envelope.Actor, items map[envelope.TenantID][]Item) []Event {
	events := make([]Event, 0, len(items))
	for tenant, of := range items {
		events = append(events, Event{Tenant: tenant, Kind: kind, Actor: actor, Items: of})
	}
	return events
}

// Item is one action's part of an event; or, for Configured, a change.
type Item struct {
	Action   envelope.ActionID `json:"action_id,omitzero"`
	Status   envelope.Status   `json:"status,omitzero"`
	Approval envelope.Approval `json:"approval,omitzero"`
	Attempt  int               `json:"attempt,omitzero"`
	Code     string            `json:"code,omitzero"`
	Subject  string            `json:"subject,omitzero"`
	// Note is the actor's reason.
	Note string `json:"note,omitzero"`
	// Detail has the new values by the API's names; never a secret.
	Detail map[string]any `json:"detail,omitempty"`
	// Digests are of the rows of the item. Write sets those that are
	// not set.
	Digests Digests `json:"-"`
}

// Stored is an event with its position and time.
type Stored struct {
	Event
	Position Position
	At       time.Time
}

// Position is the position of an event in the order of commits. The zero Position
// is before every event.
type Position struct {
	Tx    uint64
	Event int64
}

// Compare orders positions: it is negative if p is before other.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(p.Tx, other.Tx), cmp.Compare(p.Event, other.Event))
}

// String returns a position as clients store it.
func (p Position) String() string { return fmt.Sprintf("%d-%d", p.Tx, p.Event) }

// ParsePosition parses the output of String.
func ParsePosition(text string) (Position, error) {
	before, after, _ := strings.Cut(text, "-")
	tx, errTx := strconv.ParseUint(before, 10, 64)
	event, errEvent := strconv.ParseInt(after, 10, 64)
	if errTx != nil || errEvent != nil {
		return Position{}, errors.New("an event's position is two numbers with a - between")
	}
	return Position{tx, event}, nil
}

// Span is a range of time: from From until before Until. A zero bound is open.
type Span struct{ From, Until time.Time }

// Entry is an event as it is exported.
type Entry struct {
	Position Position
	// Checkpoint is the number of the checkpoint that covers it; zero for none yet.
	Checkpoint int64
	// Leaf is the hash that a checkpoint stores of it, of the row as it is now.
	Leaf  Hash
	At    time.Time
	Kind  Kind
	Actor envelope.Actor
	// Items is their text as PostgreSQL prints it, which Leaf covers, and Digests
	// are the digests of the rows that they tell of, which it covers too.
	Items   string
	Digests []byte
}

// Line returns an entry as one line of JSON. Its items are copied byte for byte,
// white space included, so that a reader of the line can compute the hash.
func (e Entry) Line() ([]byte, error) {
	head, err := json.Marshal(struct {
		Position   string         `json:"position"`
		Checkpoint *int64         `json:"checkpoint_no"`
		Leaf       Hash           `json:"leaf"`
		At         time.Time      `json:"at"`
		Kind       Kind           `json:"kind"`
		Actor      envelope.Actor `json:"actor"`
		Digests    []byte         `json:"digests"`
	}{e.Position.String(), postgres.OrNull(e.Checkpoint), e.Leaf, e.At.UTC(), e.Kind, e.Actor, e.Digests})
	if err != nil {
		return nil, fmt.Errorf("write event %s: %w", e.Position, err)
	}
	return fmt.Appendf(head[:len(head)-1], `,"items":%s}`+"\n", e.Items), nil
}

// Closing is the last line of an export.
type Closing struct {
	// End is true, which distinguishes this line from those of events.
	End    bool              `json:"end"`
	Tenant envelope.TenantID `json:"tenant_id"`
	// Events is the number of lines before this one.
	Events int64 `json:"events"`
	// Next is the position to continue after; empty at the end.
	Next string `json:"next_cursor,omitzero"`
	// Head is the head of the chain at this moment; nil for none.
	Head *Head `json:"head"`
}
