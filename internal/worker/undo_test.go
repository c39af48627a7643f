package worker_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/mail/imap"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/mail/maildir"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker"
)

// triageFixture is a fixture with a mail source, a mail account "home" of triage
// that names mara, and a review rule that wants two people.
type triageFixture struct {
	*fixture
	account, mara uuid.UUID
}

func newTriageFixture(f *fixture) *triageFixture {
	f.t.Helper()
	t := &triageFixture{fixture: f, account: uuid.Must(uuid.NewV7()), mara: uuid.Must(uuid.NewV7())}
	t.exec("INSERT INTO operators (tenant_id, operator_id, name, role_set) VALUES ($1, $2, 'Mara', 'operator')", t.tenant.String(), t.mara)
	t.exec("INSERT INTO triage_accounts (tenant_id, account_id, name, kind, operator_id) VALUES ($1, $2, 'home', 'imap', $3)", t.tenant.String(), t.account, t.mara)
	t.configure(func(ctx context.Context, tx pgx.Tx) error {
		if err := settings.PutReview(ctx, tx, t.tenant, settings.ReviewRule{Pattern: "mailbox:*", Risk: envelope.RiskLow, Approvals: 2}, "test"); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, t.tenant, reversal.Automation, "*", envelope.ModeRequireApproval, "test")
	})
	return t
}

// message stores a message as triage does.
func (f *triageFixture) message(identity []byte) (id uuid.UUID) {
	f.t.Helper()
	id = uuid.Must(uuid.NewV7())
	f.exec(`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, received_at, size)
		VALUES ($1, $2::uuid, $3, $4, $2::uuid, false, now(), 1)`, f.tenant.String(), id, f.account, identity)
	return id
}

// act has triage propose a call about a message.
func (f *triageFixture) act(message, run uuid.UUID, session, tool string, args map[string]any) envelope.ActionID {
	f.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		f.t.Fatal(err)
	}
	external := "triage:" + strings.Repeat(strings.ReplaceAll(uuid.NewString(), "-", ""), 2)
	by := intake.Submitter{Tenant: f.tenant, Name: "triage", Names: identity.EveryName()}
	answers, err := f.in.Accept(f.t.Context(), by, []*envelope.Proposal{{
		Type: envelope.TypeExec, ExternalID: external, Tool: envelope.Tool{Source: "mailbox", Name: tool}, Args: raw, SessionID: session,
	}})
	if err != nil || answers[0].Err != nil {
		f.t.Fatal(err, answers)
	}
	// As triage stores it, no later than the action, which a worker may have ended by now.
	f.exec(`INSERT INTO triage_proposals (proposed_at, tenant_id, external_id, account_id, message_id, action, parts, fields, envelope, proposal_id, run_id)
		VALUES ((SELECT created_at FROM actions WHERE action_id = $7), $1, $2::text, $3, $4, $5::text, jsonb_build_array(jsonb_build_object('action', $5::text)), '[{"pointer":"/account","value":"home","origin":"config"}]',
			jsonb_build_object('type', 'mcp.exec', 'external_id', $2::text, 'tool', jsonb_build_object('source', 'mailbox', 'name', $6::text), 'args', '{"account":"home"}'::jsonb), $7, $8)`,
		f.tenant.String(), external, f.account, message, strings.TrimPrefix(tool, "message."), tool, answers[0].Action.String(), run)
	return answers[0].Action
}

// request requests an undo as mara.
func (f *triageFixture) request(ids ...envelope.ActionID) []reversal.Undone {
	f.t.Helper()
	by := intake.Submitter{Tenant: f.tenant, Token: f.mara, Person: f.mara, Operator: f.mara, Name: "mara"}
	cache := settings.NewCache()
	answers, err := reversal.New(f.db, cache, f.in).Undo(f.t.Context(), approval.New(f.db, cache, approval.Config{}), reversal.UndoRequest{
		By: by, Decider: approval.Decider{Tenant: f.tenant, Token: f.mara, Person: f.mara, Operator: f.mara, Name: "mara"},
		Sees: func(string) bool { return true }, Actions: ids,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return answers
}

// undo undoes acts as the command does: it requests again those that have to wait.
func (f *triageFixture) undo(ids []envelope.ActionID) {
	f.t.Helper()
	for len(ids) > 0 {
		var waiting []envelope.ActionID
		for _, a := range f.request(ids...) {
			if a.Result == wire.ResultWaiting {
				waiting = append(waiting, a.Reverted)
			}
		}
		f.empty()
		if len(waiting) == len(ids) {
			f.t.Fatalf("%v wait for nothing", waiting)
		}
		ids = waiting
	}
}

// undoneAct is an act of triage in the model of a mailbox.
type undoneAct struct {
	id            envelope.ActionID
	message       int
	before, after mailbox.State
	run           uuid.UUID
	session       string
	undone        bool
}

// modelled is a message in the model.
type modelled struct {
	row      uuid.UUID
	raw      []byte
	state    mailbox.State
	received time.Time
	gone     bool
}

// mailboxModel is a mailbox on Dovecot, and what it must be.
type mailboxModel struct {
	*triageFixture
	rt       *rapid.T
	config   imap.Config // of the owner's program
	messages []*modelled
	acts     []*undoneAct
	later    string // the name of a folder that its owner renames
	cut      *mailboxtest.Cutter
}

func (m *mailboxModel) fail(err error) {
	m.t.Helper()
	if err != nil {
		m.rt.Fatal(err)
	}
}

// key finds a message where the model has it, as its owner's program does.
func (m *mailboxModel) state(i int) mailbox.State {
	m.t.Helper()
	w, err := imap.NewWriter(m.config, identify)
	m.fail(err)
	defer func() { _ = w.Close() }() // it only read
	s, err := w.Find(m.t.Context(), mailbox.Location{Folder: m.messages[i].state.Folder}, mailbox.MessageID(m.messages[i].raw), identify(m.messages[i].raw))
	m.fail(err)
	return s
}

func identify(raw []byte) []byte {
	digest := message.Identify(raw)
	return digest[:]
}

// present draws a message that is not deleted.
func (m *mailboxModel) present() int {
	var all []int
	for i, msg := range m.messages {
		if !msg.gone {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		m.rt.Skip("no message is left")
	}
	return rapid.SampledFrom(all).Draw(m.rt, "message")
}

// triage labels, flags, archives or moves a message.
func (m *mailboxModel) triage() {
	i := m.present()
	msg, now := m.messages[i], m.state(i)
	args := map[string]any{
		"account":  "home",
		"message":  map[string]any{"folder": now.Folder, "key": now.Key, "message_id": mailbox.MessageID(msg.raw), "identity": hex.EncodeToString(identify(msg.raw))},
		"expected": map[string]any{"folder": now.Folder, "flags": mailbox.Flags(now.Flags...)},
	}
	change := mailbox.Change{}
	tool := rapid.SampledFrom([]string{mail.ToolLabel, mail.ToolFlag, mail.ToolArchive, mail.ToolMove}).Draw(m.rt, "tool")
	label := rapid.SampledFrom([]string{"receipts", "lists"}).Draw(m.rt, "label")
	switch tool {
	case mail.ToolLabel:
		change.Add = []string{label}
		args["labels"] = map[string]any{"add": change.Add}
	case mail.ToolFlag:
		change.Add = []string{mailbox.FlagFlagged}
		args["flags"] = map[string]any{"add": change.Add}
	case mail.ToolArchive:
		change.MoveTo, change.Add = "Archive", []string{label}
		args["labels"] = map[string]any{"add": change.Add}
	case mail.ToolMove:
		change.MoveTo = m.later
		args["folder"] = m.later
	}
	a := &undoneAct{message: i, before: msg.state, run: rapid.SampledFrom(triageRuns).Draw(m.rt, "run"), session: rapid.SampledFrom([]string{"one", "two"}).Draw(m.rt, "session")}
	a.after = mailbox.State{Location: mailbox.Location{Folder: msg.state.Folder}, Flags: change.Apply(msg.state.Flags)}
	if change.MoveTo != "" {
		a.after.Folder = change.MoveTo
	}
	m.cutOne()
	a.id = m.act(msg.row, a.run, a.session, tool, args)
	m.empty()
	msg.state = a.after
	if v := m.view(a.id); v.Phase != envelope.PhaseCompleted {
		m.rt.Fatalf("the act is %s: %v", v.Phase, m.history(a.id))
	}
	m.acts = append(m.acts, a)
}

// cutOne has the worker lose the answer to a command now and then.
func (m *mailboxModel) cutOne() {
	if rapid.Bool().Draw(m.rt, "cut") {
		m.cut.Arm()
	}
}

var triageRuns = []uuid.UUID{uuid.MustParse("00000000-0000-7000-8000-000000000001"), uuid.MustParse("00000000-0000-7000-8000-000000000002")}

// flag has the owner set or clear a flag.
func (m *mailboxModel) flag() {
	i := m.present()
	change := mailbox.Change{}
	flag := rapid.SampledFrom([]string{mailbox.FlagFlagged, mailbox.FlagSeen, "receipts", "mine"}).Draw(m.rt, "flag")
	if mailbox.HasFlag(m.messages[i].state.Flags, flag) {
		change.Remove = []string{flag}
	} else {
		change.Add = []string{flag}
	}
	m.change(i, change)
}

// move has the owner move a message.
func (m *mailboxModel) move() {
	i := m.present()
	to := rapid.SampledFrom([]string{"INBOX", "Archive", m.later}).Draw(m.rt, "to")
	if to == m.messages[i].state.Folder {
		m.rt.Skip("it is there")
	}
	m.change(i, mailbox.Change{MoveTo: to})
}

func (m *mailboxModel) change(i int, change mailbox.Change) {
	w, err := imap.NewWriter(m.config, identify)
	m.fail(err)
	defer func() { _ = w.Close() }() // Change has ended
	state, err := w.Change(m.t.Context(), m.state(i), change)
	m.fail(err)
	m.messages[i].state = mailbox.State{Location: mailbox.Location{Folder: state.Folder}, Flags: state.Flags}
}

// client returns a connection of the owner's program.
func (m *mailboxModel) client() *imapclient.Client {
	m.t.Helper()
	c, err := imapclient.DialInsecure(m.config.Address, nil)
	m.fail(err)
	m.fail(c.Login(m.config.Username, dovecottest.Password).Wait())
	return c
}

// expunge has the owner delete a message for good.
func (m *mailboxModel) expunge() {
	i := m.present()
	_, uid, _ := strings.Cut(m.state(i).Key, ":")
	var number goimap.UID
	if _, err := fmt.Sscan(uid, &number); err != nil {
		m.rt.Fatal(err)
	}
	c := m.client()
	defer func() { _ = c.Close() }() // it has expunged
	_, err := c.Select(m.messages[i].state.Folder, nil).Wait()
	m.fail(err)
	m.fail(c.Store(goimap.UIDSetNum(number), &goimap.StoreFlags{Op: goimap.StoreFlagsAdd, Flags: []goimap.Flag{goimap.FlagDeleted}, Silent: true}, nil).Close())
	m.fail(c.Expunge().Close())
	m.messages[i].gone = true
}

// rename has the owner rename a folder with what is in it.
func (m *mailboxModel) rename() {
	to := map[string]string{"Later": "Someday", "Someday": "Later"}[m.later]
	c := m.client()
	defer func() { _ = c.Close() }() // it has renamed
	m.fail(c.Rename(m.later, to, nil).Wait())
	for _, msg := range m.messages {
		if msg.state.Folder == m.later {
			msg.state.Folder = to
		}
	}
	m.later = to
}

// undoOne undoes an act; the others undo a run, a session or a window.
func (m *mailboxModel) undoOne() {
	m.some()
	a := rapid.SampledFrom(m.acts).Draw(m.rt, "act")
	m.undoActs([]envelope.ActionID{a.id}, func(b *undoneAct) bool { return a == b })
}

func (m *mailboxModel) some() {
	if len(m.acts) == 0 {
		m.rt.Skip("triage did nothing")
	}
}

func (m *mailboxModel) undoRun() {
	run := rapid.SampledFrom(triageRuns).Draw(m.rt, "run")
	m.undoFilter(reversal.UndoFilter{Run: run}, func(a *undoneAct) bool { return a.run == run })
}

func (m *mailboxModel) undoSession() {
	session := rapid.SampledFrom([]string{"one", "two"}).Draw(m.rt, "session")
	m.undoFilter(reversal.UndoFilter{Session: session}, func(a *undoneAct) bool { return a.session == session })
}

func (m *mailboxModel) undoWindow() {
	m.some()
	first := rapid.IntRange(0, len(m.acts)-1).Draw(m.rt, "first")
	last := rapid.IntRange(first, len(m.acts)-1).Draw(m.rt, "last")
	at := func(i int) time.Time {
		return one[time.Time](m.fixture, "SELECT finished_at FROM envelopes WHERE action_id = $1", m.acts[i].id.String())
	}
	m.undoFilter(reversal.UndoFilter{Since: at(first), Until: at(last).Add(time.Microsecond)}, func(a *undoneAct) bool {
		i := slices.Index(m.acts, a)
		return first <= i && i <= last
	})
}

func (m *mailboxModel) undoFilter(f reversal.UndoFilter, selected func(*undoneAct) bool) {
	f.Operator, f.Account, f.Limit = m.mara, m.config.Username, 100
	var ids []envelope.ActionID
	m.configure(func(ctx context.Context, tx pgx.Tx) error {
		places, err := reversal.SelectActs(ctx, tx, m.tenant, f)
		for _, p := range places {
			ids = append(ids, p.Action)
		}
		return err
	})
	var want []envelope.ActionID
	for _, a := range slices.Backward(m.acts) {
		if selected(a) {
			want = append(want, a.id)
		}
	}
	if !slices.Equal(ids, want) {
		m.rt.Fatalf("%+v selects %v, want %v", f, ids, want)
	}
	m.undoActs(ids, selected)
}

// undoActs undoes acts, and has the model undo them: the newest first, and each
// only if the message is as the act left it.
func (m *mailboxModel) undoActs(ids []envelope.ActionID, selected func(*undoneAct) bool) {
	m.cutOne()
	m.undo(ids)
	blocked := make(map[int]bool) // messages with a later act that holds
	for _, a := range slices.Backward(m.acts) {
		msg := m.messages[a.message]
		changed := !a.before.Equal(a.after)
		switch {
		case a.undone || !changed:
			continue
		case !selected(a) || blocked[a.message] || msg.gone:
		case msg.state.Equal(a.before):
			a.undone = true // by its owner
		case msg.state.Equal(a.after) && slices.Contains([]string{"INBOX", "Archive", m.later}, a.before.Folder):
			msg.state, a.undone = a.before, true
		}
		blocked[a.message] = blocked[a.message] || !a.undone
	}
	for i, a := range m.acts {
		by := m.view(a.id).RevertedBy
		if undone := by != nil && by.Phase == envelope.PhaseCompleted; undone != a.undone {
			m.rt.Fatalf("act %d, from %v to %v, is undone: %t, want %t", i, a.before, a.after, undone, a.undone)
		}
	}
}

// check compares the mailbox with the model.
func (m *mailboxModel) check(rt *rapid.T) {
	m.rt = rt
	r, err := imap.NewReader(m.config)
	m.fail(err)
	defer func() { _ = r.Close() }() // it only read
	var got, want []string
	line := func(i int, folder string, flags []string, received time.Time) string {
		return fmt.Sprintf("%d %s %v %s", i, strings.ReplaceAll(folder, m.later, "Later"), mailbox.Flags(flags...), received.UTC().Format(time.RFC3339))
	}
	for _, folder := range []string{"INBOX", "Archive", m.later} {
		changes, err := r.Changes(m.t.Context(), folder, nil, 100, nil)
		m.fail(err)
		m.fail(r.Read(m.t.Context(), changes.New, func(item mailbox.Item, raw []byte, err error) error {
			i := slices.IndexFunc(m.messages, func(msg *modelled) bool { return string(identify(msg.raw)) == string(identify(raw)) })
			got = append(got, line(i, item.Folder, item.Flags, item.Received))
			if i >= 0 && m.messages[i].received.IsZero() {
				m.messages[i].received = item.Received
			}
			return err
		}))
	}
	for i, msg := range m.messages {
		if !msg.gone {
			want = append(want, line(i, msg.state.Folder, msg.state.Flags, msg.received))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		rt.Fatalf("the mailbox (-model +Dovecot):\n%s", diff)
	}
	if n := one[int](m.fixture, "SELECT count(1)::int FROM (SELECT split_part(external_id, ':', 2) FROM actions WHERE external_id LIKE 'revert:%' GROUP BY 1 HAVING count(1) > 1) x"); n > 0 {
		rt.Fatalf("%d acts have several reversals", n)
	}
}

// TestRandomUndosOfTriage has triage, its undos and the owner's program change a
// mailbox on Dovecot in a random order, with connections that are cut, and compares
// it with a model after each step.
func TestRandomUndosOfTriage(t *testing.T) {
	t.Parallel()
	server := dovecottest.New(t)
	f := newTriageFixture(newFixture(t))
	f.listMail()
	few(t, "rapid.checks", "8")
	few(t, "rapid.steps", "20")
	users := 0
	rapid.Check(t, func(rt *rapid.T) {
		users++
		own := *f
		own.account = uuid.Must(uuid.NewV7())
		m := &mailboxModel{triageFixture: &own, rt: rt, later: "Later"}
		m.config = mailConfig(server.Address, fmt.Sprint("user", users))
		m.exec("INSERT INTO triage_accounts (tenant_id, account_id, name, kind, operator_id) VALUES ($1, $2, $3, 'imap', $4)", m.tenant.String(), m.account, m.config.Username, m.mara)
		for i := range 3 {
			raw := fmt.Appendf(nil, "From: bob@example.com\r\nTo: ada@example.org\r\nSubject: s\r\nMessage-ID: <%d.%d@example.com>\r\n\r\nbody %d of %d\r\n", i, users, i, users)
			m.fail(server.Deliver(m.config.Username, "INBOX", raw))
			m.messages = append(m.messages, &modelled{row: m.message(identify(raw)), raw: raw, state: mailbox.State{Location: mailbox.Location{Folder: "INBOX"}, Flags: []string{}}})
		}
		c := m.client()
		m.fail(c.Create("Later", nil).Wait())
		_ = c.Close() // it has created
		stop := m.serve()
		defer stop()
		rt.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"triage": m.step(m.triage), "triage again": m.step(m.triage),
			"flag": m.step(m.flag), "move": m.step(m.move), "expunge": m.step(m.expunge), "rename": m.step(m.rename),
			"undo": m.step(m.undoOne), "undo a run": m.step(m.undoRun), "undo a session": m.step(m.undoSession), "undo a window": m.step(m.undoWindow),
		})
	})
}

// few sets a flag of rapid, unless it is given: each step takes a mailbox and a
// database.
func few(t *testing.T, name, value string) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	was := flag.Lookup(name).Value.String()
	if err := flag.Lookup(name).Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Lookup(name).Value.Set(was) }) // it was valid
}

func (m *mailboxModel) step(do func()) func(*rapid.T) {
	return func(rt *rapid.T) {
		m.rt = rt
		do()
		m.cut.Disarm()
	}
}

func mailConfig(address, user string) imap.Config {
	return imap.Config{
		Address: address, Security: imap.Plain, Username: user, Networks: safehttp.Loopback(), Quota: quota.New(quota.Provider{}), Attempts: 1,
		Secret: func(context.Context) (string, error) { return dovecottest.Password, nil },
	}
}

// listMail makes the source of mail.
func (f *triageFixture) listMail() {
	f.t.Helper()
	src, err := mail.New(mail.Config{Name: "mailbox", Accounts: map[string]mail.Account{"home": {}}})
	if err != nil {
		f.t.Fatal(err)
	}
	tools, err := src.List(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.configure(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, f.tenant, catalog.Source{ID: "mailbox", Kind: catalog.KindMail, Enabled: true, Config: json.RawMessage(`{"accounts":{"home":{"kind":"maildir","path":"/nowhere"}}}`)}); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, f.tenant, "mailbox", tools)
	})
}

// serve runs a worker whose source reaches the mailbox through a proxy.
func (m *mailboxModel) serve() (stop func()) {
	m.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	m.fail(err)
	m.cut = &mailboxtest.Cutter{To: m.config.Address, Commands: []string{" MOVE ", " STORE "}}
	var running sync.WaitGroup
	running.Go(func() { m.cut.Serve(listener) })
	through := m.config
	through.Address = listener.Addr().String()
	open := func(context.Context) (mailbox.Writer, error) { return imap.NewWriter(through, identify) }
	pool := connection.NewPool(connection.Config{Open: func(envelope.TenantID, catalog.Source) (source.Source, error) {
		return mail.New(mail.Config{Name: "mailbox", Accounts: map[string]mail.Account{"home": {Open: open}}})
	}})
	end := m.run(worker.NewPipeline(m.db, settings.NewCache(), pool, config("w1")))
	return func() {
		end()
		pool.Close()
		_ = listener.Close() // it accepts no more
		running.Wait()
	}
}

// maildirUndo is a fixture of a Maildir with a message that triage archived.
func maildirUndo(t *testing.T) (f *mailFixture, triage *triageFixture, act envelope.ActionID, before []stored) {
	f = newMailFixture(t)
	triage = newTriageFixture(f.fixture)
	before = f.stored()
	act = triage.act(triage.message(identify([]byte(aMail))), triageRuns[0], "one", mail.ToolArchive, map[string]any{
		"account": "home", "message": map[string]any{"folder": "INBOX", "key": firstKey, "message_id": "1@example.com", "identity": hex.EncodeToString(identify([]byte(aMail)))},
	})
	f.work()
	return f, triage, act, before
}

// TestUndoWhoseWorkerIsKilled has a worker restore a message and get no further.
// The undo is requested again, and another worker ends it.
func TestUndoWhoseWorkerIsKilled(t *testing.T) {
	t.Parallel()
	f, triage, act, before := maildirUndo(t)
	pool, called, release := f.losing()
	first := triage.request(act)[0]
	stop := f.run(worker.NewPipeline(f.db, settings.NewCache(), pool, config("gone")))
	<-called
	during := triage.request(act)[0]
	f.exec("UPDATE outbox SET lease_until = now() - interval '1 second'")
	f.work()
	close(release)
	stop()
	after := triage.request(act)[0]

	if first.Result != wire.ResultAccepted || during.Result != wire.ResultKnown || after.Result != wire.ResultKnown || after.Phase != envelope.PhaseCompleted ||
		during.Action != first.Action || after.Action != first.Action {
		t.Errorf("undo = %s, then %s, then %s %s of one reversal", first.Result, during.Result, after.Result, after.Phase)
	}
	if diff := cmp.Diff(before, f.stored()); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
}

// unreachable is a source that executes calls while lose is set, and loses their
// answers.
type unreachable struct {
	source.Source
	lose *atomic.Bool
}

// Execute implements source.Source.
func (u *unreachable) Execute(ctx context.Context, call source.Call) source.Outcome {
	out := u.Source.Execute(ctx, call)
	if u.lose.Load() {
		return source.Observation{Written: true, Code: source.CodeLost}.Outcome("mailbox", call.Effect)
	}
	return out
}

// TestUndoAfterAllAttemptsIsRepeated loses the answers to all attempts of an undo,
// which then has an unknown outcome, and repeats it: also half of it may be done.
func TestUndoAfterAllAttemptsIsRepeated(t *testing.T) {
	t.Parallel()
	for name, half := range map[string]bool{"all of it was done": false, "half of it was done": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, triage, act, before := maildirUndo(t)
			files, err := filepath.Glob(filepath.Join(f.dir, ".Archive", "cur", "*"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			label := triage.act(triage.message([]byte(strings.Repeat("x", 32))), triageRuns[0], "one", mail.ToolMove, map[string]any{
				"account": "home", "folder": "Trash", "labels": map[string]any{"add": []string{"old"}},
				"message": map[string]any{"folder": "Archive", "key": strings.Split(filepath.Base(files[0]), ":")[0], "message_id": "1@example.com", "identity": hex.EncodeToString(identify([]byte(aMail)))},
			})
			f.work()
			moved := f.places()
			var lose atomic.Bool
			lose.Store(true)
			plain := f.mail
			f.mail = connection.NewPool(connection.Config{Open: func(_ envelope.TenantID, of catalog.Source) (source.Source, error) {
				src, err := mail.New(mail.Config{Name: "mailbox", Accounts: map[string]mail.Account{"home": {Open: func(context.Context) (mailbox.Writer, error) {
					return maildir.NewWriter(f.dir, identify, maildir.Config{})
				}}}})
				return &unreachable{src, &lose}, err
			}})
			t.Cleanup(f.mail.Close)
			unknown := triage.request(label)[0]
			f.work()
			if half { // the flags are restored, and the message is not moved back
				files, err := filepath.Glob(filepath.Join(f.dir, ".Archive", "cur", "*"))
				if err != nil || len(files) != 1 {
					t.Fatal(files, err)
				}
				f.move(files[0], ".Trash")
			}
			phase := f.view(unknown.Action).Phase
			f.mail = plain

			again := triage.request(label)[0]
			f.work()

			if moved != `Trash[\Seen old]` || phase != envelope.PhaseUnknown || again.Result != wire.ResultAccepted || again.Action != unknown.Action {
				t.Errorf("triage made %s; the reversal was %s, and again %s", moved, phase, again.Result)
			}
			if v := f.view(unknown.Action); v.Phase != envelope.PhaseCompleted {
				t.Errorf("the repeated reversal is %s: %v", v.Phase, f.history(unknown.Action))
			}
			triage.request(act)
			f.work()
			if diff := cmp.Diff(before, f.stored()); diff != "" {
				t.Errorf("undone (-want +got):\n%s", diff)
			}
		})
	}
}

// move moves the file of a message into a folder of the Maildir.
func (f *mailFixture) move(path, folder string) {
	f.t.Helper()
	if err := os.Rename(path, filepath.Join(f.dir, folder, "cur", filepath.Base(path))); err != nil {
		f.t.Fatal(err)
	}
}
