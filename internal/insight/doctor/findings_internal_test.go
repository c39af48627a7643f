package doctor

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

var update = flag.Bool("update", false, "rewrite grants.txt from the migrations")

// TestGrantsAreThoseOfTheMigrations compares grants.txt with a database that was
// just migrated. An author of a new grant reviews the difference.
func TestGrantsAreThoseOfTheMigrations(t *testing.T) {
	t.Parallel()
	got, err := readGrants(t.Context(), database{db: dbtest.DB(t)})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, g := range got {
		lines = append(lines, g.line())
	}
	slices.Sort(lines)
	text := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile("grants.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}

	if diff := cmp.Diff(grantsText, text); diff != "" {
		t.Errorf("look at each change, then run go test ./internal/insight/doctor -update (-listed +migrated):\n%s", diff)
	}
}

// TestOpenTransactionsAreReported holds a transaction open.
func TestOpenTransactionsAreReported(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	name := db.Config().ConnConfig.RuntimeParams["application_name"]
	open, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Rollback(t.Context()) }()
	if _, err := open.Exec(t.Context(), "CREATE TABLE countersign_data.held ()"); err != nil {
		t.Fatal(err)
	}

	a, err := readActivity(t.Context(), database{db: db})
	if err != nil {
		t.Fatal(err)
	}

	idle := slices.IndexFunc(a.Sessions, func(s session) bool { return s.State == "idle in transaction" && s.App == name })
	if !a.All || idle < 0 || a.Sessions[idle].PID == 0 || a.Sessions[idle].User != "postgres" {
		t.Errorf("readActivity = %+v, want the session that is idle in a transaction", a)
	}
}

// texts returns the statuses and the messages of findings.
func texts(found []Finding) (all []string) {
	for _, f := range found {
		if f.Fix == "" {
			all = append(all, "has no fix")
		}
		all = append(all, string(f.Status)+": "+f.Message)
	}
	return all
}

// TestFindings checks states that a test cannot produce on a server in time.
func TestFindings(t *testing.T) {
	t.Parallel()
	day := func(text string) time.Time {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	sane := map[string]string{"server_version_num": "150000", "fsync": "on", "default_transaction_isolation": "read committed", "max_connections": "100"}
	with := func(name, value string) map[string]string {
		set := map[string]string{name: value}
		for k, v := range sane {
			if k != name {
				set[k] = v
			}
		}
		return set
	}
	for name, tt := range map[string]struct {
		found []Finding
		want  []string
	}{
		"a sane server":       {serverFindings(sane), nil},
		"an old server":       {serverFindings(with("server_version_num", "140009")), []string{"failed: PostgreSQL is at version 14"}},
		"a standby that lags": {serverFindings(with("standbys", "1")), []string{"warning: standbys replicate, and synchronous_standby_names is empty: a failover loses unreplicated commits, and the database is then held"}},
		"commits that do not wait": {
			serverFindings(map[string]string{"synchronous_standby_names": "*", "synchronous_commit": "local", "default_transaction_isolation": "read committed"}),
			[]string{"warning: synchronous_commit is local: commits do not wait for a standby, and a failover loses unreplicated ones"},
		},
		"a standby": {serverFindings(with("in_recovery", "true")), []string{"failed: this server is a standby, which takes no writes"}},
		"counts are off": {
			serverFindings(with("track_counts", "off")), []string{"failed: track_counts is off: autovacuum does not know what to do"},
		},

		"idle for seconds": {transactionFindings(activity{All: true, Sessions: []session{{State: "idle in transaction", Seconds: 200, StateSeconds: 200}}}), nil},
		"idle for minutes": {
			transactionFindings(activity{All: true, Sessions: []session{{PID: 7, User: "ana", App: "psql", State: "idle in transaction", Seconds: 400, StateSeconds: 400}}}),
			[]string{"warning: the session 7 (ana, psql) has been idle in a transaction for 6m40s"},
		},
		"idle for hours": {
			transactionFindings(activity{All: true, Sessions: []session{{PID: 7, User: "ana", App: "psql", State: "idle in transaction", Seconds: 7200, StateSeconds: 7200}}}),
			[]string{"failed: the session 7 (ana, psql) has been idle in a transaction for 2h0m0s: vacuum cannot remove newer dead rows"},
		},
		"busy for hours": {
			transactionFindings(activity{All: true, Sessions: []session{{PID: 7, User: "ana", App: "report", State: "active", Seconds: 7200}}}),
			[]string{"warning: the session 7 (ana, report) has had a transaction open for 2h0m0s"},
		},
		"an old snapshot": {
			transactionFindings(activity{All: true, XminAge: 6_000_000}),
			[]string{"warning: the oldest snapshot is 6000000 transactions old: vacuum cannot remove newer dead rows"},
		},
		"ids run low": {
			transactionFindings(activity{All: true, FrozenAge: 600_000_000}),
			[]string{"warning: the oldest transaction id is 600000000 old; autovacuum should have frozen it at 200 million"},
		},
		"ids run out": {
			transactionFindings(activity{All: true, FrozenAge: 1_600_000_000}),
			[]string{"failed: the oldest transaction id is 1600000000 old; at 2 billion the server stops accepting writes"},
		},

		"prepared long ago": {
			preparedFindings(prepared{"x", 600}), []string{`failed: the prepared transaction "x" has been open for 10m0s: it keeps its locks and holds vacuum back`},
		},
		"a slot in use":    {slotFindings(slot{"s", true, 1 << 20, "reserved"}), nil},
		"a slot that lags": {slotFindings(slot{"s", true, 3 << 30, "extended"}), []string{"warning: the replication slot s (active: true) holds 3.0 GB of WAL"}},
		"a slot that fills the disk": {
			slotFindings(slot{"s", true, 11 << 30, "extended"}), []string{"failed: the replication slot s holds 11.0 GB of WAL: the disk will fill up"},
		},
		"a slot that is lost": {
			slotFindings(slot{"s", false, 0, "lost"}), []string{"warning: the replication slot s has lost WAL that its replica needs"},
		},

		"no next month, in time": {
			partitionFindings(partitions{Today: day("2026-11-10"), Months: []string{"202611"}, KeptDays: -1}),
			[]string{"warning: tool_executions has no partition for the next month"},
		},
		"no next month, and soon": {
			partitionFindings(partitions{Today: day("2026-11-29"), Months: []string{"202611"}, KeptDays: -1}),
			[]string{"failed: tool_executions has no partition for the next month"},
		},
		"at the end of a long month": {
			partitionFindings(partitions{Today: day("2026-10-31"), Months: []string{"202610", "202611"}, KeptDays: -1}), nil,
		},
		"old months that somebody keeps": {
			partitionFindings(partitions{Today: day("2026-11-10"), Months: []string{"202501", "202611", "202612"}, KeptDays: -1}), nil,
		},

		"some dead rows":        {tableFindings(hot{Name: "outbox", Dead: 40_000}), nil},
		"dead rows of a giant":  {tableFindings(hot{Name: "actions", Live: 10_000_000, Dead: 6_000_000, VacuumSeconds: 60}), nil},
		"nobody vacuums it":     {tableFindings(hot{Name: "actions", Live: 10_000_000, Dead: 6_000_000, Bytes: 3 << 30, VacuumSeconds: 7200}), []string{"warning: actions has 6000000 dead rows beside 10000000 that live, in 3.0 GB; it was vacuumed 2h0m0s ago"}},
		"more dead than living": {tableFindings(hot{Name: "outbox", Live: 10, Dead: 6_000_000, Bytes: 5 << 20, VacuumSeconds: -1}), []string{"failed: outbox has 6000000 dead rows beside 10 that live, in 5.0 MB; it was vacuumed never"}},

		"clocks within reason":    {clockFindings(skew{900 * time.Millisecond, 0}), nil},
		"clocks, but a slow line": {clockFindings(skew{3 * time.Second, 2 * time.Second}), nil},
		"a kill, for long":        {pauseFindings(pauses{Left: []unfinished{{Scope: "tenant", Killing: true, Seconds: 1200}}}), []string{"failed: the kill of tenant has not ended all that it hit, after 20m0s"}},
	} {
		if diff := cmp.Diff(tt.want, texts(tt.found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestExaminingOnlyReads runs every statement in a read-only transaction.
func TestExaminingOnlyReads(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	err := postgres.InTx(t.Context(), db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Reset()

	for _, f := range Run(t.Context(), db, time.Now) {
		if strings.Contains(f.Message, "could not be examined") {
			t.Errorf("%s: %s", f.Check, f.Message)
		}
	}
}
