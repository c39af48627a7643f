package execution_test

import (
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/insight/execution"
)

// TestEveryStateHasAStatus walks every pair of an approval and a status.
func TestEveryStateHasAStatus(t *testing.T) {
	t.Parallel()
	approvals := []envelope.Approval{envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.ApprovalGranted, envelope.ApprovalDenied, envelope.ApprovalExpired}
	statuses := map[envelope.Status]execution.Status{
		envelope.StatusPending: execution.StatusPending, envelope.StatusSending: execution.StatusExecuting, envelope.StatusSent: execution.StatusSuccess,
		envelope.StatusConflict: execution.StatusSuccess, envelope.StatusFailed: execution.StatusError, envelope.StatusSkipped: execution.StatusSkipped,
		envelope.StatusUnknown: execution.StatusUnknown,
	}
	for _, a := range approvals {
		for s, want := range statuses {
			switch a {
			case envelope.ApprovalDenied:
				want = execution.StatusDenied
			case envelope.ApprovalExpired:
				want = execution.StatusExpired
			case envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.ApprovalGranted:
			}
			if got := execution.StatusOf(a, s); got != want || !got.Valid() {
				t.Errorf("StatusOf(%s, %s) = %q, want %q", a, s, got, want)
			}
		}
	}
	if got := execution.StatusOf("", ""); got != "" {
		t.Errorf("StatusOf of nothing = %q", got)
	}
}
