package reconcile_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// The tools of a fixture's source: two that act, and one that reads.
const (
	toolOnce  = "act.once"
	toolKeyed = "act.keyed"
	toolFind  = "find"
)

// rule uses the tool that reads.
var rule = reconcile.Rule{Tool: toolFind, Args: json.RawMessage(`{"key":"$key","to":"$inputs/to"}`), Happened: "/found"}

// fixture is a tenant with a source, and calls with an unknown outcome.
type fixture struct {
	t      *testing.T
	db     *pgxpool.Pool
	tenant envelope.TenantID
	src    *sourcetest.Source
	cache  *settings.Cache
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	l := &fixture{t: t, db: dbtest.DB(t), tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), cache: settings.NewCache()}
	l.src = sourcetest.NewSource(tools()...)
	l.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, 'fixture')", l.tenant.String())
	l.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, l.tenant, catalog.Source{ID: "fake", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		if err := catalog.PutListing(ctx, tx, l.tenant, "fake", tools()); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, l.tenant, "", "*", envelope.ModeAllow, "test")
	})
	return l
}

func tools() []source.Tool {
	anything := json.RawMessage(`{"type":"object"}`)
	return []source.Tool{
		{Name: toolOnce, InputSchema: anything, Effect: envelope.EffectOnce},
		{Name: toolKeyed, InputSchema: anything, Effect: envelope.EffectKeyed},
		{
			Name: toolFind, Effect: envelope.EffectRead,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"key":{"type":"string"},"to":{"type":"string"}},"required":["key"]}`),
		},
	}
}

func (l *fixture) inTx(fn func(ctx context.Context, tx pgx.Tx) error) {
	l.t.Helper()
	if err := l.try(fn); err != nil {
		l.t.Fatal(err)
	}
}

func (l *fixture) try(fn func(ctx context.Context, tx pgx.Tx) error) error {
	return postgres.InTx(l.t.Context(), l.db, postgres.API(l.tenant), func(tx pgx.Tx) error { return fn(l.t.Context(), tx) })
}

func (l *fixture) exec(sql string, args ...any) {
	l.t.Helper()
	if _, err := l.db.Exec(l.t.Context(), sql, args...); err != nil {
		l.t.Fatalf("%s: %v", sql, err)
	}
}

func (l *fixture) put(tool string, r *reconcile.Rule) {
	l.t.Helper()
	l.inTx(func(ctx context.Context, tx pgx.Tx) error {
		snap, err := l.cache.Current(ctx, tx, l.tenant)
		if err != nil {
			return err
		}
		return reconcile.Put(ctx, tx, snap, policy.Key{Source: "fake", Action: tool}, r)
	})
}

// propose submits a call of a tool of a source.
func (l *fixture) propose(source, tool, args string) envelope.ActionID {
	l.t.Helper()
	answers, err := intake.New(l.db, l.cache, intake.Config{}).Accept(l.t.Context(), intake.Submitter{Tenant: l.tenant, Name: "agent"},
		[]*envelope.Proposal{{Type: envelope.TypeExec, Tool: envelope.Tool{Name: tool, Source: source}, Args: json.RawMessage(args)}})
	if err != nil {
		l.t.Fatal(err)
	}
	if answers[0].Err != nil {
		l.t.Fatal(answers[0].Err)
	}
	return answers[0].Action
}

// claim claims the due rows.
func (l *fixture) claim() []outbox.Item {
	l.t.Helper()
	var items []outbox.Item
	err := postgres.InTx(l.t.Context(), l.db, postgres.Worker().Planned(), func(tx pgx.Tx) error {
		due, err := outbox.DueBuckets(l.t.Context(), tx, 0, 10)
		if err != nil {
			return err
		}
		var wants []outbox.ClaimRequest
		for _, d := range due {
			wants = append(wants, outbox.ClaimRequest{Bucket: d.Bucket, From: d.From, Quota: 100})
		}
		items, err = outbox.Claim(l.t.Context(), tx, outbox.Mark{}, wants, time.Minute)
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return items
}

// lose ends a claimed call with an unknown outcome.
func (l *fixture) lose(it outbox.Item) {
	l.t.Helper()
	err := postgres.InTx(l.t.Context(), l.db, postgres.Worker().Planned(), func(tx pgx.Tx) error {
		_, err := outbox.Settle(l.t.Context(), tx, outbox.Mark{}, "w1", []outbox.Settlement{outbox.WorkerLost(it)})
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// unresolvedCall makes a call of a tool with an unknown outcome.
func (l *fixture) unresolvedCall(tool string) envelope.ActionID {
	l.t.Helper()
	id := l.propose("fake", tool, `{"to":"ada"}`)
	l.lose(l.claim()[0])
	return id
}

// age makes every dead letter older, and its next read due.
func (l *fixture) age(by string) {
	l.t.Helper()
	l.exec("UPDATE dead_letters SET created_at = created_at - $1::interval, reconcile_at = CASE WHEN reconcile_at IS NOT NULL THEN now() END", by)
}

func (l *fixture) live() *connection.Pool {
	return connection.NewPool(connection.Config{Open: func(envelope.TenantID, catalog.Source) (source.Source, error) { return l.src, nil }})
}

func (l *fixture) sweep() int {
	l.t.Helper()
	n, err := reconcile.New(l.db, l.cache, l.live(), reconcile.Config{}).Sweep(l.t.Context())
	if err != nil {
		l.t.Fatalf("Sweep = %v", err)
	}
	return n
}

// state returns the status of an envelope.
func (l *fixture) state(id envelope.ActionID) envelope.Status {
	l.t.Helper()
	var views []outbox.View
	l.inTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		views, err = outbox.Get(ctx, tx, l.tenant, id)
		return err
	})
	return views[0].Envelope.Result.Status
}

func (l *fixture) entry(id envelope.ActionID) deadletter.Entry {
	l.t.Helper()
	var entry deadletter.Entry
	l.inTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		entry, err = deadletter.Get(ctx, tx, l.tenant, id)
		return err
	})
	return entry
}

func key(tenant envelope.TenantID, id envelope.ActionID) string {
	return outbox.Lease{Tenant: tenant, Action: id}.Key()
}

func answer(found string) sourcetest.Step {
	return sourcetest.Done(`{"structured":{"found":` + found + `}}`)
}

func TestFoundCallIsResolvedAsSent(t *testing.T) {
	t.Parallel()
	l := newFixture(t)
	l.put(toolOnce, &rule)
	l.src.On(toolFind, func(context.Context, source.Call) sourcetest.Step { return answer("true") })
	id := l.unresolvedCall(toolOnce)

	early := l.sweep()
	l.age("0")
	n := l.sweep()

	if early != 0 || n != 1 || l.state(id) != envelope.StatusSent {
		t.Errorf("swept %d at once and %d later; the envelope is %s, want sent", early, n, l.state(id))
	}
	calls := l.src.Calls()
	if len(calls) != 1 || calls[0].Tool != toolFind || calls[0].Key == key(l.tenant, id) || calls[0].Effect != envelope.EffectRead {
		t.Fatalf("calls = %+v, want one read under a key of its own", calls)
	}
	if want := `{"key":"` + key(l.tenant, id) + `","to":"ada"}`; string(calls[0].Args) != want {
		t.Errorf("it asked for %s, want %s", calls[0].Args, want)
	}
	var actor, code string
	if err := l.db.QueryRow(t.Context(), "SELECT actor, items->0->>'code' FROM events WHERE kind = 'resolved'").Scan(&actor, &code); err != nil || actor != "verify/find" {
		t.Errorf("it was resolved by %q, %v, want verify/find", actor, err)
	}
}

func TestMissingCallRunsAgainOrStaysUnknown(t *testing.T) {
	t.Parallel()
	again := rule
	again.Resend = true
	for name, test := range map[string]struct {
		tool string
		rule reconcile.Rule
		age  string
		want envelope.Status
		said string
	}{
		"of class keyed runs again":               {toolKeyed, rule, "61 seconds", envelope.StatusPending, ""},
		"is not believed so soon":                 {toolKeyed, rule, "50 seconds", envelope.StatusUnknown, "not_found_yet"},
		"of class once could still come":          {toolOnce, rule, "61 seconds", envelope.StatusUnknown, "not_found"},
		"of class once runs again where told so":  {toolOnce, again, "61 seconds", envelope.StatusPending, ""},
		"of class once is not believed too early": {toolOnce, again, "50 seconds", envelope.StatusUnknown, "not_found_yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newFixture(t)
			l.put(test.tool, &test.rule)
			l.src.On(toolFind, func(context.Context, source.Call) sourcetest.Step { return answer("[]") })
			id := l.unresolvedCall(test.tool)
			l.age(test.age)

			l.sweep()

			if got := l.state(id); got != test.want {
				t.Fatalf("the envelope is %s, want %s", got, test.want)
			}
			if test.want == envelope.StatusPending {
				if items := l.claim(); len(items) != 1 || items[0].Key() != key(l.tenant, id) {
					t.Errorf("Claim = %+v, want it under its old key", items)
				}
				return
			}
			got := l.entry(id).Reconciliation
			if got.Attempts != 1 || got.LastResult != test.said || got.Next == nil {
				t.Errorf("the letter says %+v, want %s and another look", got, test.said)
			}
		})
	}
}

func TestUnclearAnswersLeaveTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arrange func(l *fixture)
		said    string
	}{
		"an answer without the place": {func(l *fixture) { l.src.Next(toolFind, sourcetest.Done(`{"structured":{}}`)) }, "unclear"},
		"a tool that fails":           {func(l *fixture) { l.src.Next(toolFind, sourcetest.Failed()) }, source.CodeToolError},
		"a source that is away":       {func(l *fixture) { l.src.Next(toolFind, sourcetest.Unreachable()) }, source.CodeUnreachable},
		"an answer that never comes":  {func(l *fixture) { l.src.Next(toolFind, sourcetest.Lost()) }, source.CodeLost},
		"an adapter that panics": {func(l *fixture) {
			l.src.On(toolFind, func(context.Context, source.Call) sourcetest.Step { panic("boom") })
		}, "adapter_failed"},
		"a rule that is gone":       {func(l *fixture) { l.exec("UPDATE tools SET reconcile = NULL") }, "rule_gone"},
		"a read that is gone":       {func(l *fixture) { l.exec("DELETE FROM tools WHERE name = 'find'") }, "tool_gone"},
		"a read that may act":       {func(l *fixture) { l.exec("UPDATE tools SET effect = 'once' WHERE name = 'find'") }, "not_a_read"},
		"a read that policy denies": {func(l *fixture) { l.exec("UPDATE policy_modes SET mode = 'deny'") }, "policy"},
		"a read that has drifted": {func(l *fixture) {
			l.exec(`UPDATE tools SET description = 'another', digest = '\x01' WHERE name = 'find'`)
		}, "policy"},
		"arguments that lack a part": {func(l *fixture) { l.exec("UPDATE actions SET args = '{}'") }, "args_missing"},
		"arguments that do not fit":  {func(l *fixture) { l.exec(`UPDATE actions SET args = '{"to":7}'`) }, "invalid_args"},
		"a source that is off":       {func(l *fixture) { l.exec("UPDATE sources SET enabled = false") }, "source_gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newFixture(t)
			l.put(toolKeyed, &rule)
			id := l.unresolvedCall(toolKeyed)
			l.age("1 hour")
			test.arrange(l)

			n := l.sweep()

			got := l.entry(id)
			last := test.said == "rule_gone"
			if n != 1 || l.state(id) != envelope.StatusUnknown || got.Reconciliation.LastResult != test.said || (got.Reconciliation.Next == nil) != last {
				t.Errorf("the envelope is %s, and its letter says %+v; want unknown and %s", l.state(id), got.Reconciliation, test.said)
			}
		})
	}
}

func TestNoReadsDuringAPause(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		of   pause.Target
		said string
	}{
		{pause.Target{Scope: pause.Tenant}, ""},
		{pause.Target{Scope: pause.Source, Subject: "fake"}, "paused"},
		{pause.Target{Scope: pause.Tool, Subject: "fake:find"}, "paused"},
	} {
		t.Run(test.of.String(), func(t *testing.T) {
			t.Parallel()
			l := newFixture(t)
			l.put(toolOnce, &rule)
			l.src.On(toolFind, func(context.Context, source.Call) sourcetest.Step { return answer("true") })
			id := l.unresolvedCall(toolOnce)
			l.age("1 hour")
			l.exec("UPDATE dead_letters SET reconcile_attempts = $1", reconcile.MaxAttempts)
			l.inTx(func(ctx context.Context, tx pgx.Tx) error {
				_, err := pause.Set(ctx, tx, l.tenant, pause.Order{Target: test.of, Reason: "maintenance", By: "ada"})
				return err
			})

			l.sweep()
			held := l.entry(id).Reconciliation
			l.inTx(func(ctx context.Context, tx pgx.Tx) error {
				return pause.Lift(ctx, tx, l.tenant, test.of, "over", "ada")
			})
			l.age("0")
			l.sweep()

			if held.LastResult != test.said || held.Next == nil || len(l.src.Calls()) != 1 || l.state(id) != envelope.StatusSent {
				t.Errorf("paused, the letter says %+v; in the end it is %s after %d reads", held, l.state(id), len(l.src.Calls()))
			}
		})
	}
}

func TestReadsBackOffAndEnd(t *testing.T) {
	t.Parallel()
	l := newFixture(t)
	l.put(toolOnce, &rule)
	l.src.On(toolFind, func(context.Context, source.Call) sourcetest.Step { return answer("false") })
	id := l.unresolvedCall(toolOnce)
	l.age("1 hour")

	var waits []time.Duration
	for range reconcile.MaxAttempts {
		l.sweep()
		var seconds *float64
		if err := l.db.QueryRow(t.Context(), "SELECT extract(epoch FROM reconcile_at - now())::float8 FROM dead_letters").Scan(&seconds); err != nil {
			t.Fatal(err)
		}
		if seconds != nil {
			waits = append(waits, time.Duration(*seconds*float64(time.Second)))
		}
		l.age("0")
	}

	for i, w := range waits {
		if want := min(10*time.Second<<i, time.Hour); w < want*3/4 || w > want*5/4 {
			t.Errorf("after look %d the next comes in %v, want about %v", i+1, w, want)
		}
	}
	if got := l.entry(id).Reconciliation; len(waits) != reconcile.MaxAttempts-1 || got.Attempts != reconcile.MaxAttempts || got.Next != nil || l.sweep() != 0 {
		t.Errorf("%d waits; the letter says %+v, want an end after %d", len(waits), got, reconcile.MaxAttempts)
	}
}

// Several reconcilers sweep concurrently while a person resolves: each dead
// letter is read by one of them at a time, and resolved once.
func TestConcurrentSweepsShareTheDeadLetters(t *testing.T) {
	t.Parallel()
	const letters, sweepers = 60, 4
	l := newFixture(t)
	l.put(toolOnce, &rule)
	l.src.On(toolFind, func(context.Context, source.Call) sourcetest.Step { return answer("true") })
	var ids []envelope.ActionID
	for range letters {
		ids = append(ids, l.propose("fake", toolOnce, `{"to":"ada"}`))
	}
	for _, it := range l.claim() {
		l.lose(it)
	}
	l.age("1 hour")

	var wg sync.WaitGroup
	for range sweepers {
		wg.Go(func() {
			v := reconcile.New(l.db, l.cache, l.live(), reconcile.Config{Batch: 5, Parallel: 2})
			for {
				n, err := v.Sweep(t.Context())
				if err != nil {
					t.Errorf("Sweep = %v", err)
				}
				if n == 0 || err != nil {
					return
				}
			}
		})
	}
	byHand := 0
	for _, id := range ids[:20] {
		err := l.try(func(ctx context.Context, tx pgx.Tx) error {
			return deadletter.Resolve(ctx, tx, l.tenant, id, deadletter.Resolution{GiveUp: true, Actor: "ada"})
		})
		switch {
		case err == nil:
			byHand++
		case !errors.Is(err, fault.Conflict):
			t.Errorf("Resolve = %v", err)
		}
	}
	wg.Wait()

	asked := make(map[string]int)
	for _, call := range l.src.Calls() {
		asked[string(call.Args)]++
	}
	for args, n := range asked {
		if n != 1 {
			t.Errorf("%s was asked %d times", args, n)
		}
	}
	var left, sent, failed, ends int
	err := l.db.QueryRow(t.Context(), `SELECT (SELECT count(1) FROM dead_letters), count(1) FILTER (WHERE status = 'sent'),
		count(1) FILTER (WHERE status = 'failed'), count(1) FROM tool_executions WHERE code = 'resolved'`).Scan(&left, &sent, &failed, &ends)
	if err != nil || left != 0 || ends != letters || failed != byHand || sent != letters-byHand {
		t.Errorf("%v: %d dead letters left, %d ends: %d sent and %d failed, of which %d by hand", err, left, ends, sent, failed, byHand)
	}
}

func TestOutdatedReadResolvesNothing(t *testing.T) {
	t.Parallel()
	l := newFixture(t)
	l.put(toolOnce, &rule)
	id := l.unresolvedCall(toolOnce)
	l.age("1 hour")
	// During the read, the dead letter is replayed and its call lost again.
	l.src.On(toolFind, func(context.Context, source.Call) sourcetest.Step {
		l.inTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := deadletter.Replay(ctx, tx, l.tenant, deadletter.BulkRequest{IDs: []envelope.ActionID{id}, Limit: 1, Actor: "ada"}, deadletter.ReplayOptions{AllowDuplicates: true})
			return err
		})
		l.lose(l.claim()[0])
		return answer("true")
	})

	l.sweep()

	if got := l.entry(id); got.Attempt != 2 || got.Reconciliation.Attempts != 0 || l.state(id) != envelope.StatusUnknown {
		t.Errorf("the letter is %+v, want the new one as it was", got)
	}
}

func TestRulesApplyToExistingDeadLetters(t *testing.T) {
	t.Parallel()
	l := newFixture(t)
	id := l.unresolvedCall(toolOnce)
	if next := l.entry(id).Reconciliation.Next; next != nil {
		t.Errorf("without a rule the next look is at %v", next)
	}

	l.put(toolOnce, &rule)
	planned := l.entry(id).Reconciliation.Next
	l.put(toolOnce, nil)

	if planned == nil || l.entry(id).Reconciliation.Next != nil || l.sweep() != 0 {
		t.Errorf("with the rule the next look is at %v, and without it at %v", planned, l.entry(id).Reconciliation.Next)
	}
	l.inTx(func(ctx context.Context, tx pgx.Tx) error {
		rules, err := reconcile.List(ctx, tx, l.tenant, policy.Key{})
		if len(rules) != 0 {
			t.Errorf("rules = %+v, want none", rules)
		}
		return err
	})
}

// From end to end against a real MCP server: one note was written before the
// connection was lost, another was not.
func TestNotesAreFoundByTheirKeys(t *testing.T) {
	t.Parallel()
	binary := sourcetest.Program(t, "examples/notes-mcp")
	l := newFixture(t)
	config, err := json.Marshal(connection.MCPConfig{Transport: "http", URL: serveNotes(t, binary)})
	if err != nil {
		t.Fatal(err)
	}
	live := connection.NewPool(connection.Config{Networks: safehttp.Loopback()})
	t.Cleanup(live.Close)
	l.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutSource(ctx, tx, l.tenant, catalog.Source{ID: "notes", Kind: catalog.KindMCP, Config: config, Enabled: true})
	})
	src := l.open(live)
	listed, err := src.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	create := policy.Key{Source: "notes", Action: "notes.create"}
	l.inTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutListing(ctx, tx, l.tenant, "notes", listed); err != nil {
			return err
		}
		return catalog.ConfigureTool(ctx, tx, l.tenant, create, catalog.Overrides{Effect: envelope.EffectKeyed})
	})
	l.inTx(func(ctx context.Context, tx pgx.Tx) error {
		snap, err := l.cache.Current(ctx, tx, l.tenant)
		if err != nil {
			return err
		}
		return reconcile.Put(ctx, tx, snap, create, &reconcile.Rule{Tool: "notes.find", Args: json.RawMessage(`{"key":"$key"}`), Happened: "/found"})
	})
	written := l.propose("notes", "notes.create", `{"title":"Milk","body":"two litres"}`)
	missing := l.propose("notes", "notes.create", `{"title":"Bread","body":"one"}`)
	for _, it := range l.claim() {
		if it.Action == written {
			src.Execute(t.Context(), source.Call{Key: it.Key(), Tool: it.Tool, Args: it.Args, Effect: it.Effect, Attempt: 1})
		}
		l.lose(it)
	}
	l.age("2 minutes")

	n, err := reconcile.New(l.db, l.cache, live, reconcile.Config{}).Sweep(t.Context())

	if err != nil || n != 2 || l.state(written) != envelope.StatusSent || l.state(missing) != envelope.StatusPending {
		t.Errorf("Sweep = %d, %v; the note that was written is %s, the other %s", n, err, l.state(written), l.state(missing))
	}
}

// open connects to the source "notes".
func (l *fixture) open(live *connection.Pool) source.Source {
	l.t.Helper()
	var src source.Source
	l.inTx(func(ctx context.Context, tx pgx.Tx) error {
		snap, err := l.cache.Current(ctx, tx, l.tenant)
		if err != nil {
			return err
		}
		src, err = live.Get(snap, "notes")
		return err
	})
	return src
}

// serveNotes starts the example over HTTP and returns its address.
func serveNotes(t *testing.T, binary string) string {
	t.Helper()
	cmd := exec.Command(binary, "-dir", t.TempDir(), "-http", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // it was terminated
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}
