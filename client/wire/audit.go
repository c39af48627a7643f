package wire

import (
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// AuditEvent is an event of the log, with some of its items as the export writes
// them.
type AuditEvent struct {
	Position   string          `json:"position"`
	At         time.Time       `json:"at"`
	Kind       string          `json:"kind"`
	Actor      envelope.Actor  `json:"actor"`
	Items      json.RawMessage `json:"items"`
	ItemsTotal int64           `json:"items_total"`
}

// AuditReport is the result of a verification of the log of events.
type AuditReport struct {
	// Findings are in the order of the chain, at most 1000; Omitted counts the
	// others.
	Findings []AuditFinding `json:"findings"`
	Omitted  int64          `json:"findings_omitted"`
	// Checkpoints counts the verified checkpoints; Covered and Pruned the events that they
	// cover that should exist, and that retention deleted.
	Checkpoints int64 `json:"checkpoints"`
	Covered     int64 `json:"covered"`
	Pruned      int64 `json:"pruned"`
	// Uncovered counts the events that no checkpoint covers yet, up to 100,000, and
	// UncoveredSince is the time of the oldest.
	Uncovered      int64     `json:"uncovered"`
	UncoveredSince time.Time `json:"uncovered_since,omitzero"`
	// Head is the last verified checkpoint; nil for none.
	Head *AuditHead `json:"head"`
	// KnownHead is the checkpoint that has the known head; nil if none has, or if
	// this is not the end of the chain.
	KnownHead *AuditHead `json:"known_head,omitzero"`
	// Next is the checkpoint to continue after; zero at the end of the chain.
	Next int64 `json:"next_after,omitzero"`
}

// AuditFinding is one thing that is wrong in the log, and where.
type AuditFinding struct {
	Kind string `json:"kind"`
	// Checkpoint is the checkpoint that is wrong, or covers the position; zero for none.
	Checkpoint int64  `json:"checkpoint_no,omitzero"`
	Position   string `json:"position,omitzero"`
	Event      int64  `json:"event_id,omitzero"`
	// At is the time of the event, if it exists.
	At      time.Time `json:"at,omitzero"`
	Message string    `json:"message"`
}

// AuditHead is the last checkpoint of the chain, with its hash in hexadecimal.
type AuditHead struct {
	Checkpoint int64  `json:"checkpoint_no"`
	Hash       string `json:"hash"`
}

// AuditNotedHead is a head of the chain, and when it was first noted to be kept
// elsewhere.
type AuditNotedHead struct {
	AuditHead
	NotedAt time.Time `json:"noted_at"`
}

// AuditClosing is the last line of an export of events.
type AuditClosing struct {
	// End is true, which distinguishes this line from those of events.
	End    bool              `json:"end"`
	Tenant envelope.TenantID `json:"tenant_id"`
	// Events counts the lines before.
	Events int64 `json:"events"`
	// Next is the place to continue after; empty at the end.
	Next string `json:"next_cursor,omitzero"`
	// Head is the current head of the chain; nil for none.
	Head *AuditHead `json:"head"`
}
