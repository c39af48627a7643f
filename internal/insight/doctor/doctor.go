// Package doctor examines the database that Countersign stands on: whether it
// is set up as the migrations left it, whether it is kept well, and whether
// the periodic work gets done. It owns the limits beyond which something is
// wrong, and the words that say what to do. It refuses to change anything.
package doctor

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
)

// Status is how something is.
type Status string

// The statuses.
const (
	// OK needs nothing.
	OK Status = "ok"
	// Warning needs somebody's eye.
	Warning Status = "warning"
	// Failed must be put right: data, tenants' borders or the work are at
	// risk.
	Failed Status = "failed"
)

// Finding is what one check came to.
type Finding struct {
	// Check names it.
	Check  string `json:"check"`
	Status Status `json:"status"`
	// What is how things are, and Do what to do about it; Do is empty if the
	// status is OK.
	Message string `json:"message"`
	Fix     string `json:"fix,omitzero"`
}

// The checks, by name.
const (
	CheckServer       = "server"
	CheckMigrations   = "migrations"
	CheckRoles        = "roles"
	CheckRowSecurity  = "row security"
	CheckGrants       = "grants"
	CheckPartitions   = "partitions"
	CheckClock        = "clock"
	CheckTransactions = "transactions"
	CheckPrepared     = "prepared transactions"
	CheckSlots        = "replication slots"
	CheckBloat        = "bloat"
	CheckLeases       = "leases"
	CheckPauses       = "pauses"
	CheckCheckpoints  = "checkpoints"
	CheckDeadLetters  = "dead letters"
)

// check is one look at the database.
type check struct {
	name string
	// schema says that it makes no sense without the migrations.
	schema bool
	// look returns what is wrong, or says in words how well things are.
	look func(ctx context.Context, p patient) (well string, wrong []Finding, err error)
}

func checks() []check {
	return []check{
		{CheckServer, false, checkServer},
		{CheckMigrations, false, checkMigrations},
		{CheckRoles, false, checkRoles},
		{CheckRowSecurity, true, checkRowSecurity},
		{CheckGrants, true, checkGrants},
		{CheckPartitions, true, checkPartitions},
		{CheckClock, false, checkClock},
		{CheckTransactions, false, checkTransactions},
		{CheckPrepared, false, checkPrepared},
		{CheckSlots, false, checkSlots},
		{CheckBloat, true, checkBloat},
		{CheckLeases, true, checkLeases},
		{CheckPauses, true, checkPauses},
		{CheckCheckpoints, true, checkSeals},
		{CheckDeadLetters, true, checkDeadLetters},
	}
}

// patient is the database that is examined.
type patient struct {
	db postgres.Begins
	// clock is this machine's.
	clock func() time.Time
}

// in runs fn in a transaction of a scope that reads only, and not for long.
func (p patient) in(ctx context.Context, scope postgres.Scope, fn func(tx pgx.Tx) error) error {
	return postgres.InTx(ctx, p.db, scope, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '10s'"); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Examine goes through all checks. What cannot be looked at, for want of a
// right, say, is a warning of its own. Without the schema the checks that
// need it are left out: the one of migrations says what to do. The clock is
// that of this machine, which is compared with the database's.
func Run(ctx context.Context, db postgres.Begins, clock func() time.Time) []Finding {
	p := patient{db, clock}
	var all []Finding
	migrated := true
	for _, c := range checks() {
		if c.schema && !migrated {
			continue
		}
		well, wrong, err := c.look(ctx, p)
		if err != nil {
			wrong = append(wrong, Finding{
				Status: Warning, Message: "this could not be looked at: " + err.Error(),
				Fix: "Connect as a user that was granted the roles countersign_worker and pg_monitor, or as a superuser.",
			})
		}
		if len(wrong) == 0 {
			all = append(all, Finding{c.name, OK, well, ""})
		}
		for _, f := range wrong {
			f.Check = c.name
			all = append(all, f)
			migrated = migrated && (c.name != CheckMigrations || f.Status != Failed)
		}
	}
	return all
}

// warn and fail make findings.
func warn(what, do string) Finding { return Finding{Status: Warning, Message: what, Fix: do} }

func fail(what, do string) Finding { return Finding{Status: Failed, Message: what, Fix: do} }

const migrateFirst = "Run `countersign migrate` with DATABASE_URL of a user that may create roles and schemas."
