package doctor

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// The limits.
const (
	oldestVersion  = 150000
	fewConnections = 50
	maxSkew        = time.Second

	longTransaction = time.Hour
	longIdle        = 5 * time.Minute
	longPrepared    = 5 * time.Minute

	muchWAL        = 1 << 30
	tooMuchWAL     = 10 << 30
	oldFrozen      = 500_000_000
	tooOldFrozen   = 1_500_000_000
	manyUnvacuumed = 5_000_000
)

func describeServer(set map[string]string) string {
	return "PostgreSQL " + set["server_version_num"] + " is set up to keep what it says it has"
}

func serverFindings(set map[string]string) (wrong []Finding) {
	if n, err := strconv.Atoi(set["server_version_num"]); err == nil && n < oldestVersion {
		wrong = append(wrong, fail(fmt.Sprintf("PostgreSQL is of version %d", n/10000), "Upgrade it to 15 or newer."))
	}
	if set["in_recovery"] == "true" {
		wrong = append(wrong, fail("this server is a standby, which takes no writes", "Point DATABASE_URL at the primary."))
	}
	for _, must := range []struct{ name, why string }{
		{"fsync", "a crash of the machine ruins the data"},
		{"full_page_writes", "a crash of the machine can tear pages"},
		{"autovacuum", "nothing removes what is dead, and the outbox gets slower without end"},
		{"track_counts", "autovacuum does not know what to do"},
	} {
		if set[must.name] == "off" {
			wrong = append(wrong, fail(must.name+" is off: "+must.why, fmt.Sprintf("ALTER SYSTEM SET %s = on; SELECT pg_reload_conf();", must.name)))
		}
	}
	if set["synchronous_commit"] == "off" {
		wrong = append(wrong, fail("synchronous_commit is off: a crash forgets what was settled, and calls that were made are made again",
			"ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf(); and see that no database or user sets it otherwise."))
	}
	if v := set["default_transaction_isolation"]; v != "read committed" {
		wrong = append(wrong, warn("default_transaction_isolation is "+v+": claims that run side by side fail and are made again",
			"ALTER SYSTEM SET default_transaction_isolation = 'read committed'; SELECT pg_reload_conf();"))
	}
	if n, err := strconv.Atoi(set["max_connections"]); err == nil && n < fewConnections {
		wrong = append(wrong, warn(fmt.Sprintf("max_connections is %d: a worker takes up to 20 and an API up to 10", n),
			"Raise it to 100 and restart, or set COUNTERSIGN_DB_MAX_CONNS lower, or put PgBouncer before it."))
	}
	return wrong
}

func checkClock(ctx context.Context, d database) (string, []Finding, error) {
	const tries = 3
	var skew, doubt time.Duration
	for i := range tries {
		before := d.clock()
		at, err := readClock(ctx, d)
		if err != nil {
			return "", nil, err
		}
		took := d.clock().Sub(before)
		if d := took / 2; i == 0 || d < doubt {
			skew, doubt = at.Sub(before.Add(took/2)), d
		}
	}
	return "this machine and the database agree to a second", clockFindings(skew, doubt), nil
}

func clockFindings(skew, doubt time.Duration) []Finding {
	if skew.Abs()-doubt <= maxSkew {
		return nil
	}
	ahead := "ahead of"
	if skew < 0 {
		ahead = "behind"
	}
	return []Finding{warn(fmt.Sprintf("the database's clock is %s %s this machine's", skew.Abs().Round(100*time.Millisecond), ahead),
		"Have both machines' clocks set by NTP. Limits, leases and schedules go by the database's, logs and traces by each machine's.")}
}

func checkTransactions(ctx context.Context, d database) (string, []Finding, error) {
	a, sessions, err := readActivity(ctx, d)
	if err != nil {
		return "", nil, err
	}
	return "none holds vacuum back", transactionFindings(a, sessions), nil
}

func transactionFindings(a activity, sessions []session) (wrong []Finding) {
	if !a.All {
		wrong = append(wrong, warn("the sessions of other users cannot be seen", "GRANT pg_read_all_stats TO the user of DATABASE_URL, and look again."))
	}
	for _, s := range sessions {
		who := fmt.Sprintf("the session %d (%s, %s)", s.PID, s.User, s.App)
		do := fmt.Sprintf("Find out what it does. SELECT pg_terminate_backend(%d); ends it, and idle_in_transaction_session_timeout prevents the next.", s.PID)
		idle, open := age(s.StateSeconds), age(s.Seconds)
		switch {
		case s.State == "idle in transaction" && idle > longTransaction:
			wrong = append(wrong, fail(fmt.Sprintf("%s has been idle in a transaction for %s: nothing that died since can be removed", who, idle), do))
		case s.State == "idle in transaction" && idle > longIdle:
			wrong = append(wrong, warn(fmt.Sprintf("%s has been idle in a transaction for %s", who, idle), do))
		case open > longTransaction:
			wrong = append(wrong, warn(fmt.Sprintf("%s has had a transaction open for %s", who, open), do))
		}
	}
	if a.XminAge > manyUnvacuumed {
		wrong = append(wrong, warn(fmt.Sprintf("the oldest snapshot is %d transactions old: nothing that died since can be removed", a.XminAge),
			"Look in pg_stat_activity, pg_prepared_xacts and pg_replication_slots for the oldest backend_xmin, transaction and xmin."))
	}
	const freeze = "Let VACUUM (FREEZE) run over the whole database while few use it, and look why autovacuum did not: see what holds it back above."
	switch {
	case a.FrozenAge > tooOldFrozen:
		wrong = append(wrong, fail(fmt.Sprintf("transaction ids are %d old, and run out at 2 billion: the server would stop taking writes", a.FrozenAge), freeze))
	case a.FrozenAge > oldFrozen:
		wrong = append(wrong, warn(fmt.Sprintf("transaction ids are %d old; autovacuum should have frozen them at 200 million", a.FrozenAge), freeze))
	}
	return wrong
}

func preparedFindings(x prepared) []Finding {
	open := age(x.Seconds)
	return []Finding{grade(open > longPrepared,
		fmt.Sprintf("the prepared transaction %q has waited for %s: it keeps its locks and holds vacuum back", x.ID, open),
		fmt.Sprintf("COMMIT PREPARED '%s'; or ROLLBACK PREPARED '%[1]s'; Countersign itself makes none.", x.ID))}
}

func slotFindings(s slot) []Finding {
	held := size(s.Held)
	drop := fmt.Sprintf("Bring its replica back, or SELECT pg_drop_replication_slot('%s'); and set max_slot_wal_keep_size.", s.Name)
	switch {
	case s.WAL == "unreserved" || s.WAL == "lost":
		return []Finding{warn(fmt.Sprintf("the replication slot %s has lost WAL that its replica needs", s.Name), "Build the replica anew. "+drop)}
	case s.Held > tooMuchWAL:
		return []Finding{fail(fmt.Sprintf("the replication slot %s holds %s of WAL: the disk will fill up", s.Name, held), drop)}
	case !s.Active || s.Held > muchWAL:
		return []Finding{warn(fmt.Sprintf("the replication slot %s (active: %t) holds %s of WAL", s.Name, s.Active, held), drop)}
	}
	return nil
}

// size writes bytes as people read them.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d kB", n>>10)
}
