package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// happened writes events, and checkpoints them.
func (m *apiFixture) happened(n int) {
	m.t.Helper()
	if _, err := m.db.Exec(m.t.Context(), "INSERT INTO events (tenant_id, kind, actor, items) SELECT $1, 'configured', 'ada', '[]' FROM generate_series(1, $2::integer)", m.tenant.String(), n); err != nil {
		m.t.Fatal(err)
	}
	// The transactions of other tests end by themselves.
	for m.count("SELECT count(1) FROM events WHERE txid >= pg_snapshot_xmin(pg_current_snapshot())") > 0 {
	}
	if done, err := audit.CheckpointAll(m.t.Context(), m.db, func() bool { return true }); !done || err != nil {
		m.t.Fatalf("SealAll = %t, %v", done, err)
	}
}

// ways are those to a log: over the API, and in the database.
func (m *apiFixture) ways() map[string][]string {
	m.env["DATABASE_URL"] = m.db.Config().ConnString()
	return map[string][]string{"api": nil, "database": {"--tenant", "acme"}}
}

func TestAuditVerifyNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	ways := m.ways()
	m.happened(3)
	head := decode[audit.Report](t, m.run(command.ExitOK, "audit", "verify", "--json").out).Head.Hash.String()
	m.happened(2)
	for name, way := range ways {
		s := m.run(command.ExitOK, append([]string{"audit", "verify", "--head", head}, way...)...)
		if !strings.Contains(s.out, "2 checkpoints over 5 events") || !strings.Contains(s.out, "head: checkpoint 2, ") {
			t.Errorf("%s: %s", name, s.out)
		}
	}
	if _, err := m.db.Exec(t.Context(), "UPDATE events SET actor = 'mallory' WHERE event_id = 2"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.db.Exec(t.Context(), "DELETE FROM events WHERE event_id = 5"); err != nil {
		t.Fatal(err)
	}

	for name, way := range ways {
		s := m.run(command.ExitFailed, append([]string{"audit", "verify", "--head", strings.Repeat("0", 64), "--head", strings.Repeat("a", 64)}, way...)...)
		for _, want := range []string{"changed", "-2 ", "missing", "-5 ", "chain_broken", "findings: 3"} {
			if !strings.Contains(s.out+s.err, want) {
				t.Errorf("%s: it does not say %q:\n%s%s", name, want, s.out, s.err)
			}
		}
		report := decode[audit.Report](t, m.run(command.ExitFailed, append([]string{"audit", "verify", "--json"}, way...)...).out)
		var got []audit.FindingKind
		for _, f := range report.Findings {
			got = append(got, f.Kind)
		}
		if diff := cmp.Diff([]audit.FindingKind{audit.Changed, audit.Missing}, got); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
	}
	s := m.run(command.ExitFailed, "audit", "verify", "--tenant", "acme", "--from", "1")
	if !strings.Contains(s.out, "1 checkpoints over 2 events") || strings.Contains(s.out, "changed") || !strings.Contains(s.out, "missing") {
		t.Errorf("continued after checkpoint 1: %s", s.out)
	}
	for _, from := range []string{"rows", "rows:2/2"} {
		s := m.run(command.ExitOK, "audit", "verify", "--tenant", "acme", "--from", from)
		if strings.Contains(s.out, "checkpoints over") || !strings.Contains(s.out, "0 actions, 0 votes and 0 attempts") {
			t.Errorf("continued from %s: %s", from, s.out)
		}
	}
	m.run(command.ExitUsage, "audit", "verify", "--from", "rows")
	m.run(command.ExitUsage, "audit", "verify", "--tenant", "acme", "--from", "rows", "--head", head)
	m.run(command.ExitUsage, "audit", "verify", "--tenant", "acme", "--from", "soon")
	m.run(command.ExitFailed, "audit", "verify", "--from", "9")
	m.run(command.ExitUsage, "audit", "verify", "--head", "abc")
	m.run(command.ExitFailed, "audit", "verify", "--tenant", "nobody")
	m.env["DATABASE_URL"] = ""
	m.run(command.ExitUsage, "audit", "verify", "--tenant", "acme")
}

func TestAuditExportWritesLines(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	ways := m.ways()
	const events = audit.ExportRows + 3
	m.happened(events)
	var first string

	for name, way := range ways {
		s := m.run(command.ExitOK, append([]string{"audit", "export", "--since", "1h"}, way...)...)
		lines := strings.Split(strings.TrimSpace(s.out), "\n")
		if len(lines) != events+1 || !strings.Contains(lines[0], `"checkpoint_no":1,"leaf":"`) {
			t.Fatalf("%s: %d lines, want %d: %s", name, len(lines), events+1, lines[0])
		}
		end := decode[audit.Closing](t, lines[events])
		if !end.End || end.Events != events || end.Next != "" || end.Head == nil || end.Tenant != m.tenant {
			t.Errorf("%s: closing line = %+v", name, end)
		}
		if first == "" {
			first = s.out
		}
		if diff := cmp.Diff(first, s.out); diff != "" {
			t.Errorf("%s: another export than over the other way:\n%s", name, diff)
		}
		s = m.run(command.ExitOK, append([]string{"audit", "export", "--until", "1h"}, way...)...)
		if strings.Count(s.out, "\n") != 1 {
			t.Errorf("%s: export of before = %s", name, s.out)
		}
	}
	for _, wrong := range [][]string{{"--since", "soon"}, {"--until", "x"}, {"--since", "1h", "--until", "2h"}} {
		m.run(command.ExitUsage, append([]string{"audit", "export"}, wrong...)...)
	}
}

func TestRetentionIsListedAndSet(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	m.run(command.ExitFailed, "retention", "set", "actions", "--period", "30d", "--action", "delete") // an operator may not
	var made identity.Issued
	if err := postgres.InTx(t.Context(), m.db, postgres.API(m.tenant), func(tx pgx.Tx) (err error) {
		made, err = identity.Issue(t.Context(), tx, m.tenant, identity.Grant{Name: "root", Role: identity.RoleAdmin}, time.Now())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	m.env["COUNTERSIGN_TOKEN"] = made.Token.Text()

	s := m.run(command.ExitOK, "retention", "set", "actions", "--period", "30d", "--action", "delete", "--note", "as agreed")

	if s.out != "actions: delete after 30d\n" {
		t.Errorf("set says %q", s.out)
	}
	if s := m.run(command.ExitOK, "retention", "list"); !strings.Contains(s.out, "actions  30d     delete") || !strings.Contains(s.out, "events   90d     report") {
		t.Errorf("list shows\n%s", s.out)
	}
	day := func(n int) envelope.Duration { return envelope.Duration(time.Duration(n) * 24 * time.Hour) }
	want := []wire.Retention{{Kind: "actions", Period: day(30), Action: "delete"}, {Kind: "events", Period: day(90), Action: "report"}}
	got := lines[wire.Retention](t, m.run(command.ExitOK, "retention", "list", "--json").out)
	for i := range got {
		got[i].ETag = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("list --json (-want +got):\n%s", diff)
	}
	for _, wrong := range [][]string{
		{"mail", "--period", "1d", "--action", "delete"}, {"events", "--action", "delete"}, {"events", "--period", "9999d24h", "--action", "delete"},
		{"events", "--period", "1d"}, {"events", "--period", "1d", "--action", "burn"}, {"--period", "1d", "--action", "delete"},
	} {
		m.run(command.ExitUsage, append([]string{"retention", "set"}, wrong...)...)
	}
}

// lines reads documents, one a line.
func lines[T any](t *testing.T, text string) []T {
	t.Helper()
	var all []T
	for line := range strings.Lines(text) {
		all = append(all, decode[T](t, line))
	}
	return all
}

func TestAThirdPartyChecksASignedHead(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	m.happened(3)
	dir := t.TempDir()
	key, public, noted := filepath.Join(dir, "head.key"), filepath.Join(dir, "head.pub"), filepath.Join(dir, "head.json")
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(public, m.run(command.ExitOK, "audit", "keygen", key).out)
	m.run(command.ExitFailed, "audit", "keygen", key)
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file = %v, %v", info, err)
	}

	for name, way := range m.ways() {
		text := m.run(command.ExitOK, append([]string{"audit", "head", "--sign", key}, way...)...).out
		write(noted, text)
		hash := decode[struct{ Hash string }](t, text).Hash

		m.run(command.ExitOK, "audit", "head", "--check", noted, "--public-key", public)
		m.run(command.ExitOK, append([]string{"audit", "verify", "--head", hash}, way...)...)
		write(noted, strings.Replace(text, hash, strings.Repeat("a", 64), 1))
		if s := m.run(command.ExitFailed, "audit", "head", "--check", noted, "--public-key", public); !strings.Contains(s.err, "not signed by this key") {
			t.Errorf("%s: a changed note: %s", name, s.err)
		}
	}
	m.run(command.ExitUsage, "audit", "head", "--check", noted)
}

func TestANoteIsFoundInItsChainAlone(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	m.happened(3)
	file := filepath.Join(t.TempDir(), "head.json")
	verify := func(exit int, way []string, text, want string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := m.run(exit, append([]string{"audit", "verify", "--head", file}, way...)...)
		if !strings.Contains(s.out+s.err, want) {
			t.Errorf("verify --head of %s says:\n%s%s\nwant %q", text, s.out, s.err, want)
		}
	}
	for name, way := range m.ways() {
		if _, err := m.db.Exec(t.Context(), "UPDATE checkpoints SET noted_at = NULL"); err != nil {
			t.Fatal(err)
		}
		text := m.run(command.ExitOK, append([]string{"audit", "head"}, way...)...).out
		m.run(command.ExitOK, append([]string{"audit", "head"}, way...)...)
		if n := m.count("SELECT count(1) FROM checkpoints WHERE noted_at IS NOT NULL"); n != 1 {
			t.Errorf("%s: %d heads are recorded as noted, want 1", name, n)
		}
		hash := decode[struct{ Hash string }](t, text).Hash

		verify(command.ExitOK, way, text, "the chain contains the noted head: checkpoint 1, "+hash)
		verify(command.ExitFailed, way, strings.Replace(text, hash, strings.Repeat("a", 64), 1), "no checkpoint has the known head")
		verify(command.ExitFailed, way, strings.Replace(text, `"checkpoint_no":1`, `"checkpoint_no":7`, 1), "the hash of checkpoint 7 in the note")
		verify(command.ExitFailed, way, strings.Replace(text, m.tenant.String(), "0190a1b2-0000-7000-8000-000000000009", 1), "the noted head belongs to tenant 0190a1b2-0000-7000-8000-000000000009")
		verify(command.ExitFailed, way, strings.Replace(text, `"hash"`, `"hush"`, 1), "is not a note of a head")
		verify(command.ExitFailed, way, "heads", "is not a note of a head")
	}
	m.run(command.ExitUsage, "audit", "verify", "--head", strings.Repeat("0", 64))
}

func TestAViewersNoteIsNotRecorded(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	m.happened(3)
	var made identity.Issued
	if err := postgres.InTx(t.Context(), m.db, postgres.API(m.tenant), func(tx pgx.Tx) (err error) {
		made, err = identity.Issue(t.Context(), tx, m.tenant, identity.Grant{Name: "auditor", Role: identity.RoleViewer}, time.Now())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	m.env["COUNTERSIGN_TOKEN"] = made.Token.Text()

	s := m.run(command.ExitOK, "audit", "head")

	if !strings.Contains(s.out, `"hash":"`) || !strings.Contains(s.err, "Not recorded") {
		t.Errorf("audit head of a viewer = %s%s", s.out, s.err)
	}
	if n := m.count("SELECT count(1) FROM checkpoints WHERE noted_at IS NOT NULL"); n != 0 {
		t.Errorf("%d heads are recorded as noted, want none", n)
	}
}
