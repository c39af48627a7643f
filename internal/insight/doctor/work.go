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
	fewDead       = 50_000
	tooManyDead   = 5_000_000
	staleVacuum   = time.Hour
	longOverdue   = 10 * time.Minute
	longDue       = 5 * time.Minute
	longUncovered = 10 * time.Minute
	uncoveredFail = time.Hour
	longSweep     = 10 * time.Minute
	manyLetters   = 1000
)

const noWorker = "See whether a worker runs, and what its log says. `countersign top` shows what waits and why."

func checkBloat(ctx context.Context, p patient) (string, []Finding, error) {
	tables, err := readHot(ctx, p)
	if err != nil {
		return "", nil, err
	}
	var total int64
	var wrong []Finding
	for _, t := range tables {
		total += t.Bytes
		wrong = append(wrong, judgeHot(t)...)
	}
	return fmt.Sprintf("%d hot tables of %s have few dead rows", len(tables), size(total)), wrong, nil
}

func judgeHot(t hot) (wrong []Finding) {
	last := "never"
	if t.VacuumSeconds >= 0 {
		last = time.Duration(t.VacuumSeconds*float64(time.Second)).Round(time.Second).String() + " ago"
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

// fleet reads what the metrics are made of.
func (p patient) fleet(ctx context.Context) (overview.Fleet, error) {
	var s overview.Fleet
	err := p.in(ctx, postgres.Worker(), func(tx pgx.Tx) (err error) {
		s, err = overview.GetFleet(ctx, tx)
		return err
	})
	return s, err
}

func checkLeases(ctx context.Context, p patient) (string, []Finding, error) {
	l, err := readLeases(ctx, p)
	if err != nil {
		return "", nil, err
	}
	s, err := p.fleet(ctx)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("workers hold %d envelopes, and nothing has waited long for one", s.InFlight), judgeLeases(l, s.OldestDue), nil
}

func judgeLeases(l leases, oldestDue time.Duration) (wrong []Finding) {
	if l.Overdue > 0 {
		worst := time.Duration(l.WorstSeconds * float64(time.Second)).Round(time.Second)
		f := warn(fmt.Sprintf("%d leases ran out and nobody has taken them up, the first %s ago", l.Overdue, worst), noWorker)
		if worst > longOverdue {
			f.Status = Failed
		}
		wrong = append(wrong, f)
	}
	if l.Long > 0 {
		wrong = append(wrong, warn(fmt.Sprintf("%d leases last longer than the hour that a worker may ask for", l.Long),
			"Look whether the database's clock was set back. Such an envelope is looked at again when its lease runs out."))
	}
	if oldestDue > longDue {
		f := warn(fmt.Sprintf("an envelope that could be claimed has waited for %s", oldestDue.Round(time.Second)), noWorker)
		if oldestDue > time.Hour {
			f.Status = Failed
		}
		wrong = append(wrong, f)
	}
	return wrong
}

func checkPauses(ctx context.Context, p patient) (string, []Finding, error) {
	everything, left, err := readUnfinished(ctx, p)
	if err != nil {
		return "", nil, err
	}
	return "what they hit has been ended, and what they held is woken", judgePauses(everything, left), nil
}

func judgePauses(everything bool, left []unfinished) (wrong []Finding) {
	if everything {
		wrong = append(wrong, warn("everything is paused", "`countersign pause list` says by whom and why; `countersign resume` ends it."))
	}
	for _, u := range left {
		since := time.Duration(u.Seconds * float64(time.Second)).Round(time.Second)
		what := fmt.Sprintf("the lifted pause of %s has not woken all that it held, after %s", u.what(), since)
		if u.Killing {
			what = fmt.Sprintf("the kill of %s has not ended all that it hit, after %s", u.what(), since)
		}
		f := warn(what, "See whether a worker runs, and what its log says of the operation \"sweep pauses\". What a worker holds is ended when it comes back.")
		if since > longSweep {
			f.Status = Failed
		}
		wrong = append(wrong, f)
	}
	return wrong
}

func (u unfinished) what() string {
	if u.Subject == "" {
		return u.Scope
	}
	return u.Scope + " " + u.Subject
}

func checkSeals(ctx context.Context, p patient) (string, []Finding, error) {
	s, err := p.fleet(ctx)
	if err != nil {
		return "", nil, err
	}
	return "checkpoints cover events soon after they happen", checkpointStatus(s.CheckpointLag), nil
}

func checkpointStatus(lag time.Duration) []Finding {
	what := fmt.Sprintf("no checkpoint covers an event of %s ago", lag.Round(time.Second))
	const do = "See whether a worker runs, what its log says of the job countersign_seal, and whether a long transaction is open."
	switch {
	case lag > uncoveredFail:
		return []Finding{fail(what, do)}
	case lag > longUncovered:
		return []Finding{warn(what, do)}
	}
	return nil
}

func checkDeadLetters(ctx context.Context, p patient) (string, []Finding, error) {
	s, err := p.fleet(ctx)
	if err != nil {
		return "", nil, err
	}
	return "few, and none whose outcome nobody knows", judgeLetters(s.DeadLetters), nil
}

func judgeLetters(letters map[string]int64) (wrong []Finding) {
	if n := letters["unknown"]; n > 0 {
		wrong = append(wrong, warn(fmt.Sprintf("of %d calls nobody knows whether they happened", n),
			"`countersign dlq list --reason unknown` lists them; look at the source, then `countersign dlq resolve`."))
	}
	if n := letters["refused"] + letters["exhausted"]; n > manyLetters {
		wrong = append(wrong, warn(fmt.Sprintf("there are %d dead letters", n), "`countersign dlq list` shows why; then `countersign dlq replay` or `discard`."))
	}
	return wrong
}
