package proposal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/proposal"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// fixture is a tenant with the tools crm:note, which is allowed, and crm:drop, which
// is denied, and a database login that is bound to it.
type fixture struct {
	t      *testing.T
	db     *pgxpool.Pool
	tenant envelope.TenantID
	taker  *proposal.Taker
	app    *application
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, db: dbtest.DB(t)}
	f.tenant = f.newTenant()
	f.taker = f.newTaker(f.db)
	f.app = f.newLogin(f.tenant, nil)
	return f
}

func (f *fixture) newTaker(db postgres.Begins) *proposal.Taker {
	in := intake.New(db, settings.NewCache(), intake.Config{})
	return proposal.NewTaker(db, in, slog.New(slog.DiscardHandler))
}

func (f *fixture) newTenant() envelope.TenantID {
	f.t.Helper()
	tenant := envelope.TenantID(uuid.Must(uuid.NewV7()))
	f.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", tenant.String(), "t-"+tenant.String())
	err := postgres.InTx(f.t.Context(), f.db, postgres.API(tenant), func(tx pgx.Tx) error {
		ctx := f.t.Context()
		if err := catalog.PutSource(ctx, tx, tenant, catalog.Source{ID: "crm", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		object := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
		if err := catalog.PutListing(ctx, tx, tenant, "crm", []source.Tool{{Name: "note", InputSchema: object}, {Name: "drop", InputSchema: object}}); err != nil {
			return err
		}
		if err := settings.PutMode(ctx, tx, tenant, "", "*", envelope.ModeAllow, "test"); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, tenant, "", "crm:drop", envelope.ModeDeny, "test")
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return tenant
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatal(err)
	}
}

func one[T any](f *fixture, sql string, args ...any) (v T) {
	f.t.Helper()
	if err := f.db.QueryRow(f.t.Context(), sql, args...).Scan(&v); err != nil {
		f.t.Fatal(err)
	}
	return v
}

// application is a program that is connected to the database as a login of its own.
type application struct {
	*pgxpool.Pool
	f    *fixture
	name string
	id   uuid.UUID
}

// newLogin makes a login and binds it to a tenant, for some tools; nil is all. The
// zero tenant leaves it unbound.
func (f *fixture) newLogin(tenant envelope.TenantID, tools []string) *application {
	f.t.Helper()
	a := &application{f: f, name: "app_" + strings.ReplaceAll(uuid.NewString(), "-", ""), id: uuid.Must(uuid.NewV7())}
	f.exec("CREATE ROLE " + a.name + " LOGIN PASSWORD '" + a.id.String() + "'")
	f.t.Cleanup(func() {
		if _, err := f.db.Exec(context.WithoutCancel(f.t.Context()), "DROP ROLE "+a.name); err != nil {
			f.t.Error(err)
		}
	})
	if tenant != (envelope.TenantID{}) {
		f.exec("INSERT INTO db_logins (tenant_id, login_id, login, tools) VALUES ($1, $2, $3, $4)", tenant.String(), a.id, a.name, tools)
	}
	config := f.db.Config()
	config.ConnConfig.User, config.ConnConfig.Password, config.MaxConns = a.name, a.id.String(), 4
	registered := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		err := registered(ctx, conn)
		// An application's session has a search path of its own.
		_, reset := conn.Exec(ctx, "RESET search_path")
		return errors.Join(err, reset)
	}
	pool, err := pgxpool.NewWithConfig(f.t.Context(), config)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(pool.Close)
	a.Pool = pool
	return a
}

const note = `{"type":"mcp.exec","tool":{"name":"note","source":"crm"},"args":{"text":"hello"}}`

func (a *application) propose(body string) uuid.UUID {
	a.f.t.Helper()
	id, err := a.tryPropose(body)
	if err != nil {
		a.f.t.Fatal(err)
	}
	return id
}

func (a *application) tryPropose(body string) (id uuid.UUID, err error) {
	return id, a.QueryRow(a.f.t.Context(), "SELECT countersign.propose($1)", body).Scan(&id)
}

// status is a row of proposal_status.
type status struct {
	State   string
	Action  *uuid.UUID
	Phase   *string
	Problem *wire.SQLProposalProblem
}

func (a *application) status(id uuid.UUID) (s status) {
	a.f.t.Helper()
	err := a.QueryRow(a.f.t.Context(), "SELECT state, action_id, phase, problem FROM countersign.proposal_status($1)", id).Scan(&s.State, &s.Action, &s.Phase, &s.Problem)
	if errors.Is(err, pgx.ErrNoRows) {
		return status{State: "none"}
	}
	if err != nil {
		a.f.t.Fatal(err)
	}
	return s
}

// takeAll takes all waiting proposals.
func (f *fixture) takeAll() {
	f.t.Helper()
	if err := takeAll(f.t.Context(), f.taker); err != nil {
		f.t.Fatal(err)
	}
}

// takeAll takes all waiting proposals that are not held.
func takeAll(ctx context.Context, taker *proposal.Taker) error {
	for {
		if more, _, err := taker.Step(ctx); err != nil || !more {
			return err
		}
	}
}

// count counts the waiting proposals of all logins.
func (f *fixture) count() {
	f.t.Helper()
	if err := proposal.Count(f.t.Context(), f.db); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) actions() int {
	f.t.Helper()
	return one[int](f, "SELECT count(1) FROM actions WHERE tenant_id = $1", f.tenant.String())
}

func TestACommittedProposalBecomesTheActionOfItsID(t *testing.T) {
	t.Parallel()
	f := newFixture(t)

	id := f.app.propose(note)
	before := f.app.status(id)
	f.takeAll()
	after := f.app.status(id)

	if before.State != "waiting" || before.Action != nil {
		t.Errorf("before it is taken: %+v", before)
	}
	if after.State != "accepted" || after.Action == nil || *after.Action != id || after.Phase == nil || *after.Phase != "approved" {
		t.Errorf("after: %+v, want accepted as the action %s", after, id)
	}
	if by := one[uuid.UUID](f, "SELECT proposed_by FROM actions WHERE action_id = $1", id); by != f.app.id {
		t.Errorf("proposed by %s, want the login %s", by, f.app.id)
	}
	if got := one[int](f, "SELECT count(1) FROM proposals"); got != 0 {
		t.Errorf("%d proposals are left", got)
	}
	if id.Version() != 7 || time.Since(time.Unix(id.Time().UnixTime())).Abs() > time.Hour {
		t.Errorf("%s is no UUIDv7 of now", id)
	}
}

func TestARolledBackProposalLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tx, err := f.app.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var id uuid.UUID
	if err := tx.QueryRow(t.Context(), "SELECT countersign.propose($1)", note).Scan(&id); err != nil {
		t.Fatal(err)
	}
	f.takeAll() // an open transaction blocks no other, and its rows are not visible
	other := f.app.propose(note)
	f.takeAll()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.takeAll()

	if s := f.app.status(id); s.State != "none" {
		t.Errorf("rolled back: %+v", s)
	}
	if s := f.app.status(other); s.State != "accepted" {
		t.Errorf("the other: %+v", s)
	}
	if n := f.actions(); n != 1 {
		t.Errorf("%d actions, want 1", n)
	}
}

func TestProposersGetIntakesRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.newLogin(f.tenant, []string{"crm:note"})
	for name, test := range map[string]struct{ body, kind, pointer, rule string }{
		"unknown field":    {`{"type":"mcp.exec","tool":{"name":"note","source":"crm"},"args":{},"colour":1}`, "invalid", "/colour", "unknown_field"},
		"wrong argument":   {`{"type":"mcp.exec","tool":{"name":"note","source":"crm"},"args":{"text":1}}`, "invalid", "/args/text", "type"},
		"unknown tool":     {`{"type":"mcp.exec","tool":{"name":"nothing","source":"crm"},"args":{}}`, "invalid", "/tool/name", "unknown_tool"},
		"another tenant":   {`{"type":"mcp.exec","tool":{"name":"note","source":"crm"},"args":{},"tenant_id":"` + uuid.NewString() + `"}`, "invalid", "/tenant_id", "tenant"},
		"another employee": {`{"type":"mcp.exec","tool":{"name":"note","source":"crm"},"args":{},"employee_id":"` + uuid.NewString() + `"}`, "denied", "/employee_id", "token"},
		"its automation":   {`{"type":"mcp.exec","tool":{"name":"note","source":"crm"},"args":{},"automation_id":"countersign.x"}`, "invalid", "/automation_id", "reserved"},
		"no float":         {`{"type":"mcp.exec","tool":{"name":"note","source":"crm"},"args":{"a":[1.7976931348623157e308,{"b":1e309}]}}`, "invalid", "/args/a/1/b", "number"},
		"hardly a number":  {`{"type":"mcp.exec","tool":{"name":"note","source":"crm"},"args":{"a":2e-324}}`, "invalid", "/args/a", "number"},
		"nothing":          {`{}`, "invalid", "/type", "required"},
	} {
		t.Run(name, func(t *testing.T) {
			id := app.propose(test.body)
			f.takeAll()
			s := app.status(id)
			if s.State != "refused" || s.Problem == nil || s.Problem.Kind != test.kind || len(s.Problem.Errors) == 0 {
				t.Fatalf("status %+v, problem %+v", s, s.Problem)
			}
			if e := s.Problem.Errors[0]; e.Pointer != test.pointer || string(e.Rule) != test.rule || e.Message == "" {
				t.Errorf("error %+v, want %s at %s", e, test.rule, test.pointer)
			}
			if n := one[int](f, "SELECT count(1) FROM events, jsonb_array_elements(items) i WHERE kind = 'proposal_refused' AND i ->> 'code' = $1 AND i -> 'detail' ->> 'proposal_id' = $2", test.rule, id.String()); n != 1 {
				t.Errorf("%d events tell of it", n)
			}
		})
	}
	if n := f.actions(); n != 0 {
		t.Errorf("%d actions", n)
	}
}

// TestAnUnknownToolIsAnsweredWithTheNearest also holds that a login learns of none
// but its tools.
func TestAnUnknownToolIsAnsweredWithTheNearest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	narrow := f.newLogin(f.tenant, []string{"crm:dump"})
	for _, test := range []struct {
		by               *application
		tool, suggestion string
	}{
		{f.app, `{"name":"noet","source":"crm"}`, `no such tool "crm:noet"; did you mean "crm:note"?`},
		{f.app, `{"name":"note","source":"crn"}`, `no such tool "crn:note"; did you mean "crm:note"?`},
		{f.app, `{"name":"noet"}`, `no such tool "noet"; did you mean "note"?`},
		{f.app, `{"name":"dropp","source":"crm"}`, ""}, // which policy denies
		{narrow, `{"name":"noet","source":"crm"}`, ""},
	} {
		id := test.by.propose(`{"type":"mcp.exec","tool":` + test.tool + `,"args":{}}`)
		f.takeAll()
		s := test.by.status(id)
		if s.Problem == nil || len(s.Problem.Errors) != 1 {
			t.Fatalf("%s: %+v", test.tool, s)
		}
		got := s.Problem.Errors[0].Message
		if test.suggestion != "" && got != test.suggestion || test.suggestion == "" && strings.Contains(got, "did you mean") {
			t.Errorf("%s is answered with %q, want %q", test.tool, got, test.suggestion)
		}
	}
}

// TestPolicyDecidesAboutProposals: a proposal that policy denies becomes a denied
// action.
func TestPolicyDecidesAboutProposals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	narrow := f.newLogin(f.tenant, []string{"crm:other"})

	denied := f.app.propose(`{"type":"mcp.exec","tool":{"name":"drop","source":"crm"},"args":{}}`)
	outside, nowhere := narrow.propose(note), narrow.propose(strings.Replace(note, `"note"`, `"nothing"`, 1))
	wrong := narrow.propose(strings.Replace(note, `"hello"`, `7`, 1))
	f.takeAll()

	if s := f.app.status(denied); s.State != "accepted" || *s.Phase != "denied" {
		t.Errorf("denied by a mode: %+v", s)
	}
	want := narrow.status(nowhere)
	for _, id := range []uuid.UUID{outside, wrong} {
		if s := narrow.status(id); s.State != "refused" || cmp.Diff(want, s) != "" {
			t.Errorf("a tool that the login is not for: %+v, want what a tool that does not exist gets: %+v", s, want)
		}
	}
}

func TestTheSameEnvelopeIsADuplicate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	same := `{"type":"mcp.exec","external_id":"e1","tool":{"name":"note","source":"crm"},"args":{"text":"a"}}`
	first, inBatch := f.app.propose(same), f.app.propose(same)
	f.takeAll()
	later := f.app.propose(same)
	other := f.app.propose(strings.Replace(same, `"a"`, `"b"`, 1))
	f.takeAll()

	if s := f.app.status(first); s.State != "accepted" {
		t.Errorf("the first: %+v", s)
	}
	for name, id := range map[string]uuid.UUID{"in its batch": inBatch, "later": later} {
		if s := f.app.status(id); s.State != "duplicate" || s.Action == nil || *s.Action != first {
			t.Errorf("%s: %+v, want a duplicate of %s", name, s, first)
		}
	}
	if s := f.app.status(other); s.State != "refused" || s.Problem.Kind != "conflict" {
		t.Errorf("other content: %+v", s)
	}
	if n := f.actions(); n != 1 {
		t.Errorf("%d actions, want 1", n)
	}
}

func code(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestDatabaseRefusesUnboundLogins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stranger := f.newLogin(envelope.TenantID{}, nil)
	elsewhere := f.newLogin(f.newTenant(), nil)
	id := f.app.propose(note)

	if _, err := stranger.tryPropose(note); code(err) != "42501" {
		t.Errorf("an unbound login: %v", err)
	}
	for name, a := range map[string]*application{"unbound": stranger, "of another tenant": elsewhere, "of the same tenant": f.newLogin(f.tenant, nil)} {
		if s := a.status(id); s.State != "none" {
			t.Errorf("a login that is %s sees %+v", name, s)
		}
	}
	for _, sql := range []string{
		"SELECT count(1) FROM countersign_data.proposals", "SELECT count(1) FROM countersign_data.db_logins", "DELETE FROM countersign_data.proposals", "SELECT count(1) FROM countersign_data.actions",
		"INSERT INTO countersign_data.proposals (tenant_id, proposal_id, login_id, body, bytes) SELECT '" + f.tenant.String() + "', gen_random_uuid(), '" + f.app.id.String() + "', '{}', 2",
		"INSERT INTO countersign_data.db_logins (tenant_id, login_id, login) VALUES ('" + f.tenant.String() + "', gen_random_uuid(), current_user)",
		"CREATE TABLE countersign.t (n int)", "SET ROLE countersign_owner", "SET SESSION AUTHORIZATION " + f.app.name,
	} {
		if _, err := f.app.Exec(t.Context(), sql); err == nil && !strings.HasSuffix(sql, f.app.name) || err != nil && code(err) != "42501" {
			t.Errorf("%s: %v, want insufficient privilege", sql, err)
		}
	}
	f.exec("UPDATE db_logins SET unbound_at = now() WHERE login_id = $1", f.app.id)
	if _, err := f.app.tryPropose(note); code(err) != "42501" {
		t.Errorf("a login that was unbound: %v", err)
	}
	f.takeAll()
	if s := f.app.status(id); s.State != "none" {
		t.Errorf("it is told of what it had proposed before: %+v", s)
	}
	if kind := one[string](f, "SELECT problem ->> 'kind' FROM proposals WHERE proposal_id = $1", id); kind != "denied" {
		t.Errorf("what it had proposed before is refused as %s, want denied", kind)
	}
}

func TestProposeRejectsInvalidEnvelopes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for body, want := range map[string]string{
		`[]`: "no JSON object", `"x"`: "no JSON object", `{"action_id":"x"}`: "leave it out",
		`{"args":"` + strings.Repeat("abcdefgh", 40_000) + `"}`: "more than 262144 bytes",
		`{"args":[1e100000,1e100000,1e100000]}`:                 "more than 262144 bytes", // as text, a million digits
	} {
		if _, err := f.app.tryPropose(body); code(err) != "22023" || !strings.Contains(err.Error(), want) {
			t.Errorf("propose %.20s: %v, want %q", body, err, want)
		}
	}
	for statement, want := range map[string]string{
		"SELECT countersign.propose_many(NULL)":                                                       "array_agg over no rows is null",
		"SELECT countersign.propose_many((SELECT array_agg('{}'::jsonb) FROM generate_series(1, 0)))": "list of envelopes is null",
		`SELECT countersign.propose_many(ARRAY['{"type":"no"}'::jsonb, NULL])`:                        "envelope 2 is null",
		"SELECT countersign.propose(NULL)":                                                            "envelope 1 is null",
	} {
		_, err := f.app.Exec(t.Context(), statement)
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "22004" || !strings.Contains(pg.Message+pg.Hint, want) {
			t.Errorf("%s: %v, want 22004 and %q", statement, err, want)
		}
	}
	if _, err := f.app.Exec(t.Context(), "SELECT countersign.propose_many('{}')"); err != nil {
		t.Errorf("an empty list: %v, want nothing to happen", err)
	}
	if n := one[int](f, "SELECT count(1) FROM proposals"); n != 0 {
		t.Errorf("%d proposals are stored", n)
	}
}

// TestHostileEnvelopesAreRefusedAlone: each is answered, and later proposals are
// accepted.
func TestHostileEnvelopesAreRefusedAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	random := rand.New(rand.NewPCG(1, 2))
	var ids []uuid.UUID
	for _, args := range append(hostileArgs(random), `{}`) {
		for _, body := range []string{
			`{"type":"mcp.exec","tool":{"name":"note","source":"crm"},"args":` + args + `}`,
			`{"type":"mcp.exec","tool":` + args + `,"args":{}}`,
			`{"type":"mcp.exec","tool":{"name":"note","source":"crm"},"args":{},"constraints":` + args + `,"x":` + args + `}`,
			args,
		} {
			if id, err := f.app.tryPropose(body); err == nil { // the database rejects invalid JSON and oversized envelopes
				ids = append(ids, id)
			} else if !strings.HasPrefix(code(err), "22") {
				t.Fatalf("propose %.80s: %v", body, err)
			}
		}
	}
	last := f.app.propose(note)
	f.takeAll()

	refused := 0
	for _, id := range ids {
		switch s := f.app.status(id); s.State {
		case "refused":
			refused++
			if s.Problem.Detail == "" {
				t.Errorf("no reason: %+v", s.Problem)
			}
		case "accepted":
		default:
			t.Errorf("%s is %s", id, s.State)
		}
	}
	if refused < len(ids)/2 {
		t.Errorf("%d of %d are refused", refused, len(ids))
	}
	if s := f.app.status(last); s.State != "accepted" {
		t.Errorf("what follows them: %+v", s)
	}
}

// hostileArgs are arguments that are deep, wide, long or ambiguous, and random ones
// made of such parts.
func hostileArgs(random *rand.Rand) []string {
	deep := func(n int, inner string) string { return strings.Repeat(`{"a":`, n) + inner + strings.Repeat("}", n) }
	parts := []string{
		deep(60, "1"), deep(900, "{}"), `[` + strings.Repeat("1,", 20_000) + `1]`, `{"a":1,"a":2}`, `{"n":1e400}`, `{"n":1e-400}`, `{"n":` + strings.Repeat("9", 500) + `}`,
		`{"text":"\u0000"}`, `{"text":"\ud800"}`, `{"text":"` + strings.Repeat("x", 100_000) + `"}`, `{"` + strings.Repeat("k", 5000) + `":1}`,
		`null`, `""`, `[]`, `1`, `{"n":NaN}`, `{"n":[1e100000]}`, `{"":{"":""}}`, `{"text":"\u202e"}`,
	}
	for range 60 {
		one, other := parts[random.IntN(19)], parts[random.IntN(19)]
		parts = append(parts, fmt.Sprintf(`{"text":%s,"b":[%s]}`, one, deep(random.IntN(40), other)))
	}
	return parts
}

func TestALoginCannotFillTheTable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := f.newLogin(f.tenant, nil)
	f.exec("UPDATE db_logins SET waiting_max = 600 WHERE login_id = $1", f.app.id)
	many := "SELECT countersign.propose_many(array_agg($1::jsonb)) FROM generate_series(1, 300)"

	for range 2 {
		if _, err := f.app.Exec(t.Context(), many, note); err != nil {
			t.Fatal(err)
		}
	}
	_, full := f.app.Exec(t.Context(), many, note)
	if code(full) != "53400" || !strings.Contains(full.Error(), "wait: 600 with ") || !strings.Contains(full.Error(), "of at most 600 with ") || !strings.Contains(full.Error(), "these are 300 with ") {
		t.Errorf("the third time: %v, want configuration limit exceeded with the bound and the size", full)
	}
	_, large := f.app.Exec(t.Context(), "SELECT countersign.propose_many(array_agg($1::jsonb)) FROM generate_series(1, 601)", note)
	if code(large) != "54000" || !strings.Contains(large.Error(), "601 envelopes with ") || !strings.Contains(large.Error(), ": 600 with ") {
		t.Errorf("a batch over the bound: %v, want program limit exceeded with the bound and the size", large)
	}
	other.propose(note)
	f.takeAll()
	if _, err := f.app.Exec(t.Context(), many, note); err != nil {
		t.Errorf("when they are taken: %v", err)
	}
	f.takeAll()
	if n := f.actions(); n != 901 {
		t.Errorf("%d actions, want 901", n)
	}
}

func TestLoginWithRefusedProposalsYieldsToOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := f.newLogin(f.tenant, nil)
	step := func(wantMore, wantPause bool) {
		t.Helper()
		more, pause, err := f.taker.Step(t.Context())
		if err != nil || more != wantMore || pause > 0 != wantPause {
			t.Errorf("Step() = %v, %v, %v, want %v and a pause: %v", more, pause, err, wantMore, wantPause)
		}
	}
	waiting := func() int {
		return one[int](f, "SELECT count(1) FROM proposals WHERE login_id = $1 AND answered_at IS NULL", f.app.id)
	}
	if _, err := f.app.Exec(t.Context(), `SELECT countersign.propose_many(array_agg('{"type":"no"}'::jsonb)) FROM generate_series(1, 2000)`); err != nil {
		t.Fatal(err)
	}

	step(true, true)
	if n := waiting(); n != 1000 {
		t.Errorf("%d wait after a turn, want 1000", n)
	}
	f.exec("UPDATE db_logins SET held_until = now() + interval '1 hour' WHERE login_id = $1", f.app.id)
	id := other.propose(note)
	step(true, false)
	if n := one[int](f, "SELECT count(1) FROM actions WHERE action_id = $1", id.String()); n != 1 {
		t.Error("the other login's proposal is no action")
	}
	step(false, false)

	f.exec("UPDATE db_logins SET held_until = now() WHERE login_id = $1", f.app.id)
	step(true, true)
	if n := waiting(); n != 900 {
		t.Errorf("%d wait after the next turn, want 900", n)
	}
	f.exec("DELETE FROM proposals WHERE answered_at IS NULL")
	f.exec("UPDATE db_logins SET held_until = now() WHERE login_id = $1", f.app.id)
	f.app.propose(note)
	step(true, false)
	if one[bool](f, "SELECT held_until IS NOT NULL FROM db_logins WHERE login_id = $1", f.app.id) {
		t.Error("it is still held after a turn in which none was refused")
	}
}

func TestFullLoginIsRefusedByTheWorkersCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec("UPDATE db_logins SET waiting_max = 100000, waiting = 100000, counted_at = clock_timestamp() WHERE login_id = $1", f.app.id)
	propose := func() error {
		// Now and then propose counts by itself, by chance: not with this seed.
		_, err := f.app.Exec(t.Context(), "SELECT countersign.propose($1::jsonb) FROM (SELECT setseed(0.5)) s", note)
		return err
	}
	if err := propose(); code(err) != "53400" {
		t.Errorf("while the count holds: %v, want 53400", err)
	}
	f.exec("UPDATE db_logins SET counted_at = clock_timestamp() - interval '11 seconds' WHERE login_id = $1", f.app.id)
	if err := propose(); err != nil {
		t.Errorf("when the count is old: %v, want it to be proposed", err)
	}
	f.takeAll()
	if n := one[int](f, "SELECT waiting FROM db_logins WHERE login_id = $1", f.app.id); n != 0 {
		t.Errorf("%d wait by the count of the worker that took the last one, want 0", n)
	}
}

// With the statistics of a time when a page had more and shorter proposals, a plan that
// reads and sorts all of them looks as cheap as one for the first.
func TestTakerReadsOnlyTheFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec("ALTER TABLE proposals SET (autovacuum_enabled = off)")
	const waiting = 10_000
	f.exec(`INSERT INTO proposals (tenant_id, proposal_id, login_id, body, bytes)
		SELECT $1, gen_random_uuid(), $2, b, octet_length(b) FROM generate_series(1, $3) n, concat('{"n":', n, ',"note":"', repeat('x', 500), '"}') b`,
		f.tenant.String(), f.app.id, waiting)
	f.exec("UPDATE pg_class SET relpages = 10, reltuples = 10000 WHERE oid = 'proposals'::regclass")
	f.exec("UPDATE db_logins SET held_until = now() WHERE login_id = $1", f.app.id)
	plans := ""
	config := f.db.Config()
	config.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { plans += n.Message }
	registered := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		err := registered(ctx, conn)
		_, explain := conn.Exec(ctx, "LOAD 'auto_explain'; SET plan_cache_mode = auto; SET auto_explain.log_min_duration = 0; SET auto_explain.log_level = notice")
		return errors.Join(err, explain)
	}
	config.MaxConns = 1
	db, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if more, _, err := f.newTaker(db).Step(t.Context()); err != nil || !more {
		t.Fatalf("Step() = %v, %v", more, err)
	}
	_, plan, _ := strings.Cut(plans, "ProposalTake")
	plan, _, _ = strings.Cut(plan, "Query Text")
	if !strings.Contains(plan, "Index Scan using proposals_waiting") || strings.Contains(plan, "Sort") {
		t.Errorf("all waiting ones are read:%s", plan)
	}
}

func TestCountLeavesTheTakersAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const counted = "SELECT counted_at IS NOT NULL FROM db_logins WHERE login_id = $1"
	many := "SELECT countersign.propose_many(array_agg($1::jsonb)) FROM generate_series(1, $2::int)"
	long := `{"type":"no","note":"` + strings.Repeat("x", 100_000) + `"}`
	for _, of := range []struct {
		name, body string
		n, most    int
	}{{"many", note, 1500, 1000}, {"long", long, 30, 11}} {
		app := f.newLogin(f.tenant, nil)
		if _, err := app.Exec(t.Context(), many, of.body, of.n); err != nil {
			t.Fatal(err)
		}
		if more, _, err := f.taker.Step(t.Context()); err != nil || !more {
			t.Fatalf("%s: Step() = %v, %v", of.name, more, err)
		}
		if one[bool](f, counted, app.id) {
			t.Errorf("%s: the taker has counted those that are left", of.name)
		}
		f.count()
		left := one[int](f, "SELECT count(1) FROM proposals WHERE login_id = $1 AND answered_at IS NULL", app.id)
		if n := one[int](f, "SELECT waiting FROM db_logins WHERE login_id = $1", app.id); left != of.n-of.most || n != left {
			t.Errorf("%s: %d wait by the count, and %d do, want %d", of.name, n, left, of.n-of.most)
		}
		f.exec("UPDATE db_logins SET held_until = NULL WHERE login_id = $1", app.id)
		f.takeAll()
		f.exec("DELETE FROM proposals WHERE login_id = $1", app.id)
	}
}

// A count that was made before the taker took the last ones is not stored.
func TestOldCountIsNotStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.app.propose(note)
	taking, err := f.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taking.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := taking.Exec(t.Context(), "UPDATE db_logins SET waiting = 0, counted_at = now() WHERE login_id = $1", f.app.id); err != nil {
		t.Fatal(err)
	}
	counted := make(chan error, 1)
	go func() { counted <- proposal.Count(t.Context(), f.db) }()
	for !one[bool](f, "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')") {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}

	if err := errors.Join(taking.Commit(t.Context()), <-counted); err != nil {
		t.Fatal(err)
	}
	if n := one[int](f, "SELECT waiting FROM db_logins WHERE login_id = $1", f.app.id); n != 0 {
		t.Errorf("%d wait by the earlier count, want the later one, 0", n)
	}
}

func TestWithoutWorkersALoginCannotFillTheTable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec("UPDATE db_logins SET waiting_max = 20000 WHERE login_id = $1", f.app.id)
	for range 100 { // and continues after errors
		_, err := f.app.Exec(t.Context(), "SELECT countersign.propose_many(array_agg($1::jsonb)) FROM generate_series(1, 500)", note)
		if err != nil && code(err) != "53400" {
			t.Fatal(err)
		}
	}
	if n := one[int](f, "SELECT count(1) FROM proposals"); n > 21_000 {
		t.Errorf("%d wait, want about 20000 at most", n)
	}
}

func TestManyInOneTransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const n = 20_000
	if _, err := f.app.Exec(t.Context(), `SELECT countersign.propose_many(array_agg(jsonb_set($1::jsonb, '{external_id}', to_jsonb('e' || i))))
		FROM generate_series(1, $2::int) i GROUP BY i / 5000`, note, n); err != nil {
		t.Fatal(err)
	}
	f.takeAll()
	if got := one[int](f, "SELECT count(DISTINCT external_id) FROM actions"); got != n {
		t.Errorf("%d actions, want %d", got, n)
	}
	if got := one[int](f, "SELECT count(1) FROM proposals"); got != 0 {
		t.Errorf("%d proposals are left", got)
	}
}

// dying loses a transaction in two at its commit, as a process does that is killed.
type dying struct {
	postgres.Begins
	n   *int
	err error
}

func (d dying) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	tx, err := d.Begins.BeginTx(ctx, opts)
	return dyingTx{tx, d.n, d.err}, err
}

type dyingTx struct {
	pgx.Tx
	n   *int
	err error
}

var errKilled = errors.New("killed")

func (d dyingTx) Commit(ctx context.Context) error {
	if *d.n++; *d.n%2 == 1 {
		_ = d.Rollback(ctx)
		return d.err
	}
	return d.Tx.Commit(ctx)
}

// TestEachBecomesOneActionWithTwoWorkers of which one dies again and again between
// intake and the answer, while applications propose, and roll back.
func TestEachBecomesOneActionWithTwoWorkers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	apps := []*application{f.app, f.newLogin(f.tenant, nil)}
	const each = 60
	var g errgroup.Group
	for i, a := range apps {
		g.Go(func() error {
			for n := range each {
				tx, err := a.Begin(t.Context())
				if err != nil {
					return err
				}
				body := fmt.Sprintf(`{"type":"mcp.exec","external_id":"e%d-%d","tool":{"name":"note","source":"crm"},"args":{}}`, i, n)
				if _, err := tx.Exec(t.Context(), "SELECT countersign.propose($1)", body); err != nil {
					return err
				}
				end := tx.Commit
				if n%3 == 0 {
					end = tx.Rollback
				}
				if err := end(t.Context()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	proposed := make(chan error, 1)
	go func() { proposed <- g.Wait() }()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var workers errgroup.Group
	for _, db := range []postgres.Begins{f.db, dying{f.db, new(int), errKilled}} {
		taker := f.newTaker(db)
		workers.Go(func() error {
			for ctx.Err() == nil {
				if err := takeAll(ctx, taker); err != nil && !errors.Is(err, errKilled) && ctx.Err() == nil {
					return err
				}
				// In one order, or two workers wait for each other.
				f.exec("WITH held AS (SELECT login_id FROM db_logins ORDER BY login_id FOR UPDATE) UPDATE db_logins l SET held_until = NULL FROM held h WHERE h.login_id = l.login_id")
			}
			return nil
		})
	}
	if err := <-proposed; err != nil {
		t.Fatal(err)
	}
	for one[int](f, "SELECT count(1) FROM proposals WHERE answered_at IS NULL") > 0 {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := workers.Wait(); err != nil {
		t.Fatal(err)
	}
	const want = 2 * each * 2 / 3
	if got := one[int](f, "SELECT count(DISTINCT external_id) FROM actions"); got != want || f.actions() != want {
		t.Errorf("%d actions of %d envelopes, want %d", f.actions(), got, want)
	}
	if got := one[int](f, "SELECT count(1) FROM proposals"); got != 0 {
		t.Errorf("%d proposals are left", got)
	}
}

// TestRetriedTransactionRefusesNoOtherLogin: the retry may take proposals of
// another login than the closed one.
func TestRetriedTransactionRefusesNoOtherLogin(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	disabled := f.newLogin(f.tenant, nil)
	operator := uuid.Must(uuid.NewV7())
	f.exec("INSERT INTO operators (tenant_id, operator_id, name, disabled_at) VALUES ($1, $2, 'o', now())", f.tenant.String(), operator)
	f.exec("UPDATE db_logins SET operator_id = $1 WHERE login_id = $2", operator, disabled.id)
	serialization := &pgconn.PgError{Code: "40001"}
	taker := f.newTaker(dying{f.db, new(int), serialization})

	for range 20 {
		id, other := f.app.propose(note), disabled.propose(note)
		if err := takeAll(t.Context(), taker); err != nil {
			t.Fatal(err)
		}
		if s := f.app.status(id); s.State != "accepted" {
			t.Fatalf("of a login that may propose: %+v, %+v", s, s.Problem)
		}
		if s := disabled.status(other); s.State != "refused" || s.Problem.Kind != "denied" {
			t.Fatalf("of a login whose operator is disabled: %+v", s)
		}
	}
}

func TestAnswersAreKeptForAWhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old, fresh := f.app.propose(`{}`), f.app.propose(`{}`)
	f.takeAll()
	again := f.newLogin(f.tenant, nil)
	kept := again.propose(note)
	f.exec("UPDATE proposals SET answered_at = now() - interval '8 days' WHERE proposal_id = $1", old)

	done, err := proposal.Prune(t.Context(), f.db, func() bool { return true })

	if err != nil || !done {
		t.Fatalf("Prune: %t, %v", done, err)
	}
	if s := f.app.status(old); s.State != "none" {
		t.Errorf("after eight days: %+v", s)
	}
	if s := f.app.status(fresh); s.State != "refused" {
		t.Errorf("just answered: %+v", s)
	}
	if s := again.status(kept); s.State != "waiting" {
		t.Errorf("one that waits: %+v", s)
	}
}

// TestNamesOfOtherLoginsConflict: a conflict reveals nothing about another
// login's proposal of the same name, and a login that is bound again keeps its
// own proposals.
func TestNamesOfOtherLoginsConflict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := f.newLogin(f.tenant, nil)
	same := `{"type":"mcp.exec","external_id":"e1","tool":{"name":"note","source":"crm"},"args":{"text":"a"}}`
	first := f.app.propose(same)
	f.takeAll()
	equal, unequal := other.propose(same), other.propose(strings.Replace(same, `"a"`, `"b"`, 1))
	f.takeAll()
	f.exec("UPDATE db_logins SET unbound_at = now() WHERE login = $1", f.app.name)
	f.exec("INSERT INTO db_logins (tenant_id, login_id, login) VALUES ($1, $2, $3)", f.tenant.String(), uuid.Must(uuid.NewV7()), f.app.name)
	again := f.app.propose(same)
	f.takeAll()

	one, two := other.status(equal), other.status(unequal)
	if one.State != "refused" || one.Action != nil || one.Problem.Kind != "conflict" || strings.Contains(one.Problem.Detail, first.String()) {
		t.Errorf("equal content: %+v, want a conflict without the id", one)
	}
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("equal and other content differ (-equal +other):\n%s", diff)
	}
	if s := f.app.status(again); s.State != "duplicate" || *s.Action != first {
		t.Errorf("again, bound anew: %+v, want a duplicate of %s", s, first)
	}
}

// TestALoginKeepsToItsPrefix: an unbound login gets no answer.
func TestALoginKeepsToItsPrefix(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec("UPDATE db_logins SET external_id_prefix = 'shop/' WHERE login = $1", f.app.name)
	named := func(name string) string {
		return `{"type":"mcp.exec","external_id":"` + name + `","tool":{"name":"note","source":"crm"},"args":{"text":"a"}}`
	}
	own, other, unnamed := f.app.propose(named("shop/1")), f.app.propose(named("crm/1")), f.app.propose(note)
	f.takeAll()
	waiting := f.app.propose(named("shop/2"))

	for name, want := range map[string]struct {
		id    uuid.UUID
		state string
	}{"own": {own, "accepted"}, "other": {other, "refused"}, "unnamed": {unnamed, "accepted"}, "waiting": {waiting, "waiting"}} {
		if s := f.app.status(want.id); s.State != want.state {
			t.Errorf("%s: %+v, want %s", name, s, want.state)
		}
	}
	f.exec("UPDATE db_logins SET unbound_at = now() WHERE login = $1", f.app.name)
	for _, id := range []uuid.UUID{own, other, unnamed, waiting} {
		if s := f.app.status(id); s.State != "none" {
			t.Errorf("unbound, it is told %+v", s)
		}
	}
}
