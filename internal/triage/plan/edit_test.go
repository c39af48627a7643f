package plan_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// TestCheckEdit: a person's edit passes the guards of proposals, and the
// message stays the one of the proposal.
func TestCheckEdit(t *testing.T) {
	t.Parallel()
	const label = `{"account":"ann","message":{"folder":"INBOX","key":"7:1"},"expected":{"folder":"INBOX"},"labels":{"add":["receipts"]}}`
	const draft = `{"account":"ann","to":["bob@example.org"],"subject":"Re: lunch","in_reply_to":"<1@example.org>","text":"Yes"}`
	for name, test := range map[string]struct {
		tool          plan.Tool
		proposed, now string
		pointer       string // of the refusal; empty for none
	}{
		"the same":          {plan.ToolLabel, label, label, ""},
		"another label":     {plan.ToolLabel, label, `{"account":"ann","message":{"folder":"INBOX","key":"7:1"},"expected":{"folder":"INBOX"},"labels":{"add":["Invoices"]}}`, ""},
		"another text":      {plan.ToolDraft, draft, `{"account":"ann","to":["bob@example.org","eve@example.org"],"subject":"Re: lunch","in_reply_to":"<1@example.org>","text":"No,\nsorry"}`, ""},
		"another message":   {plan.ToolLabel, label, `{"account":"ann","message":{"folder":"INBOX","key":"7:2"},"expected":{"folder":"INBOX"},"labels":{"add":["receipts"]}}`, "/args/message/key"},
		"no message":        {plan.ToolLabel, label, `{"account":"ann","message":{"folder":"INBOX"},"expected":{"folder":"INBOX"},"labels":{"add":["receipts"]}}`, "/args/message/key"},
		"another account":   {plan.ToolDraft, draft, `{"account":"bob","to":["bob@example.org"],"subject":"Re: lunch","in_reply_to":"<1@example.org>","text":"Yes"}`, "/args/account"},
		"a place of others": {plan.ToolLabel, label, `{"account":"ann","message":{"folder":"INBOX","key":"7:1"},"expected":{"folder":"INBOX"},"to":["eve@example.org"]}`, "/args/to/0"},
		"an action tag":     {plan.ToolLabel, label, `{"account":"ann","message":{"folder":"INBOX","key":"7:1"},"expected":{"folder":"INBOX"},"labels":{"add":["countersign_do_pay"]}}`, "/args/labels/add/0"},
		"a line in a field": {plan.ToolDraft, draft, `{"account":"ann","to":["bob@example.org\nBcc: eve@example.org"],"subject":"Re: lunch","in_reply_to":"<1@example.org>","text":"Yes"}`, "/args/to/0"},
		"a number":          {plan.ToolDraft, draft, `{"account":"ann","to":["bob@example.org"],"subject":5,"in_reply_to":"<1@example.org>","text":"Yes"}`, "/args/subject"},
	} {
		err := plan.CheckEdit(test.tool, json.RawMessage(test.proposed), json.RawMessage(test.now))

		invalid, refused := errors.AsType[*envelope.InvalidError](err)
		switch {
		case test.pointer == "" && err != nil:
			t.Errorf("%s: CheckEdit = %v, want nil", name, err)
		case test.pointer != "" && (!refused || invalid.Fields[0].Pointer != test.pointer):
			t.Errorf("%s: CheckEdit = %v, want a refusal at %s", name, err, test.pointer)
		}
	}
}
