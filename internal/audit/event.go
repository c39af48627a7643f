// Package audit owns the audit log: the events of each tenant, written in the
// transaction of the change that they describe, and a hash chain over them,
// whose checkpoints make later changes of an event detectable. It exports
// events, verifies the chain, and prunes events past their retention.
//
// It does not redact values (package redact does), and it never changes an
// event.
package audit

import (
	"cmp"
	"encoding/hex"
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
	// Proposed means that actions were accepted and policy decided.
	Proposed Kind = "proposed"
	// ProposalRefused means that proposals in SQL were refused. Subject is the
	// id of the proposal, Code the rule that it broke.
	ProposalRefused Kind = "proposal_refused"
	// Decided means that a person approved or denied, or that the time to do so
	// expired.
	Decided Kind = "decided"
	// Voted means that a person approved, and more approvals are needed.
	Voted Kind = "voted"
	// Edited means that a person changed the arguments.
	Edited Kind = "edited"
	// Expiring means that an action still waits for a decision and the time for
	// it is nearly over.
	Expiring Kind = "expiring"
	// Escalated means that an action has waited so long that more people are
	// notified.
	Escalated Kind = "escalated"
	// Settled means that attempts ended.
	Settled Kind = "settled"
	// Undone means that actions were withdrawn before they were sent.
	Undone Kind = "undone"
	// ReturnedToApproval means that approved or allowed actions need approval
	// again.
	ReturnedToApproval Kind = "returned_to_approval"
	// Replayed means that dead letters were scheduled again, or that the message of
	// a delivery is sent again: by the action "resend" of the detail.
	Replayed Kind = "replayed"
	// Discarded means that dead letters were given up.
	Discarded Kind = "discarded"
	// Resolved means that a person recorded the outcome of actions of unknown
	// outcome.
	Resolved Kind = "resolved"
	// Killed means that the kill switch ended actions.
	Killed Kind = "killed"
	// Configured means that a source, a tool or a policy rule was changed.
	Configured Kind = "configured"
	// RetentionReported means that rows past their retention were kept.
	RetentionReported Kind = "retention_reported"
	// Pruned means that retention deleted the events of checkpoints.
	Pruned Kind = "pruned"
	// WorkflowChanged means that a workflow changed its state. Subject is the id
	// of the workflow, Code the new state.
	WorkflowChanged Kind = "workflow_changed"
	// SessionStarted means that a person logged in in a browser. Subject is the
	// id of the browser session, Code the way in which it was opened.
	SessionStarted Kind = "session_started"
	// SessionEnded means that browser sessions ended before they expired.
	// Subject is the id of the session, Code the reason.
	SessionEnded Kind = "session_ended"
	// LoginRefused means that a login in a browser was refused. Subject is the
	// account or address for which it is counted, Code the reason.
	LoginRefused Kind = "login_refused"
)

// Event describes a change to a batch of one tenant's actions.
type Event struct {
	Tenant envelope.TenantID
	Kind   Kind
	// Actor is the holder of a token, "policy", or "worker/…".
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

// Item is the part of an event about one action; or, for Configured, about a
// change.
type Item struct {
	Action   envelope.ActionID `json:"action_id,omitzero"`
	Status   envelope.Status   `json:"status,omitzero"`
	Approval envelope.Approval `json:"approval,omitzero"`
	Attempt  int               `json:"attempt,omitzero"`
	Code     string            `json:"code,omitzero"`
	Subject  string            `json:"subject,omitzero"`
	// Note is the actor's reason.
	Note string `json:"note,omitzero"`
	// Detail holds the new values by the names of the API, without secrets.
	Detail map[string]any `json:"detail,omitempty"`
	// Digests are those of the rows of the item. Write sets missing ones.
	Digests Digests `json:"-"`
}

// encodeItems returns the JSON of the items of an event.
func encodeItems(items []Item) ([]byte, error) {
	const usual = 100 // bytes
	b := append(make([]byte, 0, 2+len(items)*usual), '[')
	for i := range items {
		if i > 0 {
			b = append(b, ',')
		}
		it := &items[i]
		if it.usual() {
			b = it.appendUsual(b)
			continue
		}
		text, err := json.Marshal(it)
		if err != nil {
			return nil, err
		}
		b = append(b, text...)
	}
	return append(b, ']'), nil
}

// usual reports whether an item has only an action, its state and an attempt, as nearly
// all have.
func (it *Item) usual() bool {
	return it.Action != (envelope.ActionID{}) && it.Code == "" && it.Subject == "" && it.Note == "" && it.Detail == nil &&
		(it.Status == "" || it.Status.Valid()) && (it.Approval == "" || it.Approval.Valid())
}

// appendUsual appends the JSON of a usual item, in a fifth of the time that
// json.Marshal takes.
func (it *Item) appendUsual(b []byte) []byte {
	id := it.Action
	b = hex.AppendEncode(append(b, `{"action_id":"`...), id[:4])
	for _, part := range [...][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		b = hex.AppendEncode(append(b, '-'), part)
	}
	b = append(b, '"')
	if it.Status != "" {
		b = append(append(append(b, `,"status":"`...), it.Status...), '"')
	}
	if it.Approval != "" {
		b = append(append(append(b, `,"approval":"`...), it.Approval...), '"')
	}
	if it.Attempt != 0 {
		b = strconv.AppendInt(append(b, `,"attempt":`...), int64(it.Attempt), 10)
	}
	return append(b, '}')
}

// Stored is an event with its position and time.
type Stored struct {
	Event
	Position Position
	At       time.Time
}

// Position is the position of an event in commit order. The zero Position is
// before every event.
type Position struct {
	Tx    uint64
	Event int64
}

// Compare orders positions: it is negative if p is before other.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(p.Tx, other.Tx), cmp.Compare(p.Event, other.Event))
}

// String returns the position as clients store it.
func (p Position) String() string { return fmt.Sprintf("%d-%d", p.Tx, p.Event) }

// ParsePosition parses the output of String.
func ParsePosition(text string) (Position, error) {
	before, after, _ := strings.Cut(text, "-")
	tx, errTx := strconv.ParseUint(before, 10, 64)
	event, errEvent := strconv.ParseInt(after, 10, 64)
	if errTx != nil || errEvent != nil {
		return Position{}, errors.New("an event's position must be two numbers with a - between")
	}
	return Position{tx, event}, nil
}

// Span is a range of time: from From until before Until. A zero bound is open.
type Span struct{ From, Until time.Time }

// Filter selects events; its zero fields select all.
type Filter struct {
	Span
	Kind Kind
	// Actor and Subject match a part of the text, in any case.
	Actor, Subject string
	Action         envelope.ActionID
	// Before is the position from which to go back; the zero Position is the end.
	Before Position
	Most   int
}

// Entry is an exported event.
type Entry struct {
	Position Position
	// Checkpoint is the number of the checkpoint that covers it; zero if none
	// does.
	Checkpoint int64
	// Leaf is the hash for a checkpoint, computed from the current row.
	Leaf  Hash
	At    time.Time
	Kind  Kind
	Actor envelope.Actor
	// Items is the text of the items as PostgreSQL prints it, and Digests are
	// the digests of their rows. Leaf covers both.
	Items   string
	Digests []byte
}

// Line returns an entry as one line of JSON. Its items are copied byte for byte,
// including white space, so that the hash can be computed from the line.
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
	// End is true, to distinguish this line from those of events.
	End    bool              `json:"end"`
	Tenant envelope.TenantID `json:"tenant_id"`
	// Events is the number of lines before this one.
	Events int64 `json:"events"`
	// Next is the position to continue after; empty at the end.
	Next string `json:"next_cursor,omitzero"`
	// Head is the current head of the chain, or nil.
	Head *Head `json:"head"`
}
