package wire

import (
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// Recovery is the state of the database, and the effects of its recovery while it is
// held. Counts are 0 unless it is.
type Recovery struct {
	Database uuid.UUID `json:"database_id"`
	// State is new, open, checking or held.
	State string `json:"state"`
	// Reason is why the database is held: copy, lost, set_back, timeline or moved.
	Reason string    `json:"reason,omitzero"`
	Detail string    `json:"detail,omitzero"`
	Since  time.Time `json:"since"`
	// Newest is the time of the newest event before: what came later is not here.
	Newest *time.Time `json:"newest_event_at"`
	// AuditHead is the last checkpoint before. A head that was noted elsewhere later has
	// a higher number.
	AuditHead *AuditHead `json:"audit_head"`
	// NotedHead compares the audit log with a head that was noted elsewhere; nil if the
	// request names none.
	NotedHead *RecoveryHead `json:"noted_head"`
	// Classes are the actions and calls by their class, once first.
	Classes []RecoveryClass `json:"classes"`
	// Unknown counts the actions of class once that become unknown; Sendable those that
	// go on, because no worker has sent them; Later those that go on, because they are
	// for later or were proposed since.
	Unknown  int64 `json:"unknown"`
	Sendable int64 `json:"sendable"`
	Later    int64 `json:"later"`
	// Repeatable counts the actions of other classes, which go on.
	Repeatable int64 `json:"repeatable"`
	// Approvals counts the actions of class once that wait for people, whose votes are
	// void.
	Approvals int64 `json:"approvals"`
	// Recorded counts the calls that workers reported and whose actions are here, Lost
	// those whose actions are not.
	Recorded int64 `json:"recorded"`
	Lost     int64 `json:"lost"`
	// Workers counts the processes that have not ended, Silent those that have not
	// reported.
	Workers int64 `json:"workers"`
	Silent  int64 `json:"silent_workers"`
	// People is how many people have to apply the recovery. AskedBy is the first of them.
	People  int64          `json:"people"`
	AskedBy envelope.Actor `json:"asked_by,omitzero"`
	// ETag is sent back with the recovery.
	ETag string `json:"etag"`
}

// RecoveryClass is the finding of a recovery about a class of actions.
type RecoveryClass struct {
	Effect envelope.Effect `json:"effect"`
	// Unknown counts the actions that become unknown, and Reconcilable those of them whose
	// tool has a reconcile rule, which finds the outcome. Continue counts the others.
	Unknown      int64 `json:"unknown"`
	Reconcilable int64 `json:"reconcilable"`
	Continue     int64 `json:"continue"`
	// Recorded and Lost count the calls that workers reported, as those of Recovery.
	Recorded int64 `json:"recorded"`
	Lost     int64 `json:"lost"`
	// OpenAtHead counts the open actions that were proposed before a noted head which is
	// here: none of them had ended by then.
	OpenAtHead int64 `json:"open_at_head"`
}

// RecoveryHead is a noted head of the audit log, compared with the log.
type RecoveryHead struct {
	AuditHead
	// Result is present, missing or different.
	Result string `json:"result"`
	// Missing counts the checkpoints up to the head that are not here.
	Missing int64 `json:"missing_checkpoints"`
	// Until is the time of the newest event up to a head that is present: nothing until
	// then was lost.
	Until *time.Time `json:"complete_until"`
}

// RecoveryInput is the request for a recovery.
type RecoveryInput struct {
	// AskFor is for how long new proposals of classes once and keyed need a person, because they may
	// repeat one that was lost; by default a day.
	AskFor *envelope.Duration `json:"ask_for,omitzero"`
}
