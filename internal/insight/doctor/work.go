package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// The limits.
const (
	// fewDead is the number of dead rows that is normal for any table, until
	// autovacuum runs.
	fewDead         = 50_000
	tooManyDead     = 5_000_000
	staleVacuum     = time.Hour
	longOverdue     = 10 * time.Minute
	longDue         = 5 * time.Minute
	longUncovered   = 10 * time.Minute
	uncoveredFail   = time.Hour
	longSweep       = 10 * time.Minute
	manyDeadLetters = 1000
)

const noWorker = "See whether a worker runs, and what its log says. `countersign top` shows what waits and why."

func describeTables(tables []hot) string {
	var total int64
	for _, t := range tables {
		total += t.Bytes
	}
	return fmt.Sprintf("%d hot tables of %s have few dead rows", len(tables), size(total))
}

func tableFindings(t hot) (wrong []Finding) {
	last := "never"
	if t.VacuumSeconds >= 0 {
		last = age(t.VacuumSeconds).String() + " ago"
	}
	if t.Off {
		wrong = append(wrong, fail("autovacuum passes "+t.Name+" over", fmt.Sprintf("%sALTER TABLE %s RESET (autovacuum_enabled);", inSchema, t.Name)))
	}
	what := fmt.Sprintf("%s has %d dead rows beside %d that live, in %s; it was vacuumed %s", t.Name, t.Dead, t.Live, size(t.Bytes), last)
	do := fmt.Sprintf("See what holds vacuum back (transactions, prepared transactions, replication slots), then %sVACUUM %s;", inSchema, t.Name)
	stale := t.VacuumSeconds < 0 || t.VacuumSeconds > staleVacuum.Seconds()
	switch {
	case t.Dead > tooManyDead && t.Dead > t.Live:
		wrong = append(wrong, fail(what, do))
	case t.Dead > max(fewDead, 2*t.Live), t.Dead > max(fewDead, t.Live/2) && stale:
		wrong = append(wrong, warn(what, do))
	}
	return wrong
}

func unlistedFindings(u unlisted) []Finding {
	switch {
	case u.Lost:
		return []Finding{warn(fmt.Sprintf("the source %s of the tenant %s has lost its login, and its calls wait or fail: %s", u.Source, u.Tenant, u.Error),
			"Log in again: countersign source login "+u.Source)}
	case u.Lacks != "":
		return []Finding{warn(fmt.Sprintf("the login of the source %s of the tenant %s lacks the scopes %s, and calls that need them wait or fail", u.Source, u.Tenant, u.Lacks),
			"Log in again, which asks for them: countersign source login "+u.Source)}
	}
	return []Finding{warn(
		fmt.Sprintf("the source %s of the tenant %s could not be listed, %d times in a row: %s", u.Source, u.Tenant, u.Failures, u.Error),
		"Correct its configuration or credentials (countersign source set), or switch it off (--off). It is listed again by itself.")}
}

// readFleet reads the values of the metrics.
func readFleet(ctx context.Context, d database) (overview.Fleet, error) {
	var s overview.Fleet
	err := d.in(ctx, postgres.Worker(), func(tx pgx.Tx) (err error) {
		s, err = overview.GetFleet(ctx, tx)
		return err
	})
	return s, err
}

func describeFence(f fenced) string {
	if f.State == fence.StateNew {
		return "no worker has run in this database yet"
	}
	return fmt.Sprintf("this is the database %s, in epoch %d", f.Database, f.Epoch)
}

func fenceFindings(f fenced) []Finding {
	wrong := apply(
		rule{f.State == fence.StateHeld, fail("nothing is sent: "+f.Why(),
			"Make sure that no other copy of this database is in use, then see `countersign recover`.")},
		rule{f.State != fence.StateHeld && f.Why() != "", warn("nothing is sent: "+f.Why(),
			"Start the workers that ran here before. This ends within two leases, or the database is held.")},
		rule{f.Running > 0 && f.Remembering == 0, warn("no worker has a memory outside the database: a disk that was set back, or a base backup that was started while all workers were stopped, goes unnoticed",
			"Set COUNTERSIGN_STATE_FILE of at least one worker to a file on another disk than the database's; on Kubernetes, add the component memory.")},
		rule{f.Lost > 0, warn(fmt.Sprintf("%d calls were made whose actions the database lost", f.Lost),
			"They are in the table lost_calls; an action with the same external_id is not sent again.")},
	)
	for _, why := range f.Refusing {
		wrong = append(wrong, fail("the worker "+why, "Correct DATABASE_URL or COUNTERSIGN_DATABASE_ID of that worker, or remove its state file if the database is the right one."))
	}
	return wrong
}

func describeLeases(l leases) string {
	return fmt.Sprintf("workers hold %d actions, and no due action has waited long", l.Fleet.InFlight)
}

func leaseFindings(l leases) []Finding {
	worst, due := age(l.WorstSeconds), l.Fleet.OldestDue
	return apply(
		rule{l.Overdue > 0, grade(worst > longOverdue,
			fmt.Sprintf("%d leases expired, the first %s ago, and no worker has reclaimed the actions", l.Overdue, worst), noWorker)},
		rule{l.Long > 0, warn(fmt.Sprintf("%d leases are longer than an hour, the maximum", l.Long),
			"Check whether the database's clock was set back. Such an action is claimed again when its lease runs out.")},
		rule{due > longDue, grade(due > time.Hour,
			fmt.Sprintf("a due action has waited for %s", due.Round(time.Second)), noWorker)},
	)
}

func pauseFindings(p pauses) []Finding {
	wrong := apply(rule{p.Everything, warn("everything is paused", "`countersign pause list` shows by whom and why; `countersign resume` ends it.")})
	for _, u := range p.Left {
		since := age(u.Seconds)
		what := fmt.Sprintf("the lifted pause of %s has not woken all that it held, after %s", u.what(), since)
		if u.Killing {
			what = fmt.Sprintf("the kill of %s has not ended all that it hit, after %s", u.what(), since)
		}
		const do = "See whether a worker runs, and what its log says of the operation \"sweep pauses\". What a worker holds is ended when it comes back."
		wrong = append(wrong, grade(since > longSweep, what, do))
	}
	return wrong
}

func (u unfinished) what() string {
	if u.Subject == "" {
		return u.Scope
	}
	return u.Scope + " " + u.Subject
}

func checkpointFindings(f overview.Fleet) []Finding {
	lag := f.CheckpointLag
	return apply(rule{lag > longUncovered, grade(lag > uncoveredFail, fmt.Sprintf("no checkpoint covers an event of %s ago", lag.Round(time.Second)),
		"Check that a worker runs, its log for the job countersign_checkpoint, and for long transactions.")})
}

func unnotedFindings(u unnoted) []Finding {
	return []Finding{warn(
		fmt.Sprintf("no noted head of the hash chain of the tenant %s covers its checkpoints of up to %d days ago: the owner of the database could rewrite them", u.Tenant, int(u.Seconds/86400)),
		fmt.Sprintf("`countersign audit head --tenant %s`, or without --tenant over the API: keep what it writes where the database's owner cannot write, and repeat it once a week.", u.Tenant))}
}

func deadLetterFindings(f overview.Fleet) []Finding {
	unknown, others := f.DeadLetters["unknown"], f.DeadLetters["refused"]+f.DeadLetters["exhausted"]
	return apply(
		rule{unknown > 0, warn(fmt.Sprintf("%d calls have an unknown outcome", unknown),
			"`countersign dlq list --reason unknown` lists them; look at the source, then `countersign dlq resolve`.")},
		rule{others > manyDeadLetters, warn(fmt.Sprintf("there are %d dead letters", others),
			"`countersign dlq list` shows why; then `countersign dlq replay` or `discard`.")},
	)
}

func loginFindings(l wrongLogin) []Finding {
	unbind := fmt.Sprintf("countersign db-login unbind %s --tenant %s", l.Login, l.Tenant)
	if l.Gone {
		return []Finding{warn(
			fmt.Sprintf("%s may propose in SQL for %s, but the database has no such login: a new one of that name could", l.Login, l.Tenant), unbind)}
	}
	if l.Untagged {
		return []Finding{warn(
			fmt.Sprintf("%s may propose the tools of mail for %s, and not those of action tags: every try of a tag is refused", l.Login, l.Tenant),
			fmt.Sprintf("countersign db-login bind %s --tenant %s --triage", l.Login, l.Tenant))}
	}
	return []Finding{fail(
		fmt.Sprintf("%s may propose in SQL for %s and is a superuser, which could pass for any other login", l.Login, l.Tenant),
		"ALTER ROLE … NOSUPERUSER; or "+unbind)}
}
