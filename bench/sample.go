package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// sampleEnv makes a child of this program take a sample of that many actions, of
// the kind of worker and in the database that workerEnv and urlEnv name. The
// child may be built from another revision, so its output format must not
// change.
const sampleEnv = "BENCH_SAMPLE"

// costs is the cost of submitting an action and executing it.
type costs struct {
	Submit cost `json:"submit"`
	Work   cost `json:"work"`
}

// cost is the cost of one action. Processor time is user and system time, in
// microseconds; that of PostgreSQL is 0 if its processes cannot be seen.
type cost struct {
	GoCPU       float64 `json:"go_cpu_us"`
	PostgresCPU float64 `json:"postgres_cpu_us"`
	WAL         float64 `json:"wal_bytes"`
	Rows        float64 `json:"row_versions"`
	Allocations float64 `json:"allocations"`
	Allocated   float64 `json:"allocated_bytes"`
}

// runSample submits n actions in an empty database, works them off, and prints
// the sample as JSON. A tenth as many go before, unmeasured: they fill caches.
func runSample(ctx context.Context, kind, url, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return fmt.Errorf("read %s: %w", sampleEnv, err)
	}
	var sys system
	var pool *pgxpool.Pool
	if kind == "river" {
		p, err := newPeer(ctx, url)
		if err != nil {
			return err
		}
		defer p.pool.Close()
		sys, pool = p, p.pool
	} else {
		var effect envelope.Effect
		if kind == "once" {
			effect = envelope.EffectOnce
		}
		if err := newTenant(ctx, url, effect, false); err != nil {
			return err
		}
		h, err := newEnvironment(ctx, url)
		if err != nil {
			return err
		}
		defer h.close(ctx)
		if kind == "ceiling" {
			if err := putBuckets(ctx, h, limits.Bucket{Concurrency: 100_000}); err != nil {
				return err
			}
		}
		sys, pool = h, h.pool
	}
	var taken costs
	warm := n / 10
	for _, part := range []struct {
		from, count int
		into        *costs
	}{{0, warm, new(costs)}, {warm, n, &taken}} {
		if *part.into, err = takeCosts(ctx, sys, pool, url, part.from, part.count); err != nil {
			return err
		}
	}
	if kind != "river" {
		if err := checkSent(ctx, pool, warm+n); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(taken)
}

func takeCosts(ctx context.Context, sys system, pool *pgxpool.Pool, url string, from, n int) (costs, error) {
	var at [3]cost
	for i, step := range []func() error{
		func() error { return nil },
		func() error { return sys.submit(ctx, from, n, 500) },
		func() error { return sys.whileWorking(ctx, func() error { return sys.untilDone(ctx) }) },
	} {
		err := step()
		if err == nil {
			at[i], err = used(ctx, pool, url)
		}
		if err != nil {
			return costs{}, err
		}
	}
	return costs{Submit: at[1].since(at[0], n), Work: at[2].since(at[1], n)}, nil
}

// used returns the resources that this process and the server have used so far.
// It closes the pool's connections before: only backends that end report all
// their writes and usage. The pool may open others meanwhile. Garbage collection
// counts as work of the code that produced the garbage.
func used(ctx context.Context, pool *pgxpool.Pool, url string) (u cost, err error) {
	runtime.GC()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return u, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var backend int
	var others []int
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid(), coalesce(array_agg(pid), '{}') FROM pg_stat_activity
		WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&backend, &others)
	if err != nil {
		return u, err
	}
	server := process.Parent(backend)
	pool.Reset()
	err = process.Poll(ctx, 5*time.Millisecond, func() (ended bool, err error) {
		err = conn.QueryRow(ctx, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = ANY($1)", others).Scan(&ended)
		// The server adds the time of a backend to its own when it has seen its end.
		waited := !slices.ContainsFunc(others, func(pid int) bool { return server != 0 && process.Parent(pid) == server })
		return ended && waited, err
	})
	if err != nil {
		return u, err
	}
	err = conn.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8,
		(SELECT coalesce(sum(n_tup_ins + n_tup_upd), 0)::float8 FROM pg_stat_user_tables)`).Scan(&u.WAL, &u.Rows)
	if err != nil {
		return u, err
	}
	u.PostgresCPU = float64(process.TreeTime(server).Nanoseconds()) / 1e3
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return u, err
	}
	u.GoCPU = float64(own.Utime.Nano()+own.Stime.Nano()) / 1e3
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	u.Allocations, u.Allocated = float64(memory.Mallocs), float64(memory.TotalAlloc)
	return u, nil
}

// since returns the cost of an action if n of them were done since before.
func (u cost) since(before cost, n int) cost {
	each := func(now, then float64) float64 { return (now - then) / float64(n) }
	return cost{
		GoCPU: each(u.GoCPU, before.GoCPU), PostgresCPU: each(u.PostgresCPU, before.PostgresCPU),
		WAL: each(u.WAL, before.WAL), Rows: each(u.Rows, before.Rows),
		Allocations: each(u.Allocations, before.Allocations), Allocated: each(u.Allocated, before.Allocated),
	}
}
