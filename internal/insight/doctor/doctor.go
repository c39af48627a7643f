// Package doctor examines Countersign's database: the schema and roles, the
// maintenance of the server, and the periodic work. It owns the thresholds for
// findings, and the texts of their remedies. It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// Status is the result of a check.
type Status string

// The statuses.
const (
	// OK needs no action.
	OK Status = "ok"
	// Warning needs attention.
	Warning Status = "warning"
	// Failed needs action: data, the separation of tenants, or the work are at
	// risk.
	Failed Status = "failed"
)

// Finding is one result of a check.
type Finding struct {
	// Check is the name of the check.
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Message describes the state, and Fix the remedy; Fix is empty if the
	// status is OK.
	Message string `json:"message"`
	Fix     string `json:"fix,omitzero"`
}

// The checks, by name.
const (
	CheckServer       = "server"
	CheckMigrations   = "migrations"
	CheckRoles        = "roles"
	CheckDBLogins     = "database logins"
	CheckSchemas      = "schemas"
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
	CheckHeads        = "noted heads"
	CheckDeadLetters  = "dead letters"
	CheckSources      = "sources"
	CheckFence        = "fence"
)

// check is one examination of the database.
type check struct {
	name string
	// schema is set if the check needs the migrated schema.
	schema bool
	// run returns the findings, or a description of the healthy state.
	run run
}

type run func(ctx context.Context, d database) (healthy string, wrong []Finding, err error)

// examine returns a run that reads a value, describes it, and returns its
// findings.
func examine[T any](read func(context.Context, database) (T, error), describe func(T) string, find func(T) []Finding) run {
	return func(ctx context.Context, d database) (string, []Finding, error) {
		got, err := read(ctx, d)
		if err != nil {
			return "", nil, err
		}
		return describe(got), find(got), nil
	}
}

// words returns a describe function with a constant result.
func words[T any](text string) func(T) string { return func(T) string { return text } }

// counted returns a describe function that formats the length of a list.
func counted[T any](format string) func([]T) string {
	return func(all []T) string { return fmt.Sprintf(format, len(all)) }
}

// each returns a find function that joins the findings of the elements of a
// list.
func each[T any](find func(T) []Finding) func([]T) []Finding {
	return func(all []T) (wrong []Finding) {
		for _, one := range all {
			wrong = append(wrong, find(one)...)
		}
		return wrong
	}
}

func checks() []check {
	return []check{
		{CheckServer, false, examine(readSettings, describeServer, serverFindings)},
		{CheckMigrations, false, examine(readVersions, describeVersions, versionFindings)},
		{CheckRoles, false, examine(readRoles, counted[role]("the %d roles can neither log in nor see past row security"), rolesFindings)},
		{CheckSchemas, true, examine(readExposures, words[[]postgres.Exposure]("only their owner may create in them"), each(exposureFindings))},
		{CheckRowSecurity, true, examine(readGuarded, counted[guarded]("it is forced on %d tables"), each(rowSecurityFindings))},
		{CheckGrants, true, examine(readGrants, counted[grant]("the %d that there are are those of the migrations"), grantFindings)},
		{CheckFence, true, examine(readFence, describeFence, fenceFindings)},
		{CheckPartitions, true, examine(readPartitions, describePartitions, partitionFindings)},
		{CheckClock, false, examine(readSkew, words[skew]("this machine and the database agree to a second"), clockFindings)},
		{CheckTransactions, false, examine(readActivity, words[activity]("none holds vacuum back"), transactionFindings)},
		{CheckPrepared, false, examine(readPrepared, words[[]prepared]("none is left behind"), each(preparedFindings))},
		{CheckSlots, false, examine(readSlots, counted[slot]("there are %d, and none holds much back"), each(slotFindings))},
		{CheckBloat, true, examine(readHot, describeTables, each(tableFindings))},
		{CheckLeases, true, examine(readLeases, describeLeases, leaseFindings)},
		{CheckPauses, true, examine(readPauses, words[pauses]("what they hit has been ended, and what they held is woken"), pauseFindings)},
		{CheckCheckpoints, true, examine(readFleet, words[overview.Fleet]("checkpoints cover events soon after they happen"), checkpointFindings)},
		{CheckHeads, true, examine(readUnnoted, words[[]unnoted]("no checkpoint is older than a week without a head that was noted since"), each(unnotedFindings))},
		{CheckSources, true, examine(readUnlisted, words[[]unlisted]("all that are switched on were listed"), each(unlistedFindings))},
		{CheckDBLogins, true, examine(readWrongLogins, words[[]wrongLogin]("all that may propose in SQL are there, and none is a superuser"), each(loginFindings))},
		{CheckDeadLetters, true, examine(readFleet, words[overview.Fleet]("few, and none whose outcome nobody knows"), deadLetterFindings)},
	}
}

// database is the examined database.
type database struct {
	db postgres.Begins
	// clock is the clock of this machine.
	clock func() time.Time
}

// in runs fn in a read-only transaction of a scope, with a short timeout.
func (d database) in(ctx context.Context, scope postgres.Scope, fn func(tx pgx.Tx) error) error {
	return postgres.InTx(ctx, d.db, scope, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '10s'"); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Run runs all checks. A check that fails with an error, such as a missing
// privilege, is reported as a warning. Without the schema the checks that need
// it are skipped; the check of migrations has the remedy. clock is that of this
// machine, which is compared with the database's.
func Run(ctx context.Context, db postgres.Begins, clock func() time.Time) []Finding {
	d := database{db, clock}
	var all []Finding
	migrated := true
	for _, c := range checks() {
		if c.schema && !migrated {
			continue
		}
		healthy, wrong, err := c.run(ctx, d)
		if err != nil {
			wrong = append(wrong, Finding{
				Status: Warning, Message: "this could not be checked: " + err.Error(),
				Fix: "Connect as a user that was granted the roles countersign_worker and pg_monitor, or as a superuser.",
			})
		}
		if len(wrong) == 0 {
			all = append(all, Finding{c.name, OK, healthy, ""})
		}
		for _, f := range wrong {
			f.Check = c.name
			all = append(all, f)
			migrated = migrated && (c.name != CheckMigrations || f.Status != Failed)
		}
	}
	return all
}

// warn returns a warning with its fix.
func warn(what, do string) Finding { return Finding{Status: Warning, Message: what, Fix: do} }

// fail returns a failure with its fix.
func fail(what, do string) Finding { return Finding{Status: Failed, Message: what, Fix: do} }

// grade returns a failure with its fix, or a warning unless it is severe.
func grade(severe bool, what, do string) Finding {
	if severe {
		return fail(what, do)
	}
	return warn(what, do)
}

// rule is a condition, with the finding if the condition holds.
type rule struct {
	wrong   bool
	finding Finding
}

// apply returns the findings of the rules that apply.
func apply(rules ...rule) (wrong []Finding) {
	for _, r := range rules {
		if r.wrong {
			wrong = append(wrong, r.finding)
		}
	}
	return wrong
}

// age converts seconds to a duration.
func age(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}

const migrateFirst = "Run `countersign migrate` with DATABASE_URL of a user that may create roles and schemas."
