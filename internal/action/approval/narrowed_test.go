package approval_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/fault"
)

// A token restricted to some tools can decide only about these.
func TestNarrowedTokenDecidesAboutItsTools(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	ids := o.propose(2)
	other, mine := o.decider("ada"), o.decider("ada")
	other.Tools, mine.Tools = []string{"src:mail", "elsewhere:*"}, []string{"src:*"}

	_, edited := o.service.Approve(t.Context(), other, ids[0], approval.Approval{Args: json.RawMessage(`{"n":1}`)})
	for name, err := range map[string]error{
		"approve":          o.grant(other, ids[0], ""),
		"deny":             o.service.Deny(t.Context(), other, ids[0], approval.Denial{}),
		"edit":             o.service.Edit(t.Context(), other, ids[0], approval.Edit{Args: json.RawMessage(`{"n":1}`)}),
		"approve and edit": edited,
	} {
		if !errors.Is(err, fault.Denied) {
			t.Errorf("%s with a token for other tools = %v, want fault.Denied", name, err)
		}
	}
	many, err := o.service.ApproveMany(t.Context(), other, ids, "", nil)
	if err != nil || !errors.Is(many[0].Err, fault.Denied) || !errors.Is(many[1].Err, fault.Denied) {
		t.Errorf("approve many = %+v, %v", many, err)
	}
	if v := o.view(ids[0]); v.Envelope.Approval != envelope.ApprovalRequired {
		t.Errorf("it is %s", v.Envelope.Approval)
	}
	if err := o.grant(mine, ids[0], ""); err != nil {
		t.Errorf("approve with a token for the source's tools = %v", err)
	}
}
