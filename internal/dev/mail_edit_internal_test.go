package dev

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// TestEditsOfMailOverTheAPI has a person edit proposals of every tool of mailboxes,
// approve them over the API, and find the edited effect in the mailbox. An edit that
// would concern another message is refused, and changes nothing.
func TestEditsOfMailOverTheAPI(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	e, err := Open(ctx, Config{DatabaseURL: dbtest.URL(t), Dir: t.TempDir(), Listen: "127.0.0.1:0", Notes: sourcetest.Program(t, "examples/notes-mcp")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(e.mailDir(), "edits")
	for _, folder := range []string{"", ".Archive", ".Drafts", ".Trash", ".Snoozed", ".Sent"} {
		for _, part := range []string{"cur", "new", "tmp"} {
			if err := os.MkdirAll(filepath.Join(dir, folder, part), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	const raw = "From: bob@example.com\nTo: ada@example.org\nSubject: Lunch\nMessage-ID: <1@example.com>\nDate: Mon, 02 Nov 2026 10:00:00 +0000\n\nToday?\n"
	if err := os.WriteFile(filepath.Join(dir, "cur", "1.M1P1.example:2,"), []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	operator, agent, admin := clientOf(t, e, e.Tokens().Operator), clientOf(t, e, e.Tokens().Agent), clientOf(t, e, e.Tokens().Admin)
	config, err := json.Marshal(object{"accounts": object{"ada": object{"kind": "maildir", "path": dir, "from": "ada@example.org"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.PutSource(ctx, "box", wire.SourceInput{Kind: catalog.KindMail, Config: config}); err != nil {
		t.Fatal(err)
	}
	if err := connection.NewRefresher(e.pool, e.cache, e.live, e.cfg.Log).Refresh(ctx, e.demo.id, "box"); err != nil {
		t.Fatal(err)
	}
	digest := message.Identify([]byte(raw))
	identity := hex.EncodeToString(digest[:])
	about := func(more object) object {
		args := object{"account": "ada", "message": object{"folder": "INBOX", "key": "1.M1P1.example", "message_id": "1@example.com", "identity": identity}}
		for name, value := range more {
			args[name] = value
		}
		return args
	}
	mail := object{"account": "ada", "to": []string{"bob@example.com"}, "subject": "Re: Lunch", "in_reply_to": "1@example.com", "text": "Yes"}
	propose := func(tool string, args object) wire.Action {
		t.Helper()
		body, err := json.Marshal(object{"type": "mcp.exec", "approval": "required", "external_id": tool, "tool": object{"source": "box", "name": tool}, "args": args})
		if err != nil {
			t.Fatal(err)
		}
		made, err := agent.Submit(ctx, body, 0)
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		a, err := operator.Action(ctx, made.Action.Envelope.ActionID)
		if err != nil || a.Phase != envelope.PhasePending {
			t.Fatalf("%s: %s, %v", tool, a.Phase, err)
		}
		return a
	}
	later, latest := time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339), time.Now().Add(72*time.Hour).UTC().Format(time.RFC3339)

	for _, test := range []struct {
		tool     string
		args     object
		refused  map[string]object // by the pointer that the error names
		accepted object            // nil for a tool with nothing to edit
	}{
		{"message.snooze", about(object{"until": later}), map[string]object{
			"/args/message/identity": {"until": later, "account": "ada", "message": object{"folder": "INBOX", "key": "1.M1P1.example", "message_id": "1@example.com", "identity": strings.Repeat("0", 64)}},
			"/args/until":            about(object{"until": "tomorrow"}),
			"/args/account":          {"until": later, "account": "bob", "message": about(nil)["message"]},
		}, about(object{"until": latest})},
		{"message.draft", mail, map[string]object{
			"/args/account": with(mail, "account", "bob"), "/args/in_reply_to": with(mail, "in_reply_to", "2@example.com"),
			"/args/subject": with(mail, "subject", "Re: Lunch\nBcc: eve@example.org"), "/args/to/0": with(mail, "to", []string{"not an address"}),
		}, with(with(mail, "text", "No, sorry"), "to", []string{"eve@example.org"})},
		{"message.send", mail, map[string]object{
			"/args/account": with(mail, "account", "bob"), "/args/in_reply_to": with(mail, "in_reply_to", "2@example.com"), "/args/bcc": with(mail, "bcc", []string{"eve@example.org"}),
			"/args/subject": with(mail, "subject", "Re: Lunch\nBcc: eve@example.org"),
		}, with(mail, "text", "No")},
		{"message.trash", about(nil), map[string]object{
			"/args/message/key": {"account": "ada", "message": object{"folder": "INBOX", "key": "2", "message_id": "1@example.com", "identity": identity}},
			"/args/folder":      about(object{"folder": "INBOX"}),
		}, nil},
		{"message.unsubscribe", about(nil), map[string]object{
			"/args/message/message_id": {"account": "ada", "message": object{"folder": "INBOX", "key": "1.M1P1.example", "message_id": "2@example.com", "identity": identity}},
			"/args/url":                about(object{"url": "https://evil.example"}),
		}, nil},
		{"message.rsvp", about(object{"answer": "accepted"}), map[string]object{
			"/args/message/folder": {"answer": "accepted", "account": "ada", "message": object{"folder": "Archive", "key": "1.M1P1.example", "message_id": "1@example.com", "identity": identity}},
			"/args/answer":         about(object{"answer": "perhaps"}),
		}, about(object{"answer": "declined"})},
	} {
		before := propose(test.tool, test.args)
		id := before.Envelope.ActionID
		for pointer, args := range test.refused {
			body := jsonOf(t, args)
			_, err := operator.EditAction(ctx, id, wire.Approval{Args: body, ETag: before.Decision.ETag})
			problem, ok := errors.AsType[*client.Problem](err)
			if !ok || problem.Status != 400 || !slices.ContainsFunc(problem.Errors, func(f envelope.FieldError) bool { return f.Pointer == pointer }) {
				t.Errorf("%s: edit of %s = %v, want a refusal", test.tool, pointer, err)
			}
			if _, err := operator.Approve(ctx, id, wire.Approval{Args: body, ETag: before.Decision.ETag}, 0); err == nil {
				t.Errorf("%s: approved with another %s", test.tool, pointer)
			}
		}
		if now, err := operator.Action(ctx, id); err != nil || now.Decision.Edited != nil || now.Decision.ETag != before.Decision.ETag {
			t.Errorf("%s: a refused edit left %+v, %v", test.tool, now.Decision, err)
		}
		if test.accepted == nil {
			continue
		}
		edited, err := operator.EditAction(ctx, id, wire.Approval{Args: jsonOf(t, test.accepted), ETag: before.Decision.ETag})
		if err != nil {
			t.Errorf("%s: an accepted edit: %v", test.tool, err)
			continue
		}
		if edited.Envelope.ActionID != id || edited.Phase != envelope.PhasePending || !sameJSON(t, edited.Envelope.Args, jsonOf(t, test.accepted)) ||
			!sameJSON(t, edited.Decision.Edited.ProposedArgs, jsonOf(t, test.args)) {
			t.Errorf("%s: edited %s, proposed %s", test.tool, edited.Envelope.Args, edited.Decision.Edited.ProposedArgs)
		}
		if test.tool != "message.draft" && test.tool != "message.snooze" {
			continue // their effect needs a server
		}
		done, err := operator.Approve(ctx, id, wire.Approval{ETag: edited.Decision.ETag}, 30*time.Second)
		if err != nil || done.Phase != envelope.PhaseCompleted {
			t.Fatalf("%s: %s, %v", test.tool, done.Phase, err)
		}
	}

	drafts, err := filepath.Glob(filepath.Join(dir, ".Drafts", "*", "*"))
	if err != nil || len(drafts) != 1 {
		t.Fatal(drafts, err)
	}
	if text, err := os.ReadFile(drafts[0]); err != nil || !strings.Contains(string(text), "No, sorry") || !strings.Contains(string(text), "eve@example.org") || strings.Contains(string(text), "bob@") {
		t.Errorf("the draft is %s, %v", text, err)
	}
	if snoozed, err := filepath.Glob(filepath.Join(dir, ".Snoozed", "cur", "*")); err != nil || len(snoozed) != 1 {
		t.Errorf("snoozed: %v, %v", snoozed, err)
	}
	all, err := operator.Actions(ctx, client.ActionFilter{Tool: "box:message.return"})
	if err != nil || len(all.Items) != 1 || all.Items[0].Envelope.Constraints.NotBefore.UTC().Format(time.RFC3339) != latest {
		t.Errorf("the returns are %+v, %v, want one at %s", all.Items, err, latest)
	}
}

type object = map[string]any

// with returns an object with another value.
func with(o object, name string, value any) object {
	other := object{name: value}
	for n, v := range o {
		if n != name {
			other[n] = v
		}
	}
	return other
}

func clientOf(t *testing.T, e *Environment, token string) *client.Client {
	t.Helper()
	c, err := e.Client(token)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func jsonOf(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	x, errX := envelope.Canonical(a)
	y, errY := envelope.Canonical(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
