package worker_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/maildir"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// aMail is a message with a body that nothing but the mailbox may hold.
const aMail = "From: bob@example.com\nTo: ada@example.org\nSubject: hush subject\nMessage-ID: <1@example.com>\nDate: Mon, 02 Nov 2026 10:00:00 +0000\n\nhush body\n"

// firstKey is the key of the message in the INBOX.
const firstKey = "1762077600.M1P1.example"

// mailFixture is a fixture with a source of one Maildir, and a worker.
type mailFixture struct {
	*fixture
	dir  string
	mail *connection.Pool
}

func newMailFixture(t *testing.T) *mailFixture {
	t.Helper()
	f := &mailFixture{fixture: newFixture(t), dir: t.TempDir()}
	for _, folder := range []string{"", ".Archive", ".Drafts", ".Trash", ".Snoozed"} {
		for _, part := range []string{"cur", "new", "tmp"} {
			if err := os.MkdirAll(filepath.Join(f.dir, folder, part), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	file := filepath.Join(f.dir, "cur", firstKey+":2,S")
	if err := os.WriteFile(file, []byte(aMail), 0o600); err != nil {
		t.Fatal(err)
	}
	received := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
	if err := os.Chtimes(file, received, received); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"accounts": map[string]any{"home": map[string]any{"kind": "maildir", "path": f.dir, "from": "ada@example.org"}}})
	if err != nil {
		t.Fatal(err)
	}
	f.configure(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutSource(ctx, tx, f.tenant, catalog.Source{ID: "mailbox", Kind: catalog.KindMail, Enabled: true, Config: config})
	})
	f.mail = connection.NewPool(connection.Config{Maildir: mail.Below([]string{filepath.Dir(f.dir)})})
	t.Cleanup(f.mail.Close)
	if err := connection.NewRefresher(f.db, settings.NewCache(), f.mail, slog.New(slog.DiscardHandler)).Refresh(t.Context(), f.tenant, "mailbox"); err != nil {
		t.Fatal(err)
	}
	return f
}

// stored is a message as its owner sees it. Its name does not count.
type stored struct {
	Folder   string
	Flags    []string
	Received time.Time
	Digest   [32]byte
}

// stored returns every message of the Maildir.
func (f *mailFixture) stored() (all []stored) {
	f.t.Helper()
	r, err := maildir.NewReader(f.dir, maildir.Config{})
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // only reads
	folders, err := r.Folders(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, folder := range folders {
		changes, err := r.Changes(f.t.Context(), folder.Name, nil, 100, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		err = r.Read(f.t.Context(), changes.New, func(item mailbox.Item, raw []byte, err error) error {
			all = append(all, stored{item.Folder, item.Flags, item.Received.UTC(), message.Identify(raw)})
			return err
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return all
}

// places returns the folders and flags of messages, in short.
func (f *mailFixture) places() string {
	f.t.Helper()
	var all []string
	for _, m := range f.stored() {
		all = append(all, fmt.Sprint(m.Folder, m.Flags))
	}
	return strings.Join(all, " ")
}

// act proposes a call on the message and has it executed.
func (f *mailFixture) act(tool string, more map[string]any) envelope.ActionID {
	f.t.Helper()
	id := f.propose(tool, more)
	f.work()
	return id
}

func (f *mailFixture) propose(tool string, more map[string]any) envelope.ActionID {
	f.t.Helper()
	digest := message.Identify([]byte(aMail))
	args := map[string]any{"account": "home"}
	if tool != mail.ToolDraft {
		args["message"] = map[string]any{"folder": "INBOX", "key": firstKey, "message_id": "1@example.com", "identity": hex.EncodeToString(digest[:])}
	}
	maps.Copy(args, more)
	raw, err := json.Marshal(args)
	if err != nil {
		f.t.Fatal(err)
	}
	answers, err := f.in.Accept(f.t.Context(), f.by(), []*envelope.Proposal{{
		Type: envelope.TypeExec, Tool: envelope.Tool{Name: tool, Source: "mailbox"}, Args: raw,
	}})
	if err != nil || answers[0].Err != nil {
		f.t.Fatal(err, answers)
	}
	return answers[0].Action
}

func (f *mailFixture) by() intake.Submitter {
	return intake.Submitter{Tenant: f.tenant, Name: "agent", Names: identity.EveryName()}
}

// work runs a worker until nothing is due.
func (f *mailFixture) work() {
	f.t.Helper()
	stop := f.run(worker.NewPipeline(f.db, settings.NewCache(), f.mail, config("w1")))
	f.empty()
	stop()
}

// revert proposes the reversal of an action and executes it.
func (f *mailFixture) revert(id envelope.ActionID) envelope.ActionID {
	f.t.Helper()
	answers, err := reversal.New(f.db, settings.NewCache(), f.in).Revert(f.t.Context(), reversal.Request{
		By: f.by(), Actions: []envelope.ActionID{id}, Sees: func(string) bool { return true },
	})
	if err != nil || answers[0].Err != nil {
		f.t.Fatal(err, answers)
	}
	f.work()
	return answers[0].Action
}

// TestMailIsChangedAndReverted labels and archives a message by envelopes, and
// reverts both, newest first. Folder, flags, keywords, the time of arrival and
// the content are then as before.
func TestMailIsChangedAndReverted(t *testing.T) {
	t.Parallel()
	f := newMailFixture(t)
	before := f.stored()

	label := f.act(mail.ToolLabel, map[string]any{"labels": map[string]any{"add": []string{"receipts"}}})
	archive := f.act(mail.ToolArchive, nil)
	archived := f.places()
	for _, id := range []envelope.ActionID{archive, label} {
		if v := f.view(f.revert(id)); v.Phase != envelope.PhaseCompleted {
			t.Errorf("the reversal is %s: %v", v.Phase, f.history(v.Envelope.ActionID))
		}
	}

	if archived != `Archive[\Seen receipts]` {
		t.Errorf("labelled and archived = %s", archived)
	}
	var result struct{ Before, After mailbox.State }
	if err := json.Unmarshal(f.view(archive).Envelope.Result.Output, &result); err != nil || result.Before.Folder != "INBOX" || result.After.Folder != "Archive" {
		t.Errorf("the archive's result is %s, %v", f.view(archive).Envelope.Result.Output, err)
	}
	if diff := cmp.Diff(before, f.stored()); diff != "" {
		t.Errorf("reverted (-want +got):\n%s", diff)
	}
	if n := one[int](f.fixture, "SELECT count(*)::integer FROM tool_executions WHERE to_jsonb(tool_executions)::text LIKE '%hush%'"); n > 0 {
		t.Errorf("%d attempts hold what the mail says", n)
	}
}

func TestMailThatItsOwnerTouchedIsNotReverted(t *testing.T) {
	t.Parallel()
	f := newMailFixture(t)
	archive := f.act(mail.ToolArchive, nil)
	files, err := filepath.Glob(filepath.Join(f.dir, ".Archive", "cur", "*:2,S"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Rename(files[0], files[0][:len(files[0])-1]+"FS"); err != nil { // starred
		t.Fatal(err)
	}

	id := f.revert(archive)

	if got, want := f.places(), `Archive[\Flagged \Seen]`; got != want {
		t.Errorf("the message is %s, want %s", got, want)
	}
	if v := f.view(id); v.Phase != envelope.PhaseFailed {
		t.Errorf("the reversal is %s, want failed", v.Phase)
	}
	var said []string
	f.configure(func(ctx context.Context, tx pgx.Tx) error {
		rows, err := outbox.Attempts(ctx, tx, f.tenant, id)
		for _, r := range rows {
			said = append(said, r.Code+": "+r.Message)
		}
		return err
	})
	if len(said) != 1 || !strings.HasPrefix(said[0], "changed_since: mailbox: someone has changed the message since") {
		t.Errorf("the attempts say %q, want the reason", said)
	}
}

// losesOne is a source whose first response is lost: immediately, or when
// released.
type losesOne struct {
	source.Source
	called, release chan struct{}
	lost            atomic.Bool
}

// Execute implements source.Source.
func (l *losesOne) Execute(ctx context.Context, call source.Call) source.Outcome {
	out := l.Source.Execute(ctx, call)
	if l.lost.Swap(true) {
		return out
	}
	close(l.called)
	<-l.release
	return source.Observation{Written: true, Code: source.CodeLost}.Outcome("mailbox", call.Effect)
}

// losing returns a pool whose mail source loses its first response.
func (f *mailFixture) losing() (pool *connection.Pool, called, release chan struct{}) {
	called, release = make(chan struct{}), make(chan struct{})
	identify := func(raw []byte) []byte {
		digest := message.Identify(raw)
		return digest[:]
	}
	open := func(context.Context) (mailbox.Writer, error) {
		return maildir.NewWriter(f.dir, identify, maildir.Config{})
	}
	pool = connection.NewPool(connection.Config{Open: func(envelope.TenantID, catalog.Source) (source.Source, error) {
		src, err := mail.New(mail.Config{Name: "mailbox", Accounts: map[string]mail.Account{"home": {Open: open}}})
		return &losesOne{Source: src, called: called, release: release}, err
	}})
	f.t.Cleanup(pool.Close)
	return pool, called, release
}

// TestMailWhoseAnswerIsLost archives a message with an answer that is lost. The
// next attempt finds the message archived, takes that for the call's own effect,
// and the action can be reverted.
func TestMailWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	f := newMailFixture(t)
	before := f.stored()
	lost, _, release := f.losing()
	close(release)
	f.mail = lost

	id := f.act(mail.ToolArchive, nil)
	archived := f.places()
	f.revert(id)

	if got, want := f.history(id), []string{"1 pending lost", "2 sent"}; !slices.Equal(got, want) || archived != `Archive[\Seen]` {
		t.Errorf("attempts = %q, want %q; the message is %s", got, want, archived)
	}
	if diff := cmp.Diff(before, f.stored()); diff != "" {
		t.Errorf("reverted (-want +got):\n%s", diff)
	}
}

// TestMailWhoseWorkerIsGone has a worker archive a message and get no further. Its
// lease runs out, and another worker finds the message archived.
func TestMailWhoseWorkerIsGone(t *testing.T) {
	t.Parallel()
	f := newMailFixture(t)
	before := f.stored()
	pool, called, release := f.losing()
	id := f.propose(mail.ToolArchive, nil)
	stop := f.run(worker.NewPipeline(f.db, settings.NewCache(), pool, config("gone")))
	<-called
	archived := f.places()

	f.exec("UPDATE outbox SET lease_until = now() - interval '1 second'")
	f.work()
	close(release)
	stop()
	f.revert(id)

	if v := f.view(id); v.Phase != envelope.PhaseCompleted || v.Envelope.Result.Status != envelope.StatusSent || archived != `Archive[\Seen]` {
		t.Errorf("the action is %s, %s; the message was %s", v.Phase, v.Envelope.Result.Status, archived)
	}
	if diff := cmp.Diff(before, f.stored()); diff != "" {
		t.Errorf("reverted (-want +got):\n%s", diff)
	}
}

func TestADraftIsReverted(t *testing.T) {
	t.Parallel()
	f := newMailFixture(t)

	draft := f.act(mail.ToolDraft, map[string]any{"to": []string{"bob@example.com"}, "subject": "Re: it", "text": "Hello"})
	stored := f.places()
	f.revert(draft)

	if want := `INBOX[\Seen] Drafts[\Draft \Seen]`; stored != want {
		t.Errorf("the mailbox holds %s, want %s", stored, want)
	}
	if got, want := f.places(), `INBOX[\Seen] Trash[\Draft \Seen]`; got != want {
		t.Errorf("reverted, the mailbox holds %s, want %s", got, want)
	}
}
