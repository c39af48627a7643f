package execution_test

import (
	"testing"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/insight/execution"
)

// TestEveryStateHasAStatus checks every pair of an approval and a status.
func TestEveryStateHasAStatus(t *testing.T) {
	t.Parallel()
	approvals := []envelope.Approval{envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.ApprovalGranted, envelope.ApprovalDenied, envelope.ApprovalExpired}
	statuses := map[envelope.Status]wire.ExecutionStatus{
		envelope.StatusPending: wire.ExecutionPending, envelope.StatusSending: wire.ExecutionExecuting, envelope.StatusSent: wire.ExecutionSuccess,
		envelope.StatusConflict: wire.ExecutionSuccess, envelope.StatusFailed: wire.ExecutionError, envelope.StatusSkipped: wire.ExecutionSkipped,
		envelope.StatusUnknown: wire.ExecutionUnknown,
	}
	for _, a := range approvals {
		for s, want := range statuses {
			switch a {
			case envelope.ApprovalDenied:
				want = wire.ExecutionDenied
			case envelope.ApprovalExpired:
				want = wire.ExecutionExpired
			case envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.ApprovalGranted:
			}
			if got := execution.StatusOf(a, s); got != want {
				t.Errorf("StatusOf(%s, %s) = %q, want %q", a, s, got, want)
			}
		}
	}
	if got := execution.StatusOf("", ""); got != "" {
		t.Errorf("StatusOf of nothing = %q", got)
	}
}
