package envelope

import "github.com/countersign-dev/countersign/internal/fault"

// Approval is the state of an action's approval by people.
type Approval string

// The approvals.
const (
	// ApprovalAuto needs no person.
	ApprovalAuto Approval = "auto"
	// ApprovalRequired waits for a person.
	ApprovalRequired Approval = "required"
	// ApprovalGranted was approved by a person.
	ApprovalGranted Approval = "granted"
	// ApprovalDenied was refused, by a person or by policy.
	ApprovalDenied Approval = "denied"
	// ApprovalExpired waited longer than it may.
	ApprovalExpired Approval = "expired"
)

// Valid reports whether a is one of the constants.
func (a Approval) Valid() bool {
	switch a {
	case ApprovalAuto, ApprovalRequired, ApprovalGranted, ApprovalDenied, ApprovalExpired:
		return true
	}
	return false
}

// Decision ends the wait for a person.
type Decision string

// The decisions.
const (
	// DecisionGrant is a person's yes.
	DecisionGrant Decision = "grant"
	// DecisionDeny is a person's no.
	DecisionDeny Decision = "deny"
	// DecisionExpire is the end of the time to decide.
	DecisionExpire Decision = "expire"
)

// NextApproval returns the state after a decision. Only ApprovalRequired can
// be decided, and only once; otherwise the error is fault.Conflict.
func NextApproval(from Approval, d Decision) (Approval, error) {
	if from == ApprovalRequired {
		switch d {
		case DecisionGrant:
			return ApprovalGranted, nil
		case DecisionDeny:
			return ApprovalDenied, nil
		case DecisionExpire:
			return ApprovalExpired, nil
		}
	}
	return from, fault.New(fault.Conflict, "an approval that is %q cannot take the decision %q", from, d)
}
