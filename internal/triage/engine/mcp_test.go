package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/engine"
	"github.com/countersign-dev/countersign/internal/triage/mcpmailtest"
)

// behindMCP returns a fixture whose account is behind an MCP server.
func behindMCP(t testing.TB, kind mcpmailtest.Kind) (*fixture, *mcpmailtest.Server) {
	t.Helper()
	f, s := newFixture(t), mcpmailtest.New(t, kind)
	f.exec("DELETE FROM triage_accounts") // of the Maildir
	f.put("work", func(a *account.Account) {
		a.Kind, a.Every = account.MCP, time.Hour
		a.Connection = account.Connection{URL: s.URL, TrustedHost: "mx.example.net"}
	})
	f.open = func(_ context.Context, a account.Account) (mailbox.Reader, error) {
		return a.Open(account.Access{Networks: safehttp.Loopback(), Quota: quota.New(quota.Provider{})})
	}
	// A sender with a history, to whom the owner wrote.
	f.exec(`INSERT INTO triage_senders (tenant_id, account_id, address, first_seen, last_seen, received, sent)
		SELECT tenant_id, account_id, 'news@garden-weekly.example', now() - interval '1 year', now(), 70, 7 FROM triage_accounts`)
	return f, s
}

// TestMailBehindAnMCPServer reads mail from before and after the first run,
// decides, proposes, and has a source of kind mail carry out the proposals in
// the same mailbox, where it finds messages by the digest of the original.
func TestMailBehindAnMCPServer(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]mcpmailtest.Kind{"with cursors": {}, "by time": {NoChanges: true}, "by time, without times": {NoChanges: true, NoTimes: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := behindMCP(t, kind)
			memory := mailboxtest.NewMemory(func(raw []byte) []byte { id := message.Identify(raw); return id[:] })
			deliver := func(id string) {
				raw := []byte(askingNewsletter(id).raw())
				s.Deliver("INBOX", raw)
				memory.Deliver("INBOX", bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n")))
			}
			deliver("before@x")
			f.once()
			deliver("after@x")
			s.Deliver("INBOX", []byte(askingNewsletter("after@x").raw())) // a copy, which is decided once
			f.once()
			f.once()

			if n := one[int](f, "SELECT count(1) FROM triage_decisions WHERE NOT decision::text LIKE '%\"rule\": \"built\"%'"); n != 2 {
				t.Fatalf("%d decisions, want 2", n)
			}
			if n := one[int](f, "SELECT count(1) FROM triage_locations"); n != 3 {
				t.Errorf("%d locations, want 3", n)
			}
			for _, tool := range s.Calls() {
				if tool == mcpmailtest.Delete {
					t.Error("a tool that writes was called")
				}
			}
			acted(t, f, memory)
		})
	}
}

// askingNewsletter returns a newsletter with a question, which is labelled and
// not moved.
func askingNewsletter(id string) testMail {
	m := newsletter(id)
	m.body += " Which of them do you grow?"
	return m
}

// acted has a source of kind mail apply the proposed labels.
func acted(t *testing.T, f *fixture, memory *mailboxtest.Memory) {
	t.Helper()
	actor, err := mail.New(mail.Config{Name: "mail", Accounts: map[string]mail.Account{"work": {Open: memory.Open, LabelPrefix: "Countersign_"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer actor.Close()
	proposed := one[[]string](f, "SELECT coalesce(array_agg(p.envelope::text), '{}') FROM triage_proposals p WHERE p.action = 'label' AND p.proposal_id IS NOT NULL")
	if len(proposed) != 2 {
		t.Fatalf("%d labels are proposed, want 2", len(proposed))
	}
	for i, text := range proposed {
		var e struct {
			Tool struct{ Source, Name string }
			Args json.RawMessage
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Tool.Source != "mail" {
			t.Fatalf("envelope %s: %v, want one for the source mail", text, err)
		}
		out := actor.Execute(t.Context(), source.Call{Key: fmt.Sprint(i), Tool: e.Tool.Name, Args: e.Args, Effect: envelope.EffectIdempotent, Attempt: 1})
		if out.Kind != source.KindDone {
			t.Errorf("%s: %+v", e.Tool.Name, out)
		}
	}
	for _, state := range memory.Messages("INBOX") {
		if len(state.Flags) != 1 {
			t.Errorf("a message has the flags %v, want its label", state.Flags)
		}
	}
}

// TestMailWithoutOriginals checks that such mail is classified at no level
// above L2, and nothing is proposed for it.
func TestMailWithoutOriginals(t *testing.T) {
	t.Parallel()
	f, s := behindMCP(t, mcpmailtest.Kind{NoChanges: true, Built: true})
	s.Deliver("INBOX", []byte(newsletter("one@x").raw()))

	f.once()

	if n := one[int](f, "SELECT count(1) FROM proposals"); n != 0 {
		t.Errorf("%d proposals", n)
	}
	if !one[bool](f, `SELECT coalesce(level = 2 AND cohort = 'newsletters' AND decision::text LIKE '%"built"%' AND skipped::text LIKE '%original%'
		AND notes ->> 'warnings' LIKE '%put together%' AND signals #>> '{authentication,DMARC}' = 'unknown', false) FROM triage_decisions`) {
		t.Errorf("the decision is %s", one[string](f, "SELECT to_jsonb(d)::text FROM triage_decisions d"))
	}
}

// TestTextOfAnMCPServerIsNeverStored has the server fail with a canary word in
// every answer, and searches the schedule, the runs and the log for it.
func TestTextOfAnMCPServerIsNeverStored(t *testing.T) {
	t.Parallel()
	f, s := behindMCP(t, mcpmailtest.Kind{})
	s.Deliver("INBOX", []byte(newsletter("one@x").raw()))
	var log bytes.Buffer
	for _, tool := range []string{mcpmailtest.Folders, mcpmailtest.List, mcpmailtest.Changes, mcpmailtest.Read} {
		s.Answers(func(called string, _, answer map[string]any) {
			if called == tool {
				answer["fail"] = "the canary sings"
			}
		})
		handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})
		err := f.engine(func(c *engine.Config) { c.Log = slog.New(handler) }).Once(t.Context())
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("Once while %s fails: %v, want an error without words of the server", tool, err)
		}
	}
	stored := one[string](f, "SELECT coalesce(string_agg(to_jsonb(s)::text, ''), '') || coalesce((SELECT string_agg(to_jsonb(r)::text, '') FROM triage_runs r), '') FROM triage_schedules s")
	if strings.Contains(stored+log.String(), "canary") || !strings.Contains(stored, "the tool failed") {
		t.Errorf("stored is %s, logged %s", stored, &log)
	}
}
