package envelope

import "slices"

// Phase is the state of an action in one word, for agents and people. PhaseOf
// computes it from the approval, the status and the code; the SQL function
// action_phase computes the same.
type Phase string

// The phases.
const (
	// PhasePending is an action that waits for a person's decision.
	PhasePending Phase = "pending"
	// PhaseApproved is an action that is scheduled, for now or later.
	PhaseApproved Phase = "approved"
	// PhaseExecuting is an action whose tool call is in progress.
	PhaseExecuting Phase = "executing"
	// PhaseCompleted is an action that was done.
	PhaseCompleted Phase = "completed"
	// PhaseDenied is an action that policy or a person refused.
	PhaseDenied Phase = "denied"
	// PhaseFailed is an action whose tool call failed permanently. It is a dead
	// letter until it is replayed or discarded.
	PhaseFailed Phase = "failed"
	// PhaseExpired is an action that was not decided in time.
	PhaseExpired Phase = "expired"
	// PhaseSkipped is an action that was approved and then not sent, because
	// its deadline passed or something changed before the call.
	PhaseSkipped Phase = "skipped"
	// PhaseUndone is an action that was withdrawn before it was sent.
	PhaseUndone Phase = "undone"
	// PhaseUnknown is an action whose tool call may or may not have had its
	// effect. It must be resolved; proposing it again could repeat the effect.
	PhaseUnknown Phase = "unknown"
)

const (
	// CodeUndone is the code of an action that was withdrawn before it was sent.
	CodeUndone = "undone"
	// CodeKilled is the code of an action that the kill switch ended.
	CodeKilled = "killed"
)

// Phases returns all phases.
func Phases() []Phase {
	return []Phase{
		PhasePending, PhaseApproved, PhaseExecuting, PhaseCompleted, PhaseDenied, PhaseFailed, PhaseExpired, PhaseSkipped, PhaseUndone, PhaseUnknown,
	}
}

// Valid reports whether p is one of the constants.
func (p Phase) Valid() bool { return slices.Contains(Phases(), p) }

// PhaseOf returns the phase of an action with an approval, a status and the
// code of its last attempt, which may be empty. For an approval or a status
// that is not valid it returns "".
func PhaseOf(a Approval, s Status, code string) Phase {
	if !a.Valid() || !s.Valid() {
		return ""
	}
	if s == StatusSkipped && code == CodeUndone {
		return PhaseUndone
	}
	switch a {
	case ApprovalDenied:
		return PhaseDenied
	case ApprovalExpired:
		return PhaseExpired
	case ApprovalRequired:
		if s == StatusPending {
			return PhasePending
		}
	case ApprovalAuto, ApprovalGranted:
	}
	switch s {
	case StatusPending:
		return PhaseApproved
	case StatusSending:
		return PhaseExecuting
	case StatusSent, StatusConflict:
		return PhaseCompleted
	case StatusFailed:
		return PhaseFailed
	case StatusSkipped:
		return PhaseSkipped
	case StatusUnknown:
		return PhaseUnknown
	}
	return ""
}
