// Package audit owns the record of what happened: the events of each tenant,
// written in the transaction of the change that they describe, and a chain of
// hashes over them, whose checkpoints make a later change of an event visible.
// It exports events, verifies the chain, and prunes what retention lets go.
//
// It does not decide what is kept of a value (package redact does), and it
// never changes an event.
package audit

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Kind is what an event tells of.
type Kind string

// The kinds of event.
const (
	// Proposed: envelopes were accepted, and policy said what it says.
	Proposed Kind = "proposed"
	// Decided: a person granted or denied, or nobody did in time.
	Decided Kind = "decided"
	// Voted: a person agreed, and more people must.
	Voted Kind = "voted"
	// Edited: a person changed what will be sent.
	Edited Kind = "edited"
	// Expiring: nobody has decided, and the time to do so is nearly over.
	Expiring Kind = "expiring"
	// Escalated: nobody has decided for so long that more people should know.
	Escalated Kind = "escalated"
	// Settled: attempts ended.
	Settled Kind = "settled"
	// Undone: envelopes were taken back before they were sent.
	Undone Kind = "undone"
	// Parked: envelopes that had been let through need a person after all.
	ReturnedToApproval Kind = "returned_to_approval"
	// Replayed: dead letters were put on the schedule again.
	Replayed Kind = "replayed"
	// Discarded: dead letters were given up.
	Discarded Kind = "discarded"
	// Resolved: somebody said what became of envelopes of unknown outcome.
	Resolved Kind = "resolved"
	// Killed: the kill switch ended envelopes.
	Killed Kind = "killed"
	// Configured: a source, a tool or a rule of policy was changed.
	Configured Kind = "configured"
	// Noticed: there is more of a kind than the tenant wants to keep.
	Noticed Kind = "notice"
	// Pruned: retention deleted events of checkpoints.
	Pruned Kind = "pruned"
	// Batched: a batch of steps has got somewhere. Subject names it, and Code
	// is where it stands.
	WorkflowChanged Kind = "workflow_changed"
)

// Event is something that happened to a batch of one tenant's envelopes.
type Event struct {
	Tenant envelope.TenantID
	Kind   Kind
	// Actor is who did it: a token's name, "policy", or "worker/…".
	Actor string
	Items []Item
}

// Item is one envelope's part in an event; or, for Configured, what was
// changed.
type Item struct {
	Action   envelope.ActionID `json:"action_id,omitzero"`
	Status   envelope.Status   `json:"status,omitzero"`
	Approval envelope.Approval `json:"approval,omitzero"`
	Attempt  int               `json:"attempt,omitzero"`
	Code     string            `json:"code,omitzero"`
	Subject  string            `json:"subject,omitzero"`
	// Note is what the actor gave as the reason.
	Note string `json:"note,omitzero"`
	// Detail is what was set to what, in the words of the API; never a secret.
	Detail map[string]any `json:"detail,omitempty"`
}

// Stored is an event as it reads back.
type Stored struct {
	Event
	Position Position
	At       time.Time
}

// Place is where an event stands in the order of commits. The zero Place is
// before every event.
type Position struct {
	Tx    uint64
	Event int64
}

// Compare orders places: it is negative when p is before other.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(p.Tx, other.Tx), cmp.Compare(p.Event, other.Event))
}

// String writes a place as clients carry it.
func (p Position) String() string { return fmt.Sprintf("%d-%d", p.Tx, p.Event) }

// ParsePlace reads what String wrote.
func ParsePosition(text string) (Position, error) {
	before, after, ok := strings.Cut(text, "-")
	if !ok {
		return Position{}, fmt.Errorf("an event's place is two numbers with a - between")
	}
	tx, err := strconv.ParseUint(before, 10, 64)
	if err != nil {
		return Position{}, fmt.Errorf("an event's place is two numbers with a - between")
	}
	event, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		return Position{}, fmt.Errorf("an event's place is two numbers with a - between")
	}
	return Position{tx, event}, nil
}
