package fence

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// The statement is by hand: sqlc does not see the columns of server_identity.
const readFence = `
SELECT f.database_id, f.recovered_from, f.earlier_id, f.epoch, f.state, f.reason, f.detail, f.system_id, f.database_oid, f.timeline,
    s.system_id, s.database_oid, s.timeline, coalesce(f.started = s.started, false), f.changed_at, f.ask_from, f.ask_until, f.lost, now(),
    ARRAY(SELECT c.loop FROM worker_commits c WHERE c.worker = $1 ORDER BY c.loop),
    ARRAY(SELECT c.seq FROM worker_commits c WHERE c.worker = $1 ORDER BY c.loop)
FROM fence f
CROSS JOIN server_identity() s`

// reading is the fence, with the commits of a process that are there.
type reading struct {
	Status
	now   time.Time
	there map[int16]int64
}

func read(ctx context.Context, tx pgx.Tx, worker uuid.UUID) (r reading, err error) {
	var from, earlier *uuid.UUID
	var askFrom, askUntil *time.Time
	var loops []int16
	var seqs []int64
	err = tx.QueryRow(ctx, readFence, worker).Scan(
		&r.Database, &from, &earlier, &r.Epoch, &r.State, &r.Reason, &r.Detail, &r.Stored.System, &r.Stored.OID, &r.Stored.Timeline,
		&r.Now.System, &r.Now.OID, &r.Now.Timeline, &r.SameServer, &r.Since, &askFrom, &askUntil, &r.Lost, &r.now, &loops, &seqs)
	r.RecoveredFrom, r.Earlier, r.AskFrom, r.AskUntil = postgres.OrZero(from), postgres.OrZero(earlier), postgres.OrZero(askFrom), postgres.OrZero(askUntil)
	r.there = make(map[int16]int64, len(loops))
	for i, loop := range loops {
		r.there[loop] = seqs[i]
	}
	return r, err
}

// Read returns the fence, in a transaction of the worker's scope.
func Read(ctx context.Context, tx pgx.Tx) (Status, error) {
	r, err := read(ctx, tx, uuid.Nil)
	return r.Status, err
}

// lock locks the fence until the end of the transaction.
func lock(ctx context.Context, tx pgx.Tx) error { return dbsqlc.New().FenceLock(ctx, tx) }

// set changes the state of the fence, with an event for each tenant. It sets the state
// and the epoch of s.
func set(ctx context.Context, tx pgx.Tx, actor envelope.Actor, s *Status, to State, reason, detail string) (err error) {
	if to == StateChecking || s.State == StateNew {
		s.Epoch++
	}
	s.State = to
	s.Database, err = dbsqlc.New().FenceSet(ctx, tx, &dbsqlc.FenceSetParams{State: string(to), Reason: reason, Detail: detail, Epoch: s.Epoch})
	if err != nil {
		return err
	}
	return record(ctx, tx, actor, s.Database, to, reason, detail)
}

// record writes an event of each tenant about a state of the fence. Checking is not
// recorded: it ends by itself within a minute.
func record(ctx context.Context, tx pgx.Tx, actor envelope.Actor, database uuid.UUID, to State, reason, detail string) error {
	if to == StateChecking {
		return nil
	}
	tenants, err := dbsqlc.New().FenceTenants(ctx, tx)
	if err != nil {
		return err
	}
	events := make([]audit.Event, len(tenants))
	for i, tenant := range tenants {
		item := audit.Item{Subject: "database:" + database.String(), Code: string(to), Note: detail}
		if reason != "" {
			item.Detail = map[string]any{"reason": reason}
		}
		events[i] = audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: actor, Items: []audit.Item{item}}
	}
	return audit.Write(ctx, tx, events...)
}

// put records a process.
func (g *Guard) put(ctx context.Context, tx pgx.Tx, epoch int64, remembers, ended bool, refuses string) error {
	load := 0
	if g.load != nil {
		load = g.load()
	}
	drains := g.draining.Load()
	err := dbsqlc.New().WorkerPut(ctx, tx, &dbsqlc.WorkerPutParams{
		Worker: g.worker, Name: g.cfg.Name, Epoch: epoch, Remembers: remembers, StateFile: g.cfg.File != "" || g.cfg.Memory != nil,
		LeaseSeconds: g.cfg.Lease.Seconds(), Refuses: refuses, Ended: ended,
		Host: g.cfg.Host, Version: g.cfg.Version, Concurrency: int32(g.cfg.Concurrency), InFlight: int32(load), Draining: drains,
	})
	if err == nil {
		g.drains = drains
	}
	return err
}

// mostWorkers bounds the list of workers.
const mostWorkers = 1000

// Workers returns the processes that run, by name.
func Workers(ctx context.Context, tx pgx.Tx) ([]wire.Worker, error) {
	rows, err := dbsqlc.New().WorkerList(ctx, tx, mostWorkers)
	return postgres.Map(rows, err, func(r dbsqlc.WorkerListRow) wire.Worker {
		return wire.Worker{
			ID: r.Worker, Name: r.Name, Host: r.Host, Version: r.Version, Started: r.StartedAt.UTC(), Seen: r.SeenAt.UTC(),
			Concurrency: int(r.Concurrency), InFlight: int(r.InFlight), Draining: r.Draining, Refuses: r.Refuses,
		}
	})
}

// compare reads how the other workers compare with the epoch. Those that are
// silent are waited for as long as so many leases.
func (g *Guard) compare(ctx context.Context, tx pgx.Tx, leases float64) (answers, error) {
	row, err := dbsqlc.New().WorkersConfirmed(ctx, tx, &dbsqlc.WorkersConfirmedParams{Worker: g.worker, Leases: leases})
	return answers{row.Others, row.Awaited, row.Remembered}, err
}

// commits returns the commits of noted processes that are there.
func commits(ctx context.Context, tx pgx.Tx, notes []note) (map[uuid.UUID]map[int16]int64, error) {
	ids := make([]uuid.UUID, len(notes))
	for i, n := range notes {
		ids[i] = n.Worker
	}
	rows, err := dbsqlc.New().WorkerCommitsOf(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	there := make(map[uuid.UUID]map[int16]int64)
	for _, c := range rows {
		if there[c.Worker] == nil {
			there[c.Worker] = make(map[int16]int64)
		}
		there[c.Worker][c.Loop] = c.Seq
	}
	return there, nil
}

// putNoted records a process whose commits are missing.
func putNoted(ctx context.Context, tx pgx.Tx, n note) error {
	return dbsqlc.New().WorkerPutNoted(ctx, tx, &dbsqlc.WorkerPutNotedParams{Worker: n.Worker, Name: n.Name, LeaseSeconds: n.Lease.Seconds()})
}
