package mail_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

func TestConform(t *testing.T) {
	t.Parallel()
	sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
		account := mailboxtest.NewMemory(identify)
		src, err := mail.New(mail.Config{Name: "mailbox", Accounts: map[string]mail.Account{"work": {Open: account.Open, From: owner}}})
		if err != nil {
			t.Fatal(err)
		}
		draft := func(text string) sourcetest.Invocation {
			return sourcetest.Invocation{Tool: mail.ToolDraft, Args: json.RawMessage(`{"account":"work","to":["bob@example.com"],"subject":"s","text":"` + text + `"}`)}
		}
		h := sourcetest.Harness{
			Source: faulty{src, account}, Act: draft("hello"), BadArgs: draft(`","folder":"x`),
			Count:   func(key string) int { return len(account.Raw("Drafts", mail.DraftID(key, "work", owner))) },
			Hang:    draft("hang"),
			Lose:    draft("lose"),
			Limited: draft("limit"), RetryAfter: 7 * time.Second,
			Restart: func(*testing.T) { account.Fail("Folders", mailboxtest.Fault{Err: mailboxtest.ErrDown}) },
			Without: map[sourcetest.Feature]string{sourcetest.ToolErrors: "a mailbox does what it is told or says why not"},
		}
		return h
	})
}

// TestCallsAreReverted calls each tool on a message, runs its declared reversal,
// and compares the mailbox before and after.
func TestCallsAreReverted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tool  string
		more  object
		flags []string
		want  string
	}{
		"label": {mail.ToolLabel, object{"labels": object{"add": []string{"receipts", "2026"}, "remove": []string{"todo"}}}, []string{"todo", `\Seen`}, `INBOX [2026 \Seen receipts]`},
		"flag":  {mail.ToolFlag, object{"flags": object{"add": []string{`\Seen`, `\Flagged`}}}, []string{"todo", `\Flagged`}, `INBOX [\Flagged \Seen todo]`},
		"unflag": {
			mail.ToolFlag, object{"flags": object{"remove": []string{`\Seen`}}}, []string{`\Seen`}, `INBOX []`,
		},
		"archive": {mail.ToolArchive, nil, []string{"todo", `\Seen`}, `Archive [\Seen todo]`},
		"archive with a label": {
			mail.ToolArchive, object{"labels": object{"add": []string{"receipts"}}}, []string{"todo"}, `Archive [receipts todo]`,
		},
		"move":   {mail.ToolMove, object{"folder": "Projects"}, nil, `Projects []`},
		"trash":  {mail.ToolTrash, nil, []string{"todo"}, `Trash [todo]`},
		"snooze": {mail.ToolSnooze, object{"until": in(time.Hour)}, []string{`\Seen`}, `Snoozed [\Seen]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			raw := mailOf("1@example.com", "hush body")
			before := f.account.Deliver("INBOX", raw, test.flags...)
			args := object{"account": "work", "message": ref(before, "1@example.com", raw)}
			maps.Copy(args, test.more)
			was := fmt.Sprint("INBOX ", before.Flags)

			result := f.done(test.tool, args)
			left := f.locations("INBOX", "Archive", "Projects", "Junk", "Trash", "Snoozed")
			restored := f.done(mail.ToolRestore, f.reversal(args, result))

			if stateOf(result, "before") != was || stateOf(result, "after") != test.want || len(left) != 1 || left[0] != test.want {
				t.Errorf("%s answers %v and leaves %v, want %s from %s", test.tool, result, left, test.want, was)
			}
			if stateOf(restored, "before") != test.want || stateOf(restored, "after") != was {
				t.Errorf("restore answers %v, want %s from %s", restored, was, test.want)
			}
			if diff := cmp.Diff([]string{was}, f.locations("INBOX", "Archive", "Projects")); diff != "" {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReversalRefusesChangedMessages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		touch      func(state *mailbox.State, raw *[]byte)
		kind       source.Kind
		code, want string
	}{
		"read it":       {func(s *mailbox.State, _ *[]byte) { s.Flags = mailbox.Flags(append(s.Flags, `\Seen`)...) }, source.KindRefused, source.CodeChanged, "set of flags"},
		"labelled it":   {func(s *mailbox.State, _ *[]byte) { s.Flags = []string{"mine"} }, source.KindRefused, source.CodeChanged, "set of flags"},
		"moved it":      {func(s *mailbox.State, _ *[]byte) { s.Folder = "Projects" }, source.KindRefused, source.CodeChanged, "folder"},
		"edited it":     {func(_ *mailbox.State, raw *[]byte) { *raw = mailOf("1@example.com", "another body") }, source.KindRefused, source.CodeNotFound, "no such message in the folder of the call"},
		"deleted it":    {nil, source.KindRefused, source.CodeNotFound, "no such message in the folder of the call"},
		"moved it back": {func(s *mailbox.State, _ *[]byte) { s.Folder = "INBOX" }, source.KindConflict, source.CodeConflict, "already"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			raw := mailOf("1@example.com", "hush body")
			args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw)}
			result := f.done(mail.ToolArchive, args)
			f.account.Edit(f.account.Messages("Archive")[0].Location, test.touch)
			touched := f.locations("INBOX", "Archive", "Projects")

			out := f.call(mail.ToolRestore, f.reversal(args, result))

			if out.Kind != test.kind || out.Code != test.code || !strings.Contains(out.Message, test.want) {
				t.Errorf("restore = %s %q (%s), want %s %q that says %q", out.Kind, out.Code, out.Message, test.kind, test.code, test.want)
			}
			if diff := cmp.Diff(touched, f.locations("INBOX", "Archive", "Projects")); diff != "" {
				t.Errorf("what its owner made of it (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOwnLabelsAreRevertedInAnyOrder labels and archives a message by two calls,
// and reverts them in every order: labels with the account's prefix belong to
// the source alone.
func TestOwnLabelsAreRevertedInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, tools := range [][]string{{mail.ToolLabel, mail.ToolArchive}, {mail.ToolArchive, mail.ToolLabel}} {
		for _, newest := range []bool{true, false} {
			f := newFixture(t, withPrefix)
			raw := mailOf("1@example.com", "hush body")
			message := ref(f.account.Deliver("INBOX", raw, "mine"), "1@example.com", raw)
			var reversals []object
			for _, tool := range tools {
				args := object{"account": "work", "message": message}
				if tool == mail.ToolLabel {
					args["labels"] = object{"add": []string{"receipts"}}
				}
				reversals = append(reversals, f.reversal(args, f.done(tool, args)))
			}
			if newest {
				slices.Reverse(reversals)
			}

			for _, args := range reversals {
				f.done(mail.ToolRestore, args)
			}

			if diff := cmp.Diff([]string{"INBOX [mine]"}, f.locations("INBOX", "Archive")); diff != "" {
				t.Errorf("%s, newest first %t (-want +got):\n%s", tools, newest, diff)
			}
		}
	}
}

func withPrefix(cfg *mail.Config) {
	work := cfg.Accounts["work"]
	work.LabelPrefix = "Countersign_"
	cfg.Accounts["work"] = work
}

func TestOnlyTheIdentifiedMessageIsChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	raw, forged := mailOf("1@example.com", "hush body"), mailOf("1@example.com", "forged body")
	at := f.account.Deliver("INBOX", forged)
	args := object{"account": "work", "message": ref(at, "1@example.com", raw), "labels": object{"add": []string{"x"}}}

	f.answer(f.call(mail.ToolLabel, args), source.KindRefused, source.CodeNotFound)
	f.account.Deliver("Projects", raw)
	result := f.done(mail.ToolLabel, args)

	if diff := cmp.Diff([]string{"INBOX []", "Projects [x]"}, f.locations("INBOX", "Projects")); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if m, ok := result["message"].(object); !ok || m["folder"] != "Projects" || m["key"] == at.Key {
		t.Errorf("the answer names %v, want where the message lies", result["message"])
	}
	f.answer(f.call(mail.ToolArchive, args2(args, "labels")), source.KindRefused, source.CodeChanged)
}

// args2 returns arguments without one of them.
func args2(args object, without string) object {
	rest := object{}
	for name, value := range args {
		if name != without {
			rest[name] = value
		}
	}
	return rest
}

func TestExistingEffectIsAConflict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	raw := mailOf("1@example.com", "hush body")
	args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw, "x"), "1@example.com", raw)}

	args["labels"] = object{"add": []string{"x"}, "remove": []string{"y"}}
	f.answer(f.call(mail.ToolLabel, args), source.KindConflict, source.CodeConflict)
	delete(args, "labels")
	f.done(mail.ToolArchive, args)
	f.answer(f.call(mail.ToolArchive, args), source.KindConflict, source.CodeConflict)
}

func TestExpectedState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		flags   []string
		attempt int
		kind    source.Kind
		code    string
		before  string
	}{
		"as expected":                                {[]string{"a"}, 1, source.KindDone, "", "INBOX [a]"},
		"touched by its owner":                       {[]string{"a", `\Flagged`}, 1, source.KindRefused, source.CodeChanged, "none"},
		"read by its owner":                          {[]string{"a", `\Seen`}, 1, source.KindDone, "", `INBOX [\Seen a]`},
		"read since an earlier attempt was lost":     {[]string{"a", "x", "y", `\Seen`}, 2, source.KindDone, "", `INBOX [\Seen a]`},
		"done by somebody":                           {[]string{"a", "x", "y"}, 1, source.KindConflict, source.CodeConflict, "INBOX [a x y]"},
		"done by an earlier attempt":                 {[]string{"a", "x", "y"}, 2, source.KindDone, "", "INBOX [a]"},
		"begun by an earlier attempt":                {[]string{"a", "x"}, 2, source.KindDone, "", "INBOX [a]"},
		"begun by somebody":                          {[]string{"a", "x"}, 1, source.KindRefused, source.CodeChanged, "none"},
		"touched while an earlier attempt was lost":  {[]string{"a", "x", "y", `\Flagged`}, 2, source.KindConflict, source.CodeConflict, `INBOX [\Flagged a x y]`},
		"touched before an earlier attempt was made": {[]string{"b"}, 2, source.KindRefused, source.CodeChanged, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			raw := mailOf("1@example.com", "hush body")
			args := object{
				"account": "work", "message": ref(f.account.Deliver("INBOX", raw, test.flags...), "1@example.com", raw),
				"labels": object{"add": []string{"x", "y"}}, "expected": object{"folder": "INBOX", "flags": []string{"a"}},
			}

			result := f.answer(f.attempt(test.attempt, "key", mail.ToolLabel, args), test.kind, test.code)

			if got := stateOf(result, "before"); got != test.before {
				t.Errorf("before = %s, want %s", got, test.before)
			}
		})
	}
}

// TestLostMoveIsRecognized repeats a call that names only the previous folder of
// the message as expectation.
func TestLostMoveIsRecognized(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	raw := mailOf("1@example.com", "hush body")
	args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw, "x"), "1@example.com", raw)}
	f.account.Fail("Change", mailboxtest.Fault{Err: mailboxtest.ErrDown, After: true})

	f.attempt(1, "key", mail.ToolArchive, args)
	result := f.answer(f.attempt(2, "key", mail.ToolArchive, args), source.KindDone, "")
	f.done(mail.ToolRestore, f.reversal(args, result))

	if diff := cmp.Diff([]string{"INBOX [x]"}, f.locations("INBOX", "Archive")); diff != "" || stateOf(result, "before") != "INBOX [x]" {
		t.Errorf("messages (-want +got):\n%s; before = %s", diff, stateOf(result, "before"))
	}
}

func TestInterruptedRestoreIsFinished(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	raw := mailOf("1@example.com", "hush body")
	half := f.account.Deliver("INBOX", raw, "x") // moved back, with its label not yet removed
	args := object{
		"account": "work", "message": ref(half, "1@example.com", raw),
		"before": object{"folder": "INBOX", "key": "1:1", "flags": []string{"a"}}, "after": object{"folder": "Archive", "key": "1:2", "flags": []string{"x"}},
	}

	f.answer(f.attempt(1, "key", mail.ToolRestore, args), source.KindRefused, source.CodeChanged)
	f.answer(f.attempt(2, "key", mail.ToolRestore, args), source.KindDone, "")

	if diff := cmp.Diff([]string{"INBOX [a]"}, f.locations("INBOX", "Archive")); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestMissingFolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.account.RemoveFolder("Junk")
	raw := mailOf("1@example.com", "hush body")
	args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw)}
	for _, folder := range []string{"Nowhere", `\Junk`, `\Nothing`, `\`} {
		args["folder"] = folder
		f.answer(f.call(mail.ToolMove, args), source.KindRefused, source.CodeNotFound)
	}
}

func TestConcurrentChangeIsRetried(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	raw := mailOf("1@example.com", "hush body")
	at := f.account.Deliver("INBOX", raw)
	args := object{"account": "work", "message": ref(at, "1@example.com", raw)}
	read := mailboxtest.Fault{Before: func() {
		f.account.Edit(at.Location, func(s *mailbox.State, _ *[]byte) { s.Flags = []string{`\Seen`} })
	}}

	f.account.Fail("Change", read)
	args["labels"] = object{"add": []string{"x"}}
	result := f.done(mail.ToolLabel, args)

	if got := stateOf(result, "before"); got != `INBOX [\Seen]` {
		t.Errorf("before = %s, want the state that the owner made", got)
	}
}

func TestLabelsHaveThePrefixOfTheAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withPrefix)
	raw := mailOf("1@example.com", "hush body")
	args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw), "labels": object{"add": []string{"receipts"}}}

	f.done(mail.ToolLabel, args)

	if diff := cmp.Diff([]string{"INBOX [Countersign_receipts]"}, f.locations("INBOX")); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestActionTagsAreTheOwners checks that no tool sets or removes a keyword that
// requests an action, also with the prefix of the account.
func TestActionTagsAreTheOwners(t *testing.T) {
	t.Parallel()
	const tag = "Countersign_DO_add-contact"
	plain := newFixture(t)
	prefixed := newFixture(t, withPrefix)
	for name, test := range map[string]struct {
		f    *fixture
		tool string
		args object
	}{
		"label":           {plain, mail.ToolLabel, object{"labels": object{"add": []string{tag}}}},
		"removed label":   {plain, mail.ToolLabel, object{"labels": object{"remove": []string{tag}}}},
		"label of prefix": {prefixed, mail.ToolLabel, object{"labels": object{"add": []string{"do_add-contact"}}}},
		"archive":         {plain, mail.ToolArchive, object{"labels": object{"add": []string{tag}}}},
		"restored": {plain, mail.ToolRestore, object{
			"before": object{"folder": "INBOX", "key": "1", "flags": []string{tag}}, "after": object{"folder": "INBOX", "key": "1", "flags": []string{}},
		}},
	} {
		raw := mailOf(name+"@example.com", "hush body")
		args := object{"account": "work", "message": ref(test.f.account.Deliver("INBOX", raw), name+"@example.com", raw)}
		for key, value := range test.args {
			args[key] = value
		}

		test.f.answer(test.f.call(test.tool, args), source.KindRefused, source.CodeRejected)
	}
	for _, f := range []*fixture{plain, prefixed} {
		for _, at := range f.locations("INBOX") {
			if at != "INBOX []" {
				t.Errorf("a message is at %s, want it without keywords", at)
			}
		}
	}
}

func TestStateReads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	raw := mailOf("1@example.com", "hush body")
	at := f.account.Deliver("INBOX", raw, `\Seen`)

	result := f.done(mail.ToolState, object{"account": "work", "message": ref(at, "1@example.com", raw)})

	if got := stateOf(result, "state"); got != `INBOX [\Seen]` {
		t.Errorf("state = %s", got)
	}
	f.answer(f.call(mail.ToolState, object{"account": "play", "message": ref(at, "1@example.com", raw)}), source.KindRefused, source.CodeNotFound)
}

// TestStateWithTheArgumentsOfAReversal looks at a message that was archived and
// labelled, in the states in which its owner may leave it, and restores it then:
// the answers are those of the restore.
func TestStateWithTheArgumentsOfAReversal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, test := range map[string]struct {
		flags          []string
		again          bool // it is restored before
		want, restores string
	}{
		"untouched":            {nil, false, "possible ", ""},
		"flagged by its owner": {[]string{`\Flagged`}, false, "refused set of flags", source.CodeChanged},
		"restored":             {nil, true, "done ", source.CodeConflict},
	} {
		raw := mailOf(strings.ReplaceAll(name, " ", "-")+"@example.com", "hush body")
		at := f.account.Deliver("INBOX", raw)
		of := ref(at, strings.ReplaceAll(name, " ", "-")+"@example.com", raw)
		did := f.done(mail.ToolArchive, object{"account": "work", "message": of})
		args := object{"account": "work", "message": of, "before": did["before"], "after": did["after"]}
		if len(test.flags) > 0 {
			f.done(mail.ToolFlag, object{"account": "work", "message": of, "flags": object{"add": test.flags}})
		}
		if test.again {
			f.done(mail.ToolRestore, args)
		}

		looked := f.done(mail.ToolState, args)

		differs, _ := looked["differs"].(string)
		if got := fmt.Sprint(looked["reversal"], " ", differs); got != test.want {
			t.Errorf("%s: the reversal is %s, want %s", name, got, test.want)
		}
		if restored := f.call(mail.ToolRestore, args); restored.Code != test.restores {
			t.Errorf("%s: a restore has the code %q, want %q", name, restored.Code, test.restores)
		}
	}
}

func TestToolsDeclareReversals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tools, err := f.source.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]source.Tool)
	for _, tool := range tools {
		names[tool.Name] = tool
	}

	for name, want := range map[string]string{
		mail.ToolLabel: mail.ToolRestore, mail.ToolFlag: mail.ToolRestore, mail.ToolArchive: mail.ToolRestore, mail.ToolMove: mail.ToolRestore,
		mail.ToolTrash: mail.ToolRestore, mail.ToolSnooze: mail.ToolRestore, mail.ToolReturn: "", mail.ToolUnsubscribe: "", mail.ToolSend: "", mail.ToolSent: "", mail.ToolRSVP: "", mail.ToolAway: "", mail.ToolBrief: "",
		mail.ToolDraft: mail.ToolDraftDelete, mail.ToolRestore: "", mail.ToolDraftDelete: "", mail.ToolState: "",
	} {
		got := ""
		if r := names[name].Reversal; r != nil {
			got = r.Tool
		}
		if got != want {
			t.Errorf("%s is reverted by %q, want %q", name, got, want)
		}
		if read := name == mail.ToolState || name == mail.ToolSent; names[name].Hints.ReadOnly != read || (names[name].Effect == envelope.EffectRead) != read || *names[name].Hints.Destructive {
			t.Errorf("%s has the hints %+v and the effect class %s", name, names[name].Hints, names[name].Effect)
		}
	}
	if len(names) != 17 {
		t.Errorf("List() has %d tools, want 17", len(names))
	}
}
