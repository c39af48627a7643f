package mail_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
)

// in returns the time after a while, in arguments.
func in(d time.Duration) string { return time.Now().Add(d).Format(time.RFC3339) }

// foldersOf returns the folders of messages, sorted.
func foldersOf(all []seen) (folders []string) {
	for _, s := range all {
		folders = append(folders, s.Folder)
	}
	slices.Sort(folders)
	return folders
}

// trashedMessagesRemain moves a message to the trash twice. No message is
// deleted, and the reversal restores everything.
func trashedMessagesRemain(t *testing.T, f *fixture, m realMailbox, args object) {
	t.Helper()
	before, _ := m.look(t)
	result := f.done(mail.ToolTrash, args)
	trashed, _ := m.look(t)
	again := f.answer(f.call(mail.ToolTrash, args), source.KindConflict, source.CodeConflict)
	f.done(mail.ToolRestore, f.reversal(args, result))
	restored, _ := m.look(t)

	want := append(foldersOf(before)[1:], "Trash")
	if slices.Sort(want); !slices.Equal(foldersOf(trashed), want) {
		t.Errorf("after the call the messages are in %v, want %v", foldersOf(trashed), want)
	}
	if stateOf(again, "after") != stateOf(result, "after") {
		t.Errorf("the second call leaves %s, want %s", stateOf(again, "after"), stateOf(result, "after"))
	}
	if diff := cmp.Diff(before, restored); diff != "" {
		t.Errorf("reverted (-want +got):\n%s", diff)
	}
}

// comeBack calls the tool that a snooze names for its return.
func (f *fixture) comeBack(of source.Outcome) source.Outcome {
	f.Helper()
	if of.Return == nil {
		f.Fatalf("outcome = %s %q without a return", of.Kind, of.Code)
	}
	var args object
	if err := json.Unmarshal(of.Return.Args, &args); err != nil {
		f.Fatal(err)
	}
	return f.call(of.Return.Tool, args)
}

// snoozedMessagesReturn snoozes a message, which its owner flags before the
// return. It returns with the flag.
func snoozedMessagesReturn(t *testing.T, f *fixture, m realMailbox, args object) {
	t.Helper()
	before, _ := m.look(t)
	args["until"] = in(time.Hour)
	snoozed := f.call(mail.ToolSnooze, args)
	after := stateOf(f.answer(snoozed, source.KindDone, ""), "after")
	w, err := m.writer()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }() // nothing is unwritten
	_, states := m.look(t)
	now := states[string(identify(mailOf("1@example.com", "hush body")))]
	if _, err := w.Change(t.Context(), now, mailbox.Change{Add: []string{mailbox.FlagFlagged}}); err != nil {
		t.Fatal(err)
	}

	returned := f.answer(f.comeBack(snoozed), source.KindDone, "")
	again := f.comeBack(snoozed)

	if all, _ := m.look(t); !slices.Equal(foldersOf(all), foldersOf(before)) {
		t.Errorf("the messages are in %v, want %v", foldersOf(all), foldersOf(before))
	}
	if got := stateOf(returned, "after"); after != `Snoozed [\Seen]` || got != `INBOX [\Flagged \Seen]` {
		t.Errorf("snoozed as %s, returned as %s", after, got)
	}
	f.answer(again, source.KindConflict, source.CodeConflict)
}

// TestTrashByUse checks that a folder that the server marks as the trash precedes
// one of that name.
func TestTrashByUse(t *testing.T) {
	t.Parallel()
	server := dovecottest.New(t)
	for _, folder := range []string{"Trash", "Bin-by-use"} {
		if err := server.Deliver("ada", folder, mailOf("0@example.com", "an older one")); err != nil { // makes the folder
			t.Fatal(err)
		}
	}
	m := overIMAP(server.Address, "ada", dovecottest.Password)
	args := m.message(t)
	f := newFixture(t, func(cfg *mail.Config) {
		cfg.Accounts = map[string]mail.Account{"work": {From: owner, Open: func(context.Context) (mailbox.Writer, error) { return m.writer() }}}
	})

	if got := stateOf(f.done(mail.ToolTrash, args), "after"); got != `Bin-by-use [\Seen]` {
		t.Errorf("moved to %s", got)
	}
}

// TestReturn checks the returns of messages that their owner moved or deleted
// since, and of a call whose answer was lost.
func TestReturn(t *testing.T) {
	t.Parallel()
	raw := mailOf("1@example.com", "hush body")
	for name, test := range map[string]struct {
		since func(*mailbox.State, *[]byte)
		gone  bool
		want  []string
	}{
		"moved":   {since: func(s *mailbox.State, _ *[]byte) { s.Folder = "Projects" }, want: []string{`Projects []`}},
		"deleted": {gone: true},
	} {
		f := newFixture(t)
		args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw), "until": in(time.Hour)}
		snoozed := f.call(mail.ToolSnooze, args)
		if at := f.account.Messages("Snoozed")[0].Location; test.gone {
			f.account.Edit(at, nil)
		} else {
			f.account.Edit(at, test.since)
		}

		f.answer(f.comeBack(snoozed), source.KindConflict, source.CodeConflict)

		if got := f.locations("INBOX", "Snoozed", "Projects"); !slices.Equal(got, test.want) {
			t.Errorf("%s: messages are %v, want %v", name, got, test.want)
		}
	}

	f := newFixture(t)
	args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw), "until": in(time.Hour)}
	first := f.attempt(1, "key", mail.ToolSnooze, args)
	second := f.attempt(2, "key", mail.ToolSnooze, args)
	other := f.call(mail.ToolSnooze, args)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second attempt answers (-first +second):\n%s", diff)
	}
	if f.answer(other, source.KindConflict, source.CodeConflict); other.Return != nil {
		t.Error("a second snooze brings about a second return")
	}
}

func TestSnoozeTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	raw := mailOf("1@example.com", "hush body")
	args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw)}
	for _, until := range []any{in(-time.Minute), in(400 * 24 * time.Hour), "tomorrow", "", 7} {
		args["until"] = until
		if out := f.call(mail.ToolSnooze, args); out.Kind != source.KindRefused || out.Code != source.CodeInvalidArgs || len(f.account.Messages("INBOX")) != 1 {
			t.Errorf("until %v: outcome = %s %q, want a refusal", until, out.Kind, out.Code)
		}
	}
	f.account.RemoveFolder("Snoozed")
	args["until"] = in(time.Hour)
	f.answer(f.call(mail.ToolSnooze, args), source.KindRefused, source.CodeNotFound)
}
