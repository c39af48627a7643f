package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/bench/application"
	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/bench/chaos/load"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
	"github.com/countersign-dev/countersign/internal/tenant/settings"

	"github.com/jackc/pgx/v5"
)

const (
	// numbers is the number of actions that a drill submits at most.
	numbers = 100_000
	// callTime is the shortest time of a call, lease the lease of a claim.
	callTime = 20 * time.Millisecond
	lease    = 5 * time.Second
	// workers is the number of workers.
	workers = 2
	// sentBefore is the number of settled actions before the copy is made, lostAtLeast
	// the number of those that the copy lacks.
	sentBefore, lostAtLeast = 100, 150
	// watched is for how long a held copy is watched.
	watched = time.Second
	// poll is the interval of polls, submitEvery that of submissions.
	poll, submitEvery = 100 * time.Millisecond, 500 * time.Millisecond
	// waitTimeout bounds each wait.
	waitTimeout = time.Minute
)

// classes are the effect classes of the actions, in turn.
func classes() []envelope.Effect { return []envelope.Effect{envelope.EffectOnce, envelope.EffectKeyed} }

// drill is the drill of one kind.
type drill struct {
	*suite
	kind
	dir      string
	old, new server
	// oldURL and newURL are the database's before and after.
	oldURL, newURL string
	target         string
	first          int

	submitted  int // by load
	stopLoad   func() error
	oldWorkers []*process.Child
	newWorkers []*process.Child
}

// drill drills a kind with actions whose numbers begin with first.
func (s *suite) drill(ctx context.Context, k kind, first int) (v result, err error) {
	d := &drill{suite: s, kind: k, dir: filepath.Join(s.dir, k.slug()), first: first, stopLoad: func() error { return nil }}
	defer func() {
		kill(d.oldWorkers)
		kill(d.newWorkers)
		err = errors.Join(err, d.stopLoad())
	}()
	ctx, cancel := context.WithTimeout(ctx, 5*waitTimeout)
	defer cancel()
	if err := d.begin(ctx); err != nil {
		return v, err
	}
	if err := d.copy(ctx); err != nil {
		return v, err
	}
	if err := d.restore(ctx); err != nil {
		return v, err
	}
	db, err := database.Open(ctx, d.newURL, embedded.Config{})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return d.recover(ctx, database.Reader{Server: db, Tenant: s.tenant})
}

// begin starts the server, workers and the load.
func (d *drill) begin(ctx context.Context) error {
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		return err
	}
	d.old = server{bin: d.postgres, data: filepath.Join(d.dir, "old")}
	d.new = server{bin: d.postgres, data: filepath.Join(d.dir, "new")}
	if err := d.command(ctx, "cp", "-a", filepath.Join(d.suite.dir, "base"), d.old.data); err != nil {
		return err
	}
	var archive []string
	if d.archive {
		archive = []string{"archive_mode=on", "archive_command='pgbackrest --config=" + d.backrestConfig() + " --stanza=app archive-push %p'"}
	}
	if err := d.start(ctx, &d.old, archive...); err != nil {
		return err
	}
	d.oldURL = d.old.url("app")
	if d.archive {
		config := fmt.Sprintf("[global]\nrepo1-path=%[1]s/repo\nlock-path=%[1]s\nlog-path=%[1]s\nspool-path=%[1]s\nstart-fast=y\n"+
			"[app]\npg1-path=%[2]s\npg1-port=%[3]d\npg1-socket-path=%[4]s\npg1-user=postgres\npg1-database=app\n", d.dir, d.old.data, d.old.port, d.suite.dir)
		if err := os.WriteFile(d.backrestConfig(), []byte(config), 0o600); err != nil {
			return err
		}
		if err := d.shell(ctx, "pgbackrest --stanza=app stanza-create"); err != nil {
			return err
		}
	}
	var err error
	if d.oldWorkers, err = d.startWorkers(d.oldURL, ""); err != nil {
		return err
	}
	return d.load(ctx)
}

func (d *drill) backrestConfig() string { return filepath.Join(d.dir, "pgbackrest.conf") }

// load submits actions until stopLoad.
func (d *drill) load(ctx context.Context) error {
	db, err := database.Open(ctx, d.oldURL, embedded.Config{})
	if err != nil {
		return err
	}
	agent, done, err := d.agent(ctx, db)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { // stopLoad waits for it
		var err error
		for n := d.first; err == nil && ctx.Err() == nil; n += load.Batch {
			d.submitted += load.Batch // also if the server ends during the submission
			if err = agent.Submit(ctx, n, load.Batch); err == nil && n >= d.first+2*sentBefore {
				err = process.Wait(ctx, submitEvery)
			}
		}
		ended <- err
	}()
	d.stopLoad = func() error {
		cancel()
		err := <-ended
		d.stopLoad = func() error { return nil }
		done()
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return errors.Join(err, db.Close())
	}
	return nil
}

// agent returns an agent that proposes to a database.
func (d *drill) agent(ctx context.Context, db *database.Server) (*load.Agent, func(), error) {
	app, done, err := application.Connect(ctx, db.Clients, d.tenant)
	if err != nil {
		return nil, nil, err
	}
	return load.New(intake.New(db.Clients, settings.NewCache(), intake.Config{}), app, d.tenant, classes()), done, nil
}

// copy makes the copy while workers send, and has them send more.
func (d *drill) copy(ctx context.Context) error {
	if err := d.awaitSent(ctx, sentBefore); err != nil {
		return err
	}
	if d.planned {
		if err := d.shell(ctx, d.blocks[moveBlock][0]); err != nil {
			return err
		}
		if err := errors.Join(d.stopLoad(), stopAll(d.oldWorkers)); err != nil {
			return err
		}
		return d.shell(ctx, d.blocks[d.block][0])
	}
	if err := d.shell(ctx, d.blocks[d.block][0]); err != nil {
		return err
	}
	if err := d.query(ctx, d.oldURL, "SELECT clock_timestamp()::text", &d.target); err != nil {
		return err
	}
	var sent int
	if err := d.query(ctx, d.oldURL, countSent, &sent); err != nil {
		return err
	}
	if err := d.awaitSent(ctx, sent+lostAtLeast); err != nil || !d.archive {
		return err
	}
	return d.archived(ctx)
}

const countSent = "SELECT count(1) FROM countersign_data.tool_executions WHERE status = 'sent'"

// awaitSent waits until a number of actions is sent.
func (d *drill) awaitSent(ctx context.Context, want int) error {
	return d.await(ctx, fmt.Sprintf("%d actions are sent", want), func() (bool, error) {
		var n int
		err := d.query(ctx, d.oldURL, countSent, &n)
		return n >= want, err
	})
}

// archived waits until the write-ahead log up to now is archived.
func (d *drill) archived(ctx context.Context) error {
	var file string
	if err := d.query(ctx, d.oldURL, "SELECT pg_walfile_name(pg_switch_wal())", &file); err != nil {
		return err
	}
	return d.await(ctx, "the log is archived", func() (done bool, err error) {
		err = d.query(ctx, d.oldURL, "SELECT coalesce(last_archived_wal >= '"+file+"', false) FROM pg_stat_archiver", &done)
		return done, err
	})
}

// restore restores the copy. The old database is in use meanwhile, unless it is in the way.
func (d *drill) restore(ctx context.Context) (err error) {
	switch {
	case d.inPlace:
		kill(d.oldWorkers)
		if err := d.stopLoad(); err != nil {
			return err
		}
		d.new, d.newURL = d.old, d.oldURL
	case d.sameServer:
		d.newURL = d.old.url("restored")
		if err := d.command(ctx, filepath.Join(d.postgres, "psql"), "-Xqc", "CREATE DATABASE restored", d.oldURL); err != nil {
			return err
		}
	case d.cluster:
		if d.planned {
			d.new.bin = d.newPostgres
		}
		if err := d.create(ctx, &d.new); err != nil {
			return err
		}
	default:
		if d.new.port, err = freePort(ctx); err != nil {
			return err
		}
	}
	if d.newURL == "" {
		d.newURL = d.new.url("app")
	}
	return d.shell(ctx, d.blocks[d.block][1])
}

// recover starts workers on the copy, which have to send nothing, and then recovers it after
// the old database is lost.
func (d *drill) recover(ctx context.Context, reader database.Reader) (v result, err error) {
	before, err := reader.State(ctx)
	if err != nil {
		return v, err
	}
	if err := d.startHeld(ctx, reader); err != nil {
		return v, err
	}
	after, err := reader.State(ctx)
	if err != nil {
		return v, err
	}
	sent := before.Ended[string(envelope.StatusSent)]
	if n := after.Ended[string(envelope.StatusSent)]; n != sent {
		v.fail("the copy sent %d actions while it was held", n-sent)
	}
	if err := d.lose(ctx, reader); err != nil {
		return v, err
	}
	recovery := d.blocks[recoverBlock][0]
	if d.planned {
		recovery = d.blocks[moveBlock][1]
	}
	if err := d.shell(ctx, recovery); err != nil {
		return v, err
	}
	if d.planned {
		if d.newWorkers, err = d.startWorkers(d.newURL, "new"); err != nil {
			return v, err
		}
	}
	broken := v.broken
	if err := d.repeat(ctx, reader); err != nil {
		return v, err
	}
	if err := stopAll(d.newWorkers); err != nil {
		return v, err
	}
	actions, err := reader.Actions(ctx)
	if err != nil {
		return v, err
	}
	counts, err := counting.ReadJournal(d.journal())
	if err != nil {
		return v, err
	}
	v = judge(d.kind, d.first, d.submitted, actions, counts, sent)
	v.broken = append(broken, v.broken...)
	return v, nil
}

// startHeld starts workers on the copy, and watches it for a time after it was held.
func (d *drill) startHeld(ctx context.Context, reader database.Reader) (err error) {
	if d.newWorkers, err = d.startWorkers(d.newURL, "new"); err != nil {
		return err
	}
	var s fence.Status
	err = d.await(ctx, "the copy is held ("+d.reason+")", func() (bool, error) {
		var err error
		s, err = postgres.InTxReturning(ctx, reader.Server.Pool, postgres.Worker(), func(tx pgx.Tx) (fence.Status, error) { return fence.Read(ctx, tx) })
		return s.State == fence.StateHeld && s.Reason == d.reason, err
	})
	if err != nil {
		return fmt.Errorf("%w; it is %s (%s %s)", err, s.State, s.Reason, s.Detail)
	}
	return process.Wait(ctx, watched)
}

// lose ends the old database. After a move workers are started there by mistake.
func (d *drill) lose(ctx context.Context, reader database.Reader) (err error) {
	if d.planned {
		if err := stopAll(d.newWorkers); err != nil {
			return err
		}
		d.oldWorkers, err = d.startWorkers(d.oldURL, "")
		return err
	}
	kill(d.oldWorkers)
	if err := d.stopLoad(); err != nil {
		return err
	}
	if !d.sameServer && !d.inPlace {
		if err := d.stop(d.old.data, "immediate"); err != nil {
			return err
		}
	}
	return d.await(ctx, "the leases of lost workers are over", func() (over bool, err error) {
		err = d.query(ctx, d.newURL, "SELECT NOT EXISTS (SELECT FROM countersign_data.outbox WHERE lease_until >= now())", &over)
		return over, err
	})
}

// repeat has the agents propose everything again, and waits until nothing is due.
func (d *drill) repeat(ctx context.Context, reader database.Reader) error {
	agent, done, err := d.agent(ctx, reader.Server)
	if err != nil {
		return err
	}
	defer done()
	if err := agent.Repeat(ctx, d.first, d.submitted); err != nil {
		return err
	}
	return d.await(ctx, "nothing is due", func() (bool, error) {
		now, err := reader.State(ctx)
		return now.Open == 0, err
	})
}

// await polls until fn reports that it is done.
func (d *drill) await(ctx context.Context, what string, fn func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	var last error
	err := process.Poll(ctx, poll, func() (done bool, _ error) {
		done, last = fn()
		return done && last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("not within %s: %s: %w", waitTimeout, what, errors.Join(last, err))
	}
	return nil
}

func (d *drill) query(ctx context.Context, url, sql string, to any) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(conn.QueryRow(ctx, sql).Scan(to), conn.Close(ctx))
}

// shell executes a paragraph of the runbook.
func (d *drill) shell(ctx context.Context, lines string) error {
	cmd := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", lines)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(),
		"PATH="+d.postgres+":"+d.programs+":"+os.Getenv("PATH"), "DATABASE_URL="+d.newURL,
		"OLD="+d.oldURL, "NEW="+d.newURL, "OLD_DATA="+d.old.data, "NEW_DATA="+d.new.data, "NEW_PORT="+strconv.Itoa(d.new.port), "TARGET="+d.target, "PGBACKREST_CONFIG="+d.backrestConfig())
	return d.logged(cmd)
}

// startWorkers starts workers on a database. A suffix is that of copies of the state files.
func (d *drill) startWorkers(url, suffix string) ([]*process.Child, error) {
	var all []*process.Child
	for i := range workers {
		env := []string{
			"DATABASE_URL=" + url, fmt.Sprintf("COUNTERSIGN_WORKER_ID=w%d%s", i, suffix), "COUNTERSIGN_SOURCE_NETWORKS=127.0.0.0/8",
			"COUNTERSIGN_CONCURRENCY=8", "COUNTERSIGN_LEASE=" + lease.String(), "COUNTERSIGN_LOG_LEVEL=error",
		}
		if d.stateFiles {
			file := filepath.Join(d.dir, "state-"+strconv.Itoa(i))
			if suffix != "" {
				text, err := os.ReadFile(file)
				if err == nil {
					err = os.WriteFile(file+suffix, text, 0o600)
				}
				if err != nil {
					return all, err
				}
			}
			env = append(env, "COUNTERSIGN_STATE_FILE="+file+suffix)
		}
		child, err := process.Start(filepath.Join(d.programs, "worker"), env, d.log, d.log)
		if err != nil {
			return all, err
		}
		all = append(all, child)
	}
	return all, nil
}

// stopAll stops workers, as SIGTERM does.
func stopAll(all []*process.Child) (err error) {
	for _, w := range all {
		if !w.Stop(process.StopGrace) {
			err = errors.New("a worker did not stop in time")
		}
	}
	return err
}

// kill ends workers as a crash does.
func kill(all []*process.Child) {
	for _, w := range all {
		w.Kill()
	}
}
