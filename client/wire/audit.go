package wire

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// AuditReport is the result of a verification of the log of events.
type AuditReport struct {
	// Findings are in the order of the chain, at most 1000; Omitted counts the
	// others.
	Findings []AuditFinding `json:"findings"`
	Omitted  int64          `json:"findings_omitted"`
	// Seals counts the verified seals; Sealed and Pruned the events that they
	// cover that should exist, and that retention deleted.
	Seals  int64 `json:"seals"`
	Sealed int64 `json:"sealed"`
	Pruned int64 `json:"pruned"`
	// Unsealed counts the events that no seal covers yet, up to 100,000, and
	// UnsealedSince is the time of the oldest.
	Unsealed      int64     `json:"unsealed"`
	UnsealedSince time.Time `json:"unsealed_since,omitzero"`
	// Head is the last verified seal; nil for none.
	Head *AuditHead `json:"head"`
	// Next is the seal to continue after; zero at the end of the chain.
	Next int64 `json:"next_after,omitzero"`
}

// AuditFinding is one thing that is wrong in the log, and where.
type AuditFinding struct {
	Kind string `json:"kind"`
	// Seal is the seal that is wrong, or covers the place; zero for none.
	Seal  int64  `json:"seal_no,omitzero"`
	Place string `json:"place,omitzero"`
	Event int64  `json:"event_id,omitzero"`
	// At is the time of the event, if it exists.
	At   time.Time `json:"at,omitzero"`
	What string    `json:"what"`
}

// AuditHead is the last seal of the chain, with its hash in hexadecimal.
type AuditHead struct {
	Seal int64  `json:"seal_no"`
	Hash string `json:"hash"`
}

// AuditClosing is the last line of an export of events.
type AuditClosing struct {
	// End is true, and tells this line from those of events.
	End    bool              `json:"end"`
	Tenant envelope.TenantID `json:"tenant_id"`
	// Events counts the lines before.
	Events int64 `json:"events"`
	// Next is the place to continue after; empty at the end.
	Next string `json:"next_cursor,omitzero"`
	// Head is the current head of the chain; nil for none.
	Head *AuditHead `json:"head"`
}
