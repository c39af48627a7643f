package wire

import (
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// HistoryKind is the kind of an entry in an action's history.
type HistoryKind string

// The kinds of things that happen to an action.
const (
	// HistoryProposed: it was accepted, and policy decided.
	HistoryProposed HistoryKind = "proposed"
	// HistoryAsked: approval is required.
	HistoryAsked HistoryKind = "asked"
	// HistoryVoted: a person agreed, and more must.
	HistoryVoted HistoryKind = "voted"
	// HistoryEdited: a person changed the arguments.
	HistoryEdited HistoryKind = "edited"
	// HistoryApproved: a person agreed, and enough did.
	HistoryApproved HistoryKind = "approved"
	// HistoryDenied: a person, or policy, denied it.
	HistoryDenied HistoryKind = "denied"
	// HistoryExpiring: it was undecided shortly before the end of the wait.
	HistoryExpiring HistoryKind = "expiring"
	// HistoryEscalated: it was undecided for long enough to be escalated.
	HistoryEscalated HistoryKind = "escalated"
	// HistoryExpired: it was not decided in time.
	HistoryExpired HistoryKind = "expired"
	// HistoryReturned: it was approved or allowed, and needs a person after all.
	HistoryReturned HistoryKind = "returned_to_approval"
	// HistoryWaits: it waits now, since the thing before.
	HistoryWaits HistoryKind = "waits"
	// HistoryAttempt: a call was made.
	HistoryAttempt HistoryKind = "attempt"
	// HistoryEnded: it ended without a call, or without the end of one.
	HistoryEnded HistoryKind = "ended"
	// HistoryUndone: it was withdrawn before it was sent.
	HistoryUndone HistoryKind = "undone"
	// HistoryKilled: the kill switch ended it.
	HistoryKilled HistoryKind = "killed"
	// HistoryReplayed: it was a dead letter, and was scheduled again, or its message is sent
	// again by another action.
	HistoryReplayed HistoryKind = "replayed"
	// HistoryDiscarded: it was a dead letter, and was given up.
	HistoryDiscarded HistoryKind = "discarded"
	// HistoryResolved: its unknown outcome was resolved.
	HistoryResolved HistoryKind = "resolved"
	// HistoryReverted: its reversal was proposed.
	HistoryReverted HistoryKind = "reverted"
)

// HistoryItem is something that happened to an action.
type HistoryItem struct {
	At   time.Time   `json:"at"`
	Kind HistoryKind `json:"kind"`
	// Actor is the actor; empty for Countersign itself.
	Actor envelope.Actor `json:"actor,omitzero"`
	// Note is the reason that the actor gave.
	Note   string         `json:"note,omitzero"`
	Detail *HistoryDetail `json:"detail,omitempty"`
	// Attempt is its entry in the log of executions; nil for none.
	Attempt *Attempt `json:"attempt,omitempty"`
}

// HistoryDetail is more about a HistoryItem; which fields are set depends on its
// kind.
type HistoryDetail struct {
	// Origin is the origin of a proposal, Mode and Source the decision of policy
	// about it, and WorkflowID the workflow of which it is a step.
	Origin     *Origin       `json:"origin,omitempty"`
	Mode       envelope.Mode `json:"mode,omitzero"`
	Source     string        `json:"source,omitzero"`
	WorkflowID uuid.UUID     `json:"workflow_id,omitzero"`
	// Needed is the number of required approvals, and ExpiresAt the end of the
	// wait.
	Needed    int        `json:"approvals_needed,omitzero"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// Round goes up when the subject of the vote changes; votes of earlier ones do not
	// count.
	Round int `json:"round,omitzero"`
	// Pointers are JSON Pointers to the arguments that an edit changed.
	Pointers []string `json:"pointers,omitempty"`
	// Waiting is the reason for which the action waits.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Reversal is the action that reverts this one, and its phase.
	Reversal *Reverted `json:"reversal,omitempty"`
}
