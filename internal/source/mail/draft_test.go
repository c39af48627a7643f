package mail_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
)

func draftArgs() object {
	return object{
		"account": "work", "to": []string{"bob@example.com", "carla@example.org"}, "cc": []string{"dan@example.org"},
		"subject": "Grüße and a subject that is long enough to be written on more than one line of the header",
		"text":    "Hello Bob,\n\nFrom here to there: äöü.\r\n.\nAda", "in_reply_to": "1@example.com", "references": []string{"0@example.com", "1@example.com"},
	}
}

func TestDraftIsStoredAndDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)

	stored := f.done(mail.ToolDraft, draftArgs())
	drafts := f.locations("Drafts")
	m, ok := stored["message"].(object)
	if !ok {
		t.Fatalf("the answer has no message: %v", stored)
	}
	id, _ := m["message_id"].(string)
	raw := f.account.Raw("Drafts", id)
	f.done(mail.ToolDraftDelete, object{"account": "work", "message": m, "after": stored["after"]})

	if diff := cmp.Diff([]string{`Drafts [\Draft \Seen]`}, drafts); diff != "" || stateOf(stored, "after") != drafts[0] || len(raw) != 1 {
		t.Fatalf("drafts (-want +got):\n%s; the answer has %v", diff, stored)
	}
	got := message.Parse(raw[0])
	want := draftArgs()
	if text, _ := want["text"].(string); strings.ReplaceAll(got.Text, "\r\n", "\n") != strings.ReplaceAll(text, "\r\n", "\n") || got.Subject != want["subject"] {
		t.Errorf("the draft says %q: %q", got.Subject, got.Text)
	}
	if len(got.To) != 2 || len(got.Cc) != 1 || got.From[0].Addr != owner || got.MessageID != id || !cmp.Equal(got.InReplyTo, []string{"1@example.com"}) || len(got.References) != 2 {
		t.Errorf("the draft has the header %q", got.Fields)
	}
	if diff := cmp.Diff([]string{`Trash [\Draft \Seen]`}, f.locations("Drafts", "Trash")); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

func TestDraftIsStoredOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.account.Fail("Append", mailboxtest.Fault{Err: mailboxtest.ErrDown, After: true})

	lost := f.attempt(1, "key", mail.ToolDraft, draftArgs())
	again := f.answer(f.attempt(2, "key", mail.ToolDraft, draftArgs()), source.KindDone, "")
	f.account.Edit(f.account.Messages("Drafts")[0].Location, func(_ *mailbox.State, raw *[]byte) { *raw = append(*raw, "P.S.\r\n"...) })
	edited := f.attempt(3, "key", mail.ToolDraft, draftArgs())
	f.done(mail.ToolDraft, draftArgs()) // another call

	if lost.Kind != source.KindRetry || !lost.Unsure || lost.Code != source.CodeLost {
		t.Errorf("a draft of which no answer came = %s %q, unsure %t; want another attempt", lost.Kind, lost.Code, lost.Unsure)
	}
	if stateOf(again, "after") != `Drafts [\Draft \Seen]` {
		t.Errorf("the second attempt answers %v, want the draft of the first", again)
	}
	f.answer(edited, source.KindConflict, source.CodeConflict)
	if got := f.locations("Drafts"); len(got) != 2 {
		t.Errorf("drafts = %q, want one for each call", got)
	}
}

func TestEditedDraftIsKept(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		touch func(state *mailbox.State, raw *[]byte)
		code  string
	}{
		"edited":  {func(_ *mailbox.State, raw *[]byte) { *raw = append(*raw, "P.S.\r\n"...) }, source.CodeNotFound},
		"starred": {func(s *mailbox.State, _ *[]byte) { s.Flags = mailbox.Flags(append(s.Flags, `\Flagged`)...) }, source.CodeChanged},
		"sent":    {func(s *mailbox.State, _ *[]byte) { s.Folder, s.Flags = "Projects", []string{`\Seen`} }, source.CodeRejected},
		"moved":   {func(s *mailbox.State, _ *[]byte) { s.Folder = "Projects" }, source.CodeChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			stored := f.done(mail.ToolDraft, draftArgs())
			f.account.Edit(f.account.Messages("Drafts")[0].Location, test.touch)

			f.answer(f.call(mail.ToolDraftDelete, object{"account": "work", "message": stored["message"], "after": stored["after"]}), source.KindRefused, test.code)

			if got := f.locations("Drafts", "Projects"); len(got) != 1 {
				t.Errorf("messages = %q, want the draft where it was", got)
			}
		})
	}
}

func TestDraftArgumentsCannotAddHeaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, change := range []object{
		{"subject": "a\r\nBcc: eve@example.com"},
		{"to": []string{"bob@example.com\r\nBcc: eve@example.com"}},
		{"to": []string{"Bob <bob@example.com>"}},
		{"to": []string{"bob@example.com, eve@example.com"}},
		{"in_reply_to": "a@b>\r\nBcc: <eve@example.com"},
		{"references": []string{"a@b> <c@d"}},
		{"html": "<b>no</b>"},
	} {
		args := draftArgs()
		maps.Copy(args, change)
		f.answer(f.call(mail.ToolDraft, args), source.KindRefused, source.CodeInvalidArgs)
	}
	if got := f.locations("Drafts"); len(got) != 0 {
		t.Errorf("drafts = %q, want none", got)
	}
}
