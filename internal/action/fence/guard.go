package fence

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// Config configures a Guard.
type Config struct {
	// Name is the worker's name in records.
	Name string
	// Lease is how long the worker's claims hold.
	Lease time.Duration
	// Database is the database that the worker is for; zero for any.
	Database uuid.UUID
	// Host, Version and Concurrency describe the worker.
	Host, Version string
	Concurrency   int
	// File is the state file: a memory outside the database; empty for none.
	File string
	// Memory is such a memory that all workers share; nil for none.
	Memory Memory
	Log    *slog.Logger
}

const (
	// checkEvery is the pause between two checks of an open fence, soon that between
	// checks while something is amiss.
	checkEvery = time.Second
	soon       = 100 * time.Millisecond
	// checkTimeout bounds a check.
	checkTimeout = 10 * time.Second
)

// Guard is the memory of a worker process, and compares it with the database. Until it
// has done so, and whenever the server has changed since, the epoch of its marks is one in
// which nothing is claimed.
type Guard struct {
	db     postgres.Begins
	cfg    Config
	worker uuid.UUID
	loops  loops
	calls  calls
	// epoch is the epoch in which this process may claim; 0 for none.
	epoch atomic.Int64
	// asks is the time in which proposals of classes once and keyed need a person.
	asks atomic.Pointer[period]
	lost atomic.Bool
	wake chan struct{}
	// load returns the load of the process; nil for none. draining is set when the process stops.
	load     func() int
	draining atomic.Bool

	// The rest belongs to the goroutine that checks.
	database, earlier uuid.UUID
	// seen is when the process was recorded last, by the database's clock, shown the last reason that was logged, and
	// written the content of the state file.
	seen  time.Time
	shown string
	// drains reports whether it is recorded that the process stops.
	drains bool
	// told is the database to which the process reported its calls, and done the one to
	// which it did when none of them ran any more. lacks reports whether commits of the
	// process were missing in it.
	told, done uuid.UUID
	lacks      bool
	written    memory
	// compared is the server that the notes of all processes were compared with; noted is when this
	// process wrote its own, and notedCommits the commits in it.
	compared     server
	noted        time.Time
	notedCommits map[int16]int64
}

// New returns the Guard of a process.
func New(db postgres.Begins, cfg Config) *Guard {
	cfg.Lease = cmp.Or(cfg.Lease, 30*time.Second)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Guard{db: db, cfg: cfg, worker: uuid.New(), wake: make(chan struct{}, 1)}
}

// Load reads the state file of the Config, if it is there.
func (g *Guard) Load() error {
	if g.cfg.File == "" {
		return nil
	}
	old, err := readFile(g.cfg.File)
	g.loops.old, g.database, g.earlier, g.written = old, old.Database, old.Earlier, old
	return err
}

// period is a time with an end.
type period struct{ from, until time.Time }

// Asks reports whether a proposal of class once or keyed of a time needs a person, because it may
// repeat one that was lost.
func (g *Guard) Asks(proposed time.Time) bool {
	p := g.asks.Load()
	return p != nil && !proposed.Before(p.from) && proposed.Before(p.until)
}

// Lost reports whether there are lost calls whose actions the database does not have.
func (g *Guard) Lost() bool { return g.lost.Load() }

// Watch has Run record the number of actions that the process has. It is called
// before Run.
func (g *Guard) Watch(load func() int) { g.load = load }

// Drain has Run record soon that the process stops. It does not block.
func (g *Guard) Drain() {
	g.draining.Store(true)
	g.Recheck()
}

// Recheck has Run compare soon, because the database did not answer. It does not
// block.
func (g *Guard) Recheck() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Run checks until ctx ends, and then records that the process has ended. The caller
// ends it after the last commit. opened is called when the process may claim again.
func (g *Guard) Run(ctx context.Context, opened func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			g.end(context.WithoutCancel(ctx))
			return
		case <-g.wake:
		case <-timer.C:
		}
		before := g.epoch.Load()
		s, err := g.Check(ctx)
		if now := g.epoch.Load(); now != 0 && now != before {
			opened()
		}
		pause := postgres.PollPause(checkEvery)
		if err != nil || s == StateChecking {
			pause = soon
		}
		timer.Reset(pause)
	}
}

// Check compares once. It returns Open if this process may claim, else the state that
// prevents it.
func (g *Guard) Check(ctx context.Context) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	remembered := g.remember() // before the statement, which sees no later commits
	r, err := g.read(ctx, remembered)
	if err != nil {
		return "", err
	}
	if changed, err := g.compareNotes(ctx, r); err != nil {
		g.close(ctx, result{reason: "unchecked", detail: err.Error()})
		return "", err
	} else if changed {
		remembered = g.remember()
		if r, err = g.read(ctx, remembered); err != nil {
			return "", err
		}
	}
	if remembered.Database != uuid.Nil && remembered.Database != r.Database && remembered.knows(r.RecoveredFrom) {
		g.forget()
		g.database, g.earlier = r.Database, r.Earlier
		remembered = g.remember()
	}
	v := decide(remembered, r.Status, r.there, g.cfg.Database)
	due := r.now.Sub(g.seen) > g.cfg.Lease/3 || r.now.Before(g.seen) || g.draining.Load() != g.drains
	if due || v.step != wait && (v.step != pass || g.epoch.Load() != r.Epoch) {
		if r, v, err = g.change(ctx, remembered); err != nil {
			return "", err
		}
		g.seen = r.now
	}
	if r.State == StateHeld && v.step != refuse && g.done != r.Database {
		if err := g.tell(ctx, r.Database, v.lost); err != nil {
			return "", err
		}
	}
	switch v.step {
	case pass:
		g.open(r.Status)
		g.write(ctx, remembered, r.now, false)
		return StateOpen, g.save(remembered)
	case confirm:
		g.close(ctx, v)
		return StateChecking, nil
	case wait, refuse, hold, adopt, begin:
	}
	g.close(ctx, v)
	return StateHeld, nil
}

func (g *Guard) read(ctx context.Context, m memory) (reading, error) {
	return postgres.InTxReturning(ctx, g.db, postgres.Worker().Alone(), func(tx pgx.Tx) (reading, error) { return read(ctx, tx, m.Worker) })
}

// change decides again, with the fence locked where it may change, and changes it. The
// result is pass if the process may claim.
func (g *Guard) change(ctx context.Context, remembered memory) (r reading, v result, err error) {
	actor := envelope.Actor("worker/" + g.cfg.Name)
	err = postgres.InTx(ctx, g.db, postgres.Worker(), func(tx pgx.Tx) (err error) {
		if err := lock(ctx, tx); err != nil {
			return err
		}
		if r, err = read(ctx, tx, remembered.Worker); err != nil {
			return err
		}
		v = decide(remembered, r.Status, r.there, g.cfg.Database)
		switch v.step {
		case wait:
			if v.lost && v.reason == ReasonLost && remembered.Worker != g.worker {
				// Not every call that was lost can be reported any more.
				return set(ctx, tx, actor, &r.Status, StateHeld, ReasonSetBack, v.detail)
			}
			return nil
		case refuse:
			return g.put(ctx, tx, 0, false, false, v.detail)
		case hold:
			if v.reason == ReasonLost && remembered.Worker != g.worker {
				v.reason = ReasonSetBack
			}
			return set(ctx, tx, actor, &r.Status, StateHeld, v.reason, v.detail)
		case adopt:
			if err := set(ctx, tx, actor, &r.Status, StateOpen, "", "the first worker of a version with a fence"); err != nil {
				return err
			}
			v.step = pass
		case begin:
			if err := set(ctx, tx, actor, &r.Status, StateChecking, "", ""); err != nil {
				return err
			}
			v.step, r.Since = confirm, r.now
		case pass, confirm:
		}
		if err := g.put(ctx, tx, r.Epoch, !remembered.empty(), false, ""); err != nil || v.step == pass {
			return err
		}
		return g.conclude(ctx, tx, actor, &r, &v)
	})
	return r, v, err
}

// conclude ends the check of a server, if every worker has answered that is waited for.
func (g *Guard) conclude(ctx context.Context, tx pgx.Tx, actor envelope.Actor, r *reading, v *result) error {
	leases := 1.0
	if r.Stored.forked(r.Now) {
		leases = 2
	}
	got, err := g.compare(ctx, tx, leases)
	if err != nil {
		return err
	}
	switch r.next(got, r.now.Sub(r.Since)) {
	case StateOpen:
		v.step = pass
		return set(ctx, tx, actor, &r.Status, StateOpen, "", "the server changed, and no worker lacks a commit")
	case StateHeld:
		v.step, v.reason = hold, ReasonTimeline
		v.detail = "the timeline is another one than before, and no worker of before confirms that nothing was lost: a point in time that was restored, or a failover without workers"
		return set(ctx, tx, actor, &r.Status, StateHeld, v.reason, v.detail)
	case StateChecking, StateNew:
		v.detail = "the server changed, and workers compare their commits"
	}
	return nil
}

// tell reports to a held database which calls the process made, if commits of these are
// missing, and that it has compared. It does so once more when no call runs any more: only
// then are all outcomes known.
func (g *Guard) tell(ctx context.Context, database uuid.UUID, lost bool) error {
	if g.told != database {
		g.lacks = false
	}
	g.lacks = g.lacks || lost // until the commits that follow hide it
	made, running := g.made()
	if !g.lacks {
		made, running = nil, 0
	}
	if g.told == database && running > 0 {
		return nil
	}
	err := postgres.InTx(ctx, g.db, postgres.Worker(), func(tx pgx.Tx) error {
		if err := g.put(ctx, tx, 0, false, false, ""); err != nil {
			return err
		}
		if len(made) > 0 {
			if err := g.report(ctx, tx, made); err != nil {
				return err
			}
		}
		if running > 0 {
			return nil
		}
		return g.reported(ctx, tx)
	})
	if err != nil {
		return err
	}
	if g.told = database; running == 0 {
		g.done = database
	}
	return nil
}

// open lets the process claim.
func (g *Guard) open(s Status) {
	g.database, g.earlier = s.Database, s.Earlier
	g.told, g.done, g.lacks = uuid.Nil, uuid.Nil, false // it may be held again, with other calls
	g.asks.Store(&period{s.AskFrom, s.AskUntil})
	g.lost.Store(s.Lost > 0)
	g.epoch.Store(s.Epoch)
	g.shown = ""
}

// close lets the process claim nothing.
func (g *Guard) close(ctx context.Context, v result) {
	g.epoch.Store(0)
	if v.detail != g.shown {
		g.shown = v.detail
		g.cfg.Log.ErrorContext(ctx, "nothing is claimed", slog.String("reason", cmp.Or(v.reason, "unchecked")), slog.String("detail", v.detail))
	}
}

// save writes the state file, if something changed.
func (g *Guard) save(m memory) error {
	if g.cfg.File == "" || m.empty() {
		return nil
	}
	m.Database, m.Earlier = g.database, g.earlier
	if g.written.Worker == m.Worker && missingNone(m, g.written) {
		return nil
	}
	if err := writeFile(g.cfg.File, m); err != nil {
		return err
	}
	g.written = m
	return nil
}

// missingNone reports whether a memory has no commit that another one lacks.
func missingNone(m, other memory) bool { return m.missing(other.Commits) == "" }

// end records that the process has ended, and its memory. It compares first, since
// the server may have changed just before: a process that ended is not waited for.
func (g *Guard) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := g.save(g.remember())
	if g.seen.IsZero() {
		return
	}
	if _, err := g.Check(ctx); err != nil {
		g.cfg.Log.WarnContext(ctx, "the end of the worker is not recorded", slog.Any("error", err))
		return
	}
	g.write(ctx, g.remember(), g.seen, true)
	if put := postgres.InTx(ctx, g.db, postgres.Worker(), func(tx pgx.Tx) error {
		return g.put(ctx, tx, g.epoch.Load(), false, true, "")
	}); err == nil {
		err = put
	}
	if err != nil {
		g.cfg.Log.WarnContext(ctx, "the end of the worker is not recorded", slog.Any("error", err))
	}
}
