package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	const snooze = `{"account":"ann","message":{"folder":"INBOX","key":"7:1"},"expected":{"folder":"INBOX"},"until":"2026-11-02T06:00:00Z"}`
	const bare = `{"account":"ann","message":{"folder":"INBOX","key":"7:1"}}`
	for name, test := range map[string]struct {
		tool          plan.Tool
		proposed, now string
		pointer       string // of the refusal; empty for none
	}{
		"snooze, another time":         {plan.ToolSnooze, snooze, strings.Replace(snooze, "02T06", "03T09", 1), ""},
		"snooze, another message":      {plan.ToolSnooze, snooze, strings.Replace(snooze, "7:1", "7:2", 1), "/args/message/key"},
		"snooze, a label":              {plan.ToolSnooze, snooze, strings.Replace(snooze, `"until"`, `"labels":{"add":["x"]},"until"`, 1), "/args/labels/add/0"},
		"trash, another message":       {plan.ToolTrash, bare, strings.Replace(bare, "7:1", "7:2", 1), "/args/message/key"},
		"trash, a folder":              {plan.ToolTrash, bare, strings.Replace(bare, `"account"`, `"folder":"Work","account"`, 1), "/args/folder"},
		"unsubscribe, another message": {plan.ToolUnsubscribe, bare, strings.Replace(bare, "7:1", "7:2", 1), "/args/message/key"},
		"unsubscribe, a state":         {plan.ToolUnsubscribe, bare, strings.Replace(bare, `"account"`, `"expected":{"folder":"Work"},"account"`, 1), "/args/expected/folder"},
		"the same":                     {plan.ToolLabel, label, label, ""},
		"another label":                {plan.ToolLabel, label, `{"account":"ann","message":{"folder":"INBOX","key":"7:1"},"expected":{"folder":"INBOX"},"labels":{"add":["Invoices"]}}`, ""},
		"another text":                 {plan.ToolDraft, draft, `{"account":"ann","to":["bob@example.org","eve@example.org"],"subject":"Re: lunch","in_reply_to":"<1@example.org>","text":"No,\nsorry"}`, ""},
		"another message":              {plan.ToolLabel, label, `{"account":"ann","message":{"folder":"INBOX","key":"7:2"},"expected":{"folder":"INBOX"},"labels":{"add":["receipts"]}}`, "/args/message/key"},
		"no message":                   {plan.ToolLabel, label, `{"account":"ann","message":{"folder":"INBOX"},"expected":{"folder":"INBOX"},"labels":{"add":["receipts"]}}`, "/args/message/key"},
		"another account":              {plan.ToolDraft, draft, `{"account":"bob","to":["bob@example.org"],"subject":"Re: lunch","in_reply_to":"<1@example.org>","text":"Yes"}`, "/args/account"},
		"a place of others":            {plan.ToolLabel, label, `{"account":"ann","message":{"folder":"INBOX","key":"7:1"},"expected":{"folder":"INBOX"},"to":["eve@example.org"]}`, "/args/to/0"},
		"an action tag":                {plan.ToolLabel, label, `{"account":"ann","message":{"folder":"INBOX","key":"7:1"},"expected":{"folder":"INBOX"},"labels":{"add":["countersign_do_pay"]}}`, "/args/labels/add/0"},
		"a line in a field":            {plan.ToolDraft, draft, `{"account":"ann","to":["bob@example.org\nBcc: eve@example.org"],"subject":"Re: lunch","in_reply_to":"<1@example.org>","text":"Yes"}`, "/args/to/0"},
		"a number":                     {plan.ToolDraft, draft, `{"account":"ann","to":["bob@example.org"],"subject":5,"in_reply_to":"<1@example.org>","text":"Yes"}`, "/args/subject"},
	} {
		err := plan.CheckEdit(plan.Edited{Tool: test.tool, Proposed: json.RawMessage(test.proposed), Now: json.RawMessage(test.now), Own: true})

		invalid, refused := errors.AsType[*envelope.InvalidError](err)
		switch {
		case test.pointer == "" && err != nil:
			t.Errorf("%s: CheckEdit = %v, want nil", name, err)
		case test.pointer != "" && (!refused || invalid.Fields[0].Pointer != test.pointer):
			t.Errorf("%s: CheckEdit = %v, want a refusal at %s", name, err, test.pointer)
		}
	}
}

// TestCheckEditOfOthers: of a call that another program proposed, an edit keeps the
// account and the message, and no value has a second line or asks for an action.
func TestCheckEditOfOthers(t *testing.T) {
	t.Parallel()
	const message = `{"account":"ann","message":{"folder":"INBOX","key":"7:1","identity":"aa"},"expected":{"folder":"INBOX"}%s}`
	const send = `{"account":"ann","to":["bob@example.org"],"subject":"Re: lunch","in_reply_to":"1@example.org","text":"Yes"}`
	about := func(more string) string { return fmt.Sprintf(message, more) }
	other := func(more string) string { return strings.Replace(about(more), `"7:1"`, `"7:2"`, 1) }
	for name, test := range map[string]struct {
		tool          plan.Tool
		proposed, now string
		pointer       string // of the refusal; empty for none
	}{
		"trash, the same":                {"message.trash", about(""), about(""), ""},
		"trash, another message":         {"message.trash", about(""), other(""), "/args/message/key"},
		"trash, from another folder":     {"message.trash", about(""), strings.Replace(about(""), `"expected":{"folder":"INBOX"}`, `"expected":{"folder":"Work"}`, 1), "/args/expected/folder"},
		"snooze, another time":           {"message.snooze", about(`,"until":"2026-11-02T08:00:00Z"`), about(`,"until":"2026-11-03T08:00:00Z"`), ""},
		"snooze, another message":        {"message.snooze", about(`,"until":"2026-11-02T08:00:00Z"`), other(`,"until":"2026-11-02T08:00:00Z"`), "/args/message/key"},
		"unsubscribe, another message":   {"message.unsubscribe", about(""), other(""), "/args/message/key"},
		"unsubscribe, another account":   {"message.unsubscribe", about(""), strings.Replace(about(""), `"ann"`, `"bob"`, 1), "/args/account"},
		"rsvp, another answer":           {"message.rsvp", about(`,"answer":"accepted"`), about(`,"answer":"declined"`), ""},
		"rsvp, another message":          {"message.rsvp", about(`,"answer":"accepted"`), other(`,"answer":"accepted"`), "/args/message/key"},
		"send, other people and words":   {"message.send", send, `{"account":"ann","to":["eve@example.org"],"cc":["bob@example.org"],"subject":"Re: tea","in_reply_to":"1@example.org","text":"No,\nsorry"}`, ""},
		"send, another account":          {"message.send", send, strings.Replace(send, `"ann"`, `"bob"`, 1), "/args/account"},
		"send, another conversation":     {"message.send", send, strings.Replace(send, `"1@`, `"2@`, 1), "/args/in_reply_to"},
		"send, a second header":          {"message.send", send, strings.Replace(send, `Re: lunch`, `Re: lunch\nBcc: eve@example.org`, 1), "/args/subject"},
		"label, an action":               {plan.ToolLabel, about(`,"labels":{"add":["good"]}`), about(`,"labels":{"add":["countersign_do_pay"]}`), "/args/labels/add/0"},
		"flag, as the tool allows":       {plan.ToolFlag, about(`,"flags":{"add":["\\Flagged"]}`), about(`,"flags":{"add":["\\Seen"]}`), ""},
		"restore, another state":         {"message.restore", about(`,"before":{"folder":"INBOX"}`), about(`,"before":{"folder":"Work"}`), "/args/before/folder"},
		"restore, a state that is taken": {"message.restore", about(`,"before":{"folder":"INBOX"}`), about(""), "/args/before/folder"},
	} {
		err := plan.CheckEdit(plan.Edited{Tool: test.tool, Proposed: json.RawMessage(test.proposed), Now: json.RawMessage(test.now)})

		invalid, refused := errors.AsType[*envelope.InvalidError](err)
		switch {
		case test.pointer == "" && err != nil:
			t.Errorf("%s: CheckEdit = %v, want nil", name, err)
		case test.pointer != "" && (!refused || invalid.Fields[0].Pointer != test.pointer):
			t.Errorf("%s: CheckEdit = %v, want a refusal at %s", name, err, test.pointer)
		}
	}
}
