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
	return "PostgreSQL " + set["server_version_num"] + " is configured to keep commits through a crash"
}

func serverFindings(set map[string]string) []Finding {
	version, _ := strconv.Atoi(set["server_version_num"]) // 0 passes for new, and for many connections
	connections, _ := strconv.Atoi(set["max_connections"])
	isolation := set["default_transaction_isolation"]
	wrong := apply(
		rule{version > 0 && version < oldestVersion, fail(fmt.Sprintf("PostgreSQL is at version %d", version/10000), "Upgrade it to 15 or newer.")},
		rule{set["in_recovery"] == "true", fail("this server is a standby, which takes no writes", "Point DATABASE_URL at the primary.")},
		rule{set["synchronous_commit"] == "off", fail("synchronous_commit is off: a crash loses recorded results, and those calls are repeated",
			"ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf(); and see that no database or user sets it otherwise.")},
		rule{set["standbys"] != "" && set["standbys"] != "0" && set["synchronous_standby_names"] == "", warn(
			"standbys replicate, and synchronous_standby_names is empty: a failover loses unreplicated commits, and the database is then held",
			"ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (…)'; SELECT pg_reload_conf(); on the primary and on each standby.")},
		rule{set["synchronous"] == "0" && set["synchronous_standby_names"] != "", fail(
			"no standby of synchronous_standby_names replicates: commits wait, and nothing is sent",
			"Start one of these standbys, or correct the names: they are the application_name of each standby's primary_conninfo.")},
		rule{set["synchronous_commit"] == "local" && set["synchronous_standby_names"] != "", warn(
			"synchronous_commit is local: commits do not wait for a standby, and a failover loses unreplicated ones",
			"ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf(); and see that no database or user sets it otherwise.")},
		rule{isolation != "read committed", warn("default_transaction_isolation is "+isolation+": concurrent claims fail and are retried",
			"ALTER SYSTEM SET default_transaction_isolation = 'read committed'; SELECT pg_reload_conf();")},
		rule{connections > 0 && connections < fewConnections, warn(fmt.Sprintf("max_connections is %d: a worker takes up to 20 and an API up to 10", connections),
			"Raise it to 100 and restart, or set COUNTERSIGN_DB_MAX_CONNS lower, or put PgBouncer in front of it.")},
	)
	for _, must := range []struct{ name, why string }{
		{"fsync", "a crash of the machine ruins the data"},
		{"full_page_writes", "a crash of the machine can tear pages"},
		{"autovacuum", "nothing removes what is dead, and the outbox gets slower without end"},
		{"track_counts", "autovacuum does not know what to do"},
	} {
		wrong = append(wrong, apply(rule{set[must.name] == "off",
			fail(must.name+" is off: "+must.why, fmt.Sprintf("ALTER SYSTEM SET %s = on; SELECT pg_reload_conf();", must.name))})...)
	}
	return wrong
}

// skew is the lead of the database's clock, and its uncertainty.
type skew struct{ ahead, doubt time.Duration }

// readSkew measures three times and returns the fastest measurement.
func readSkew(ctx context.Context, d database) (best skew, err error) {
	const tries = 3
	for i := range tries {
		before := d.clock()
		at, err := readClock(ctx, d)
		if err != nil {
			return best, err
		}
		if half := d.clock().Sub(before) / 2; i == 0 || half < best.doubt {
			best = skew{at.Sub(before.Add(half)), half}
		}
	}
	return best, nil
}

func clockFindings(s skew) []Finding {
	side := "ahead of"
	if s.ahead < 0 {
		side = "behind"
	}
	return apply(rule{s.ahead.Abs()-s.doubt > maxSkew, warn(
		fmt.Sprintf("the database's clock is %s %s this machine's", s.ahead.Abs().Round(100*time.Millisecond), side),
		"Have both machines' clocks set by NTP. Limits, leases and schedules go by the database's, logs and traces by each machine's.")})
}

func transactionFindings(a activity) []Finding {
	wrong := apply(rule{!a.All, warn("the sessions of other users are not visible", "GRANT pg_read_all_stats TO the user of DATABASE_URL, and run doctor again.")})
	for _, s := range a.Sessions {
		who := fmt.Sprintf("the session %d (%s, %s)", s.PID, s.User, s.App)
		do := fmt.Sprintf("Find out what it does. SELECT pg_terminate_backend(%d); ends it, and idle_in_transaction_session_timeout prevents the next.", s.PID)
		idle, open := age(s.StateSeconds), age(s.Seconds)
		switch {
		case s.State == "idle in transaction" && idle > longTransaction:
			wrong = append(wrong, fail(fmt.Sprintf("%s has been idle in a transaction for %s: vacuum cannot remove newer dead rows", who, idle), do))
		case s.State == "idle in transaction" && idle > longIdle:
			wrong = append(wrong, warn(fmt.Sprintf("%s has been idle in a transaction for %s", who, idle), do))
		case open > longTransaction:
			wrong = append(wrong, warn(fmt.Sprintf("%s has had a transaction open for %s", who, open), do))
		}
	}
	const freeze = "Let VACUUM (FREEZE) run over the whole database while few use it, and look why autovacuum did not: see what holds it back above."
	return append(wrong, apply(
		rule{a.XminAge > manyUnvacuumed, warn(fmt.Sprintf("the oldest snapshot is %d transactions old: vacuum cannot remove newer dead rows", a.XminAge),
			"Check pg_stat_activity, pg_prepared_xacts and pg_replication_slots for the oldest backend_xmin, transaction and xmin.")},
		rule{a.FrozenAge > tooOldFrozen,
			fail(fmt.Sprintf("the oldest transaction id is %d old; at 2 billion the server stops accepting writes", a.FrozenAge), freeze)},
		rule{a.FrozenAge > oldFrozen && a.FrozenAge <= tooOldFrozen,
			warn(fmt.Sprintf("the oldest transaction id is %d old; autovacuum should have frozen it at 200 million", a.FrozenAge), freeze)},
	)...)
}

func preparedFindings(x prepared) []Finding {
	open := age(x.Seconds)
	return []Finding{grade(open > longPrepared,
		fmt.Sprintf("the prepared transaction %q has been open for %s: it keeps its locks and holds vacuum back", x.ID, open),
		fmt.Sprintf("COMMIT PREPARED '%s'; or ROLLBACK PREPARED '%[1]s'; Countersign itself makes none.", x.ID))}
}

func slotFindings(s slot) []Finding {
	held := size(s.Held)
	drop := fmt.Sprintf("Bring its replica back, or SELECT pg_drop_replication_slot('%s'); and set max_slot_wal_keep_size.", s.Name)
	switch {
	case s.WAL == "unreserved" || s.WAL == "lost":
		return []Finding{warn(fmt.Sprintf("the replication slot %s has lost WAL that its replica needs", s.Name), "Rebuild the replica. "+drop)}
	case s.Held > tooMuchWAL:
		return []Finding{fail(fmt.Sprintf("the replication slot %s holds %s of WAL: the disk will fill up", s.Name, held), drop)}
	case !s.Active || s.Held > muchWAL:
		return []Finding{warn(fmt.Sprintf("the replication slot %s (active: %t) holds %s of WAL", s.Name, s.Active, held), drop)}
	}
	return nil
}

// size formats a number of bytes.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d kB", n>>10)
}
