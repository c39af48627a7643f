package forensic_test

import (
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/forensic"
)

// TestEveryStateHasAStatus walks every pair of an approval and a status.
func TestEveryStateHasAStatus(t *testing.T) {
	t.Parallel()
	approvals := []envelope.Approval{envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.ApprovalGranted, envelope.ApprovalDenied, envelope.ApprovalExpired}
	statuses := map[envelope.Status]forensic.Status{
		envelope.StatusPending: forensic.StatusPending, envelope.StatusSending: forensic.StatusExecuting, envelope.StatusSent: forensic.StatusSuccess,
		envelope.StatusConflict: forensic.StatusSuccess, envelope.StatusFailed: forensic.StatusError, envelope.StatusSkipped: forensic.StatusSkipped,
		envelope.StatusUnknown: forensic.StatusUnknown,
	}
	for _, a := range approvals {
		for s, want := range statuses {
			switch a {
			case envelope.ApprovalDenied:
				want = forensic.StatusDenied
			case envelope.ApprovalExpired:
				want = forensic.StatusExpired
			case envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.ApprovalGranted:
			}
			if got := forensic.StatusOf(a, s); got != want || !got.Valid() {
				t.Errorf("StatusOf(%s, %s) = %q, want %q", a, s, got, want)
			}
		}
	}
	if got := forensic.StatusOf("", ""); got != "" {
		t.Errorf("StatusOf of nothing = %q", got)
	}
}
