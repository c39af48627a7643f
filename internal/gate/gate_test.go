package gate_test

import (
	"testing"

	"github.com/countersign-dev/countersign/internal/gate"
)

func TestCheck(t *testing.T) {
	t.Parallel()

	if got := gate.Check(gate.Facts{}); got != (gate.Answer{Verdict: gate.Pass}) {
		t.Errorf("Check(nothing against it) = %+v, want pass", got)
	}
	late := gate.Check(gate.Facts{PastDeadline: true})
	if late.Verdict != gate.Skip || late.Code != gate.CodeDeadline || late.Message == "" {
		t.Errorf("Check(past its deadline) = %+v, want skip with a reason", late)
	}
}
