package envelope

// Phase is the one word for approval and status together that agents and
// people see.
type Phase string

// The phases.
const (
	// PhasePending waits for a person.
	PhasePending Phase = "pending"
	// PhaseApproved may run, now or later.
	PhaseApproved Phase = "approved"
	// PhaseExecuting has been started, and its outcome is not known yet.
	PhaseExecuting Phase = "executing"
	// PhaseCompleted has happened.
	PhaseCompleted Phase = "completed"
	// PhaseDenied was refused.
	PhaseDenied Phase = "denied"
	// PhaseFailed did not happen and will not by itself.
	PhaseFailed Phase = "failed"
	// PhaseExpired waited for a person longer than it may.
	PhaseExpired Phase = "expired"
)

// Valid says that p is one of the constants.
func (p Phase) Valid() bool {
	switch p {
	case PhasePending, PhaseApproved, PhaseExecuting, PhaseCompleted, PhaseDenied, PhaseFailed, PhaseExpired:
		return true
	}
	return false
}

// PhaseOf returns the phase of an action. One that is unknown shows as
// executing: to call it failed would invite the agent to do it again. One that
// was skipped or undone shows as failed, since it did not happen. For an
// approval or a status that is not valid it returns "".
func PhaseOf(a Approval, s Status) Phase {
	switch a {
	case ApprovalDenied:
		return PhaseDenied
	case ApprovalExpired:
		return PhaseExpired
	case ApprovalRequired:
		if s == StatusPending {
			return PhasePending
		}
		return phaseOfDue(s)
	case ApprovalAuto, ApprovalGranted:
		return phaseOfDue(s)
	}
	return ""
}

// phaseOfDue is the phase of an action that nobody has to approve any more.
func phaseOfDue(s Status) Phase {
	switch s {
	case StatusPending:
		return PhaseApproved
	case StatusSending, StatusUnknown:
		return PhaseExecuting
	case StatusSent, StatusConflict:
		return PhaseCompleted
	case StatusFailed, StatusSkipped:
		return PhaseFailed
	}
	return ""
}
