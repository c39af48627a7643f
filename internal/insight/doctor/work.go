package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// The limits.
const (
	// fewDead is how many dead rows are normal, however few live: autovacuum
	// has to get there first.
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
		wrong = append(wrong, fail("autovacuum passes "+t.Name+" over", fmt.Sprintf("ALTER TABLE %s RESET (autovacuum_enabled);", t.Name)))
	}
	what := fmt.Sprintf("%s has %d dead rows beside %d that live, in %s; it was vacuumed %s", t.Name, t.Dead, t.Live, size(t.Bytes), last)
	do := fmt.Sprintf("See what holds vacuum back (transactions, prepared transactions, replication slots), then VACUUM %s;", t.Name)
	stale := t.VacuumSeconds < 0 || t.VacuumSeconds > staleVacuum.Seconds()
	switch {
	case t.Dead > tooManyDead && t.Dead > t.Live:
		wrong = append(wrong, fail(what, do))
	case t.Dead > max(fewDead, 2*t.Live), t.Dead > max(fewDead, t.Live/2) && stale:
		wrong = append(wrong, warn(what, do))
	}
	return wrong
}

// readFleet reads what the metrics are made of.
func readFleet(ctx context.Context, d database) (overview.Fleet, error) {
	var s overview.Fleet
	err := d.in(ctx, postgres.Worker(), func(tx pgx.Tx) (err error) {
		s, err = overview.GetFleet(ctx, tx)
		return err
	})
	return s, err
}

func checkLeases(ctx context.Context, d database) (string, []Finding, error) {
	l, err := readLeases(ctx, d)
	if err != nil {
		return "", nil, err
	}
	s, err := readFleet(ctx, d)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("workers hold %d actions, and nothing has waited long for one", s.InFlight), leaseFindings(l, s.OldestDue), nil
}

func leaseFindings(l leases, oldestDue time.Duration) (wrong []Finding) {
	if l.Overdue > 0 {
		worst := age(l.WorstSeconds)
		what := fmt.Sprintf("%d leases ran out and no worker has claimed their actions, the first %s ago", l.Overdue, worst)
		wrong = append(wrong, grade(worst > longOverdue, what, noWorker))
	}
	if l.Long > 0 {
		wrong = append(wrong, warn(fmt.Sprintf("%d leases last longer than the hour that a worker may ask for", l.Long),
			"Look whether the database's clock was set back. Such an action is claimed again when its lease runs out."))
	}
	if oldestDue > longDue {
		what := fmt.Sprintf("an action that could be claimed has waited for %s", oldestDue.Round(time.Second))
		wrong = append(wrong, grade(oldestDue > time.Hour, what, noWorker))
	}
	return wrong
}

func checkPauses(ctx context.Context, d database) (string, []Finding, error) {
	everything, left, err := readUnfinished(ctx, d)
	if err != nil {
		return "", nil, err
	}
	return "what they hit has been ended, and what they held is woken", pauseFindings(everything, left), nil
}

func pauseFindings(everything bool, left []unfinished) (wrong []Finding) {
	if everything {
		wrong = append(wrong, warn("everything is paused", "`countersign pause list` says by whom and why; `countersign resume` ends it."))
	}
	for _, u := range left {
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
	if lag <= longUncovered {
		return nil
	}
	return []Finding{grade(lag > uncoveredFail, fmt.Sprintf("no checkpoint covers an event of %s ago", lag.Round(time.Second)),
		"See whether a worker runs, what its log says of the job countersign_checkpoint, and whether a long transaction is open.")}
}

func deadLetterFindings(f overview.Fleet) (wrong []Finding) {
	if n := f.DeadLetters["unknown"]; n > 0 {
		wrong = append(wrong, warn(fmt.Sprintf("of %d calls nobody knows whether they happened", n),
			"`countersign dlq list --reason unknown` lists them; look at the source, then `countersign dlq resolve`."))
	}
	if n := f.DeadLetters["refused"] + f.DeadLetters["exhausted"]; n > manyDeadLetters {
		wrong = append(wrong, warn(fmt.Sprintf("there are %d dead letters", n), "`countersign dlq list` shows why; then `countersign dlq replay` or `discard`."))
	}
	return wrong
}
