package cli_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// apiFixture is an API without a worker, so that what is replayed stays where it
// is put, and an operator of it.
type apiFixture struct {
	t      *testing.T
	db     *pgxpool.Pool
	tenant envelope.TenantID
	env    map[string]string
}

func newAPIFixture(t *testing.T) *apiFixture {
	t.Helper()
	db, cache := dbtest.DB(t), settings.NewCache()
	server, err := rest.New(rest.Core{
		DB: db, Catalog: cache, Intake: intake.New(db, cache, intake.Config{}), Approval: approval.New(db, cache, approval.Config{}),
	}, rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	t.Cleanup(server.Close)
	m := &apiFixture{t: t, db: db}
	err = postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) (err error) {
		m.tenant, err = identity.NewTenant(t.Context(), tx, "acme")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var made identity.Issued
	err = postgres.InTx(t.Context(), db, postgres.API(m.tenant), func(tx pgx.Tx) (err error) {
		made, err = identity.Issue(t.Context(), tx, m.tenant, identity.Grant{Name: "ada", Role: identity.RoleOperator}, time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	m.env = map[string]string{"COUNTERSIGN_URL": web.URL, "COUNTERSIGN_TOKEN": made.Token.Text()}
	return m
}

// die makes dead letters of a tool and a reason.
func (m *apiFixture) die(n int, tool, reason string) {
	m.t.Helper()
	const sql = `
		WITH one AS (
			INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace) VALUES ($1, $1, 'allow', 'test', '[]') ON CONFLICT DO NOTHING
		), home AS (
			INSERT INTO buckets (tenant_id, name) VALUES ($1, $2 || $3) RETURNING bucket_id
		), made AS (
			INSERT INTO actions (tenant_id, action_id, content_digest, source_id, tool_name, args, risk, effect,
				decision_id, config_version, tool_digest, approval_state, bucket_id, max_attempts)
			SELECT $1, ('019a0b1c-' || substr(md5($2 || $3), 1, 4) || '-7f40-8a5b-' || lpad(to_hex(n), 12, '0'))::uuid, '\x00', 'mail', $2,
				'{"to":"a@example.org","password":"hunter2"}', 'low', 'once', $1, 1, '\x00', 'auto', h.bucket_id, 3
			FROM home h, generate_series(1, $4::integer) n
			RETURNING action_id
		)
		INSERT INTO dead_letters (tenant_id, action_id, reason, attempt, code, message)
		SELECT $1, action_id, $3, 1, 'timeout', 'no answer' FROM made`
	if _, err := m.db.Exec(m.t.Context(), sql, m.tenant.String(), tool, reason, n); err != nil {
		m.t.Fatal(err)
	}
}

func (m *apiFixture) count(sql string) (n int) {
	m.t.Helper()
	if err := m.db.QueryRow(m.t.Context(), sql).Scan(&n); err != nil {
		m.t.Fatal(err)
	}
	return n
}

func (m *apiFixture) run(code int, args ...string) result {
	m.t.Helper()
	var out, errs bytes.Buffer
	got := cli.Run(m.t.Context(), args, command.System{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(name string) string { return m.env[name] }})
	if got != code {
		m.t.Fatalf("%q = %d, want %d\n%s%s", args, got, code, &out, &errs)
	}
	return result{got, out.String(), errs.String()}
}

// summary is the document of a change.
type summary struct {
	Applied, Stopped bool
	Count, Total     int
	Left             int
	LeftOut          int      `json:"left_out"`
	NotDead          []string `json:"not_dead"`
	Counts           []wire.DeadLetterCount
	AsOf             time.Time `json:"as_of"`
}

// Ten thousand are one command; it is stopped half-way, and taken up again.
func TestReplayOfTenThousandIsStoppedAndTakenUpAgain(t *testing.T) {
	t.Parallel()
	const letters = 10000
	m := newAPIFixture(t)
	m.die(letters, "send_email", "exhausted")
	m.die(3, "send_email", "unknown")
	m.die(5, "other", "exhausted")
	// All is scheduled within the lead of a paced replay, so nothing waits.
	args := []string{"dlq", "replay", "--tool", "send_email", "--rate", "5000", "--apply"}

	dry := m.run(command.ExitOK, args[:6]...)
	ctx, cancel := context.WithCancel(t.Context())
	out, errs := &bytes.Buffer{}, &ender{text: " of 10000", end: cancel}
	code := cli.Run(ctx, args, command.System{Out: out, Err: errs, Getenv: func(name string) string { return m.env[name] }})
	some := m.count("SELECT count(1) FROM outbox")

	if !strings.Contains(dry.out, "10000") || !strings.Contains(dry.err, "Nothing was changed") || !strings.Contains(dry.err, "3 of unknown outcome skipped") {
		t.Errorf("a dry run says %s%s", dry.out, dry.err)
	}
	if code != command.ExitInterrupted || !strings.Contains(errs.String(), "To continue with the rest, run the command again with --until 20") {
		t.Fatalf("stopped it ends with %d and says %s", code, errs)
	}
	if left := m.count("SELECT count(1) FROM dead_letters"); some == 0 || some >= letters || some+left != letters+8 {
		t.Fatalf("stopped it has replayed %d and left %d", some, left)
	}
	// What failed again since is not among the rest.
	_, until, _ := strings.Cut(errs.String(), "--until ")
	until, _, _ = strings.Cut(until, ".\n")
	m.die(2, "send_email", "refused")
	done := decode[summary](t, m.run(command.ExitOK, append(args, "--json", "--until", until)...).out)

	if !done.Applied || done.Stopped || done.Count != letters-some || done.Total != done.Count || done.Left != 0 || done.LeftOut != 3 {
		t.Errorf("taken up again it came to %+v after %d of %d", done, some, letters)
	}
	if n, left := m.count("SELECT count(1) FROM outbox"), m.count("SELECT count(1) FROM dead_letters"); n != letters || left != 10 {
		t.Errorf("%d are on the schedule and %d dead, want %d and 10", n, left, letters)
	}
	// One schedule from the first to the last: nothing bunches.
	apart := m.count(`SELECT count(1) FROM (
		SELECT next_attempt_at - lag(next_attempt_at) OVER (ORDER BY next_attempt_at) AS gap FROM outbox) g WHERE gap < interval '199 microseconds'`)
	if apart != 0 {
		t.Errorf("%d envelopes are due too soon after another", apart)
	}
}

func TestReplayFromAnExport(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	m.die(120, "send_email", "refused")
	m.die(2, "send_email", "unknown")
	file := filepath.Join(t.TempDir(), "dead.jsonl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	export := m.run(command.ExitOK, "dlq", "export", "--source", "mail", "--code", "timeout")
	if lines := strings.Count(export.out, "\n"); lines != 122 || strings.Contains(export.out, "hunter2") || !strings.Contains(export.out, "a@example.org") {
		t.Fatalf("the export has %d lines, such as %.300s", lines, export.out)
	}
	lines := strings.SplitAfter(export.out, "\n")
	write(lines[0] + "not this\n" + lines[1])
	bad := m.run(command.ExitUsage, "dlq", "replay", "--from", file, "--apply")
	if !strings.Contains(bad.err, "line 2 is not a JSON object") || m.count("SELECT count(1) FROM outbox") != 0 {
		t.Errorf("a bad line is refused with %s", bad.err)
	}
	gone := envelope.NewActionID().String()
	write(export.out + `{"action_id":"` + gone + `"}` + "\n")
	dry := decode[summary](t, m.run(command.ExitOK, "dlq", "replay", "--from", file, "--json").out)
	done := decode[summary](t, m.run(command.ExitOK, "dlq", "replay", "--from", file, "--apply", "--json").out)
	again := m.run(command.ExitOK, "dlq", "replay", "--from", file, "--apply")

	for _, s := range []summary{dry, done} {
		if s.Count != 120 || s.Total != 120 || s.LeftOut != 2 || len(s.NotDead) != 1 || s.NotDead[0] != gone {
			t.Errorf("it came to %+v, want 120, two left out and %s no letter", s, gone)
		}
	}
	if dry.Applied || !done.Applied || m.count("SELECT count(1) FROM outbox") != 120 {
		t.Errorf("%d are on the schedule", m.count("SELECT count(1) FROM outbox"))
	}
	if !strings.Contains(again.err, "121 are not matching dead letters") || !strings.Contains(again.err, gone) {
		t.Errorf("again it says %s", again.err)
	}
	m.run(command.ExitOK, "dlq", "discard", "--reason", "unknown", "--note", "x", "--apply")
	if over := decode[summary](t, m.run(command.ExitOK, "dlq", "replay", "--from", file, "--apply", "--json").out); over.Count != 0 || len(over.NotDead) != 123 {
		t.Errorf("with nothing left it came to %d, and %d are no letters", over.Count, len(over.NotDead))
	}
	m.run(command.ExitFailed, "dlq", "replay", gone)
	m.run(command.ExitUsage, "dlq", "replay", gone, "--from", file)
}

func TestResolveFromTheCommandLine(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	m.die(4, "send_email", "unknown")
	page := decode[wire.Page[wire.DeadLetter]](t, m.run(command.ExitOK, "dlq", "list", "--reason", "unknown", "--since", "1h", "--json").out)
	var ids []string
	for _, l := range page.Items {
		ids = append(ids, l.ActionID.String())
	}
	if show := m.run(command.ExitOK, "dlq", "show", ids[0]); !strings.Contains(show.err, "dlq resolve "+ids[0]) {
		t.Errorf("show does not say how to go on: %s", show.err)
	}

	m.run(command.ExitOK, "dlq", "resolve", ids[0], ids[1], "--happened", "--note", "in their log")
	m.run(command.ExitOK, "dlq", "resolve", ids[2], "--did-not", "--note", "not there")
	m.run(command.ExitOK, "dlq", "resolve", ids[3], "--did-not", "--give-up", "--note", "too late anyway")

	if again := m.run(command.ExitFailed, "dlq", "resolve", ids[0], "--did-not", "--note", "x"); !strings.Contains(again.err, "is not a dead letter; it is sent") {
		t.Errorf("again it says %s", again.err)
	}
	if m.count("SELECT count(1) FROM outbox") != 1 || m.count("SELECT count(1) FROM dead_letters") != 0 {
		t.Error("want one on the schedule and no dead letter")
	}
	for _, args := range [][]string{
		{ids[0], "--note", "x"}, {ids[0], "--happened", "--did-not", "--note", "x"}, {ids[0], "--happened"}, {"--happened", "--note", "x"},
		{ids[0], "--happened", "--give-up", "--note", "x"}, {"x", "--happened", "--note", "x"},
	} {
		m.run(command.ExitUsage, append([]string{"dlq", "resolve"}, args...)...)
	}
}

func TestBadFiltersAreRefused(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	for _, args := range [][]string{
		{"list", "--since", "yesterday"}, {"list", "--since", "1h", "--until", "2h"}, {"export", "--reason", "x"},
		{"replay", "--tool", "x", "--rate", "-1"}, {"replay", "--tool", "x", "--rate", "10001"}, {"replay", "--tool", "x", "--rate", "NaN"}, {"replay", "--from", "no-such-file"},
		{"discard", "--all", "--from", "-", "--note", "x"},
	} {
		m.run(command.ExitUsage, append([]string{"dlq"}, args...)...)
	}
	if s := m.run(command.ExitUsage, "dlq", "list", "--source", "No Source"); !strings.Contains(s.err, "/query/source") {
		t.Errorf("the field that is wrong is not named: %s", s.err)
	}
}

func TestVerifyingReadsAreSetFromTheCommandLine(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	if s := m.run(command.ExitOK, "tools", "reconcile"); !strings.Contains(s.err, "No tool has") {
		t.Errorf("it says %s", s.err)
	}
	for _, args := range [][]string{
		{"mail", "--read", "x"}, {"mail:send"}, {"mail:send", "--none", "--read", "x"}, {"mail:send", "--read", "x", "--args", "{"}, {"--none"},
	} {
		m.run(command.ExitUsage, append([]string{"tools", "reconcile"}, args...)...)
	}
	if s := m.run(command.ExitUsage, "tools", "reconcile", "mail:send", "--read", "x", "--happened", "/found"); !strings.Contains(s.err, "/read") {
		t.Errorf("the field that is wrong is not named: %s", s.err)
	}
	m.run(command.ExitFailed, "tools", "reconcile", "mail:send", "--none")
}
