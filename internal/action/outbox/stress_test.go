package outbox_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// deadlocks counts the statements that PostgreSQL ended to break a circle.
type deadlocks struct{ n atomic.Int32 }

func (*deadlocks) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (c *deadlocks) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if pg, ok := errors.AsType[*pgconn.PgError](data.Err); ok && pg.Code == "40P01" {
		c.n.Add(1)
	}
}

// stress is workers, operators and jobs that are busy with the same buckets.
type stress struct {
	fixture
	deadlocks *deadlocks
	// buckets are the buckets that every worker claims from, each with whether it
	// has limits.
	buckets map[int64]bool
	// sent counts the calls per bucket; open and most are the current and the
	// highest number of concurrent calls.
	sent, open, most map[int64]*atomic.Int32
	// gone are envelopes that something else than a worker ended.
	gone atomic.Int32
}

func newStress(t *testing.T) *stress {
	t.Helper()
	fx := newSharedFixture(t)
	cfg, err := pgxpool.ParseConfig(fx.DB.(*pgxpool.Pool).Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	c := &stress{
		fixture: fx, deadlocks: new(deadlocks), buckets: make(map[int64]bool),
		sent: make(map[int64]*atomic.Int32), open: make(map[int64]*atomic.Int32), most: make(map[int64]*atomic.Int32),
	}
	cfg.MaxConns, cfg.ConnConfig.Tracer = 16, c.deadlocks
	db, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	c.DB = db
	return c
}

// add makes a bucket with n due envelopes.
func (c *stress) add(b limits.Bucket, n int) int64 {
	c.T.Helper()
	id := c.put(b)
	c.QueueIn(id, envelope.EffectOnce, n)
	c.buckets[id] = b.Rate != nil || b.Calendar != nil || b.Concurrency > 0
	c.sent[id], c.open[id], c.most[id] = new(atomic.Int32), new(atomic.Int32), new(atomic.Int32)
	return id
}

// worker claims from every bucket and settles, until several claims in a row
// are empty. It puts some items back.
func (c *stress) worker(ctx context.Context, returns bool) error {
	for idle := 0; idle < 8 && ctx.Err() == nil; {
		var wants []outbox.ClaimRequest
		for id, limited := range c.buckets {
			wants = append(wants, outbox.ClaimRequest{Bucket: id, Quota: 1 + rand.IntN(20), Limited: limited})
		}
		var items []outbox.Item
		err := postgres.InTx(ctx, c.DB, postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
			items, err = outbox.Claim(ctx, tx, outbox.Mark{}, wants, time.Hour)
			return err
		})
		if err != nil {
			return err
		}
		if idle++; len(items) > 0 {
			idle = 0
		}
		leases := make([]outbox.Lease, len(items))
		for i, it := range items {
			leases[i] = it.Lease
			now := c.open[it.Bucket].Add(1)
			for was := c.most[it.Bucket].Load(); now > was && !c.most[it.Bucket].CompareAndSwap(was, now); was = c.most[it.Bucket].Load() {
			}
		}
		if err := c.settleAll(ctx, items, leases, returns); err != nil {
			return err
		}
	}
	return nil
}

func (c *stress) settleAll(ctx context.Context, items []outbox.Item, leases []outbox.Lease, returns bool) error {
	if rand.IntN(3) == 0 {
		err := postgres.InTx(ctx, c.DB, postgres.Worker().Planned(), func(tx pgx.Tx) error {
			_, err := outbox.Renew(ctx, tx, leases, time.Hour)
			return err
		})
		if err != nil {
			return err
		}
	}
	rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	batch := make([]outbox.Settlement, len(items))
	for i, it := range items {
		c.open[it.Bucket].Add(-1) // before the commit frees its place
		batch[i] = outboxtest.Sent(it)
		if returns && rand.IntN(3) == 0 {
			batch[i] = outbox.Release(it)
		}
		if returns && rand.IntN(20) == 0 {
			batch[i].CloseBucketFor, batch[i].CloseBucket = time.Millisecond, it.Bucket
		}
	}
	var settled []outbox.Lease
	err := postgres.InTx(ctx, c.DB, postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
		settled, err = outbox.Settle(ctx, tx, outbox.Mark{}, "w", batch)
		return err
	})
	ended := make(map[outbox.Lease]bool, len(settled))
	for _, l := range settled {
		ended[l] = true
	}
	for i, s := range batch {
		if ended[s.Lease] && s.Status == envelope.StatusSent {
			c.sent[items[i].Bucket].Add(1)
		}
	}
	return err
}

// run runs n workers, and the others until these end.
func (c *stress) run(n int, returns bool, others ...func(ctx context.Context) error) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	defer cancel()
	var workers, rest sync.WaitGroup
	for range n {
		workers.Go(func() {
			if err := c.worker(c.T.Context(), returns); err != nil {
				c.T.Errorf("worker: %v", err)
			}
		})
	}
	for _, other := range others {
		rest.Go(func() {
			for ctx.Err() == nil {
				if err := other(ctx); err != nil && ctx.Err() == nil {
					c.T.Errorf("beside the workers: %v", err)
					return
				}
			}
		})
	}
	workers.Wait()
	cancel()
	rest.Wait()
	if got := c.deadlocks.n.Load(); got != 0 {
		c.T.Errorf("%d statements were ended because of a deadlock", got)
	}
	if uneven := c.UnevenClaims(); len(uneven) > 0 {
		c.T.Errorf("claims differ from the outbox: %v", uneven)
	}
}

func TestEightWorkersNeverGiveMoreThanTheLimitsAndAllOfThem(t *testing.T) {
	t.Parallel()
	c := newStress(t)
	day := envelope.Duration(24 * time.Hour)
	rate := c.add(limits.Bucket{Name: "rate", Rate: &limits.Rate{Limit: 300, Per: day, Burst: 300}}, 900)
	calendar := c.add(limits.Bucket{Name: "calendar", Calendar: daily(250).Calendar}, 900)
	ceiling := c.add(limits.Bucket{Name: "ceiling", Concurrency: 3}, 300)
	both := c.add(limits.Bucket{Name: "both", Rate: &limits.Rate{Limit: 100, Per: day, Burst: 100}, Concurrency: 7}, 900)
	none := c.add(limits.Bucket{Name: "none"}, 900)

	c.run(8, false)

	for _, test := range []struct {
		bucket int64
		sent   int32
		most   int32
	}{{rate, 300, 300}, {calendar, 250, 250}, {ceiling, 300, 3}, {both, 100, 7}, {none, 900, 900}} {
		if got, most := c.sent[test.bucket].Load(), c.most[test.bucket].Load(); got != test.sent || most > test.most {
			t.Errorf("bucket %d sent %d, at most %d at once; want %d, at most %d", test.bucket, got, most, test.sent, test.most)
		}
	}
}

func TestWorkersOperatorsAndSweepsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	c := newStress(t)
	day := envelope.Duration(24 * time.Hour)
	rate := c.add(limits.Bucket{Name: "rate", Rate: &limits.Rate{Limit: 300, Per: day, Burst: 300}}, 900)
	calendar := c.add(limits.Bucket{Name: "calendar", Calendar: daily(250).Calendar}, 900)
	ceiling := c.add(limits.Bucket{Name: "ceiling", Concurrency: 3}, 400)
	changing := c.add(limits.Bucket{Name: "changing", Concurrency: 5}, 400)
	ids := c.QueueIn(ceiling, envelope.EffectOnce, 200)
	c.Exec("UPDATE actions SET tool_name = 'other' WHERE action_id = ANY ($1::uuid[])", outboxtest.Texts(ids[100:]))
	api := func(ctx context.Context, fn func(tx pgx.Tx) error) error {
		return postgres.InTx(ctx, c.DB, postgres.API(c.Tenant), fn)
	}
	var next atomic.Int32

	c.run(8, true,
		func(ctx context.Context) error { // an operator who pauses and resumes in a loop
			b := limits.Bucket{Name: "changing", Concurrency: 3 + rand.IntN(3)}
			return api(ctx, func(tx pgx.Tx) error { return limits.PutBucket(ctx, tx, c.Tenant, b, "ada") })
		},
		func(ctx context.Context) error { // a calendar bucket whose time zone changes
			zone := []string{"UTC", "Europe/Berlin"}[rand.IntN(2)]
			return api(ctx, func(tx pgx.Tx) error {
				return limits.PutTenant(ctx, tx, c.Tenant, limits.Tenant{Timezone: zone}, "ada")
			})
		},
		func(ctx context.Context) error { // undo
			id := ids[int(next.Add(1))%100]
			err := api(ctx, func(tx pgx.Tx) error { return outbox.Undo(ctx, tx, c.Tenant, id, "ada") })
			if err == nil {
				c.gone.Add(1)
			}
			if errors.Is(err, fault.Conflict) {
				return nil
			}
			return err
		},
		func(ctx context.Context) error { return c.killAndSweep(ctx, "src:other") },
	)

	if got := c.sent[rate].Load(); got > 300 {
		t.Errorf("%d were sent, want at most 300", got)
	}
	if got := c.sent[calendar].Load(); got != 250 {
		t.Errorf("%d were sent, want 250", got)
	}
	for bucket, most := range map[int64]int32{ceiling: 3, changing: 5} {
		if got := c.most[bucket].Load(); got > most {
			t.Errorf("%d of bucket %d were on their way at once, want at most %d", got, bucket, most)
		}
	}
	left := outboxtest.One[int](c.Fixture, "SELECT count(1)::int FROM outbox WHERE bucket_id = ANY ($1::bigint[])", []int64{ceiling, changing})
	cancelled := outboxtest.One[int](c.Fixture, "SELECT count(1)::int FROM tool_executions WHERE code = 'killed'")
	if all := int(c.sent[ceiling].Load()+c.sent[changing].Load()+c.gone.Load()) + cancelled + left; all != 1000 || left != 0 {
		t.Errorf("%d of 1000 are accounted for, %d are left; want all, and none", all, left)
	}
}

// TestSettlingLocksBucketsInOneOrder has one worker give permits back to the
// bucket that another closes, and the other way round.
func TestSettlingLocksBucketsInOneOrder(t *testing.T) {
	t.Parallel()
	const rounds = 60
	c := newStress(t)
	day := envelope.Duration(24 * time.Hour)
	buckets := make([]int64, 2)
	for i, name := range []string{"one", "two"} {
		buckets[i] = c.add(limits.Bucket{Name: name, Rate: &limits.Rate{Limit: 2 * rounds, Per: day, Burst: 2 * rounds}}, 2*rounds)
	}
	items := [2][]outbox.Item{c.ask(buckets[0], 2*rounds), c.ask(buckets[1], 2*rounds)}

	var both sync.WaitGroup
	for mine := range 2 {
		both.Go(func() {
			for round := range rounds {
				unused, asked := items[mine][round], items[1-mine][rounds+round]
				hold := outboxtest.Sent(asked)
				hold.CloseBucketFor, hold.CloseBucket = time.Minute, asked.Bucket
				err := postgres.InTx(t.Context(), c.DB, postgres.Worker().Planned(), func(tx pgx.Tx) error {
					_, err := outbox.Settle(t.Context(), tx, outbox.Mark{}, "w", []outbox.Settlement{outbox.Release(unused), hold})
					return err
				})
				if err != nil {
					t.Errorf("Settle = %v", err)
				}
			}
		})
	}
	both.Wait()

	if got := c.deadlocks.n.Load(); got != 0 {
		t.Errorf("%d statements were ended because of a deadlock", got)
	}
}

// killAndSweep kills a tool and lifts that again, as operators and the fleet's
// jobs do.
func (c *stress) killAndSweep(ctx context.Context, tool string) error {
	err := postgres.InTx(ctx, c.DB, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO pauses (pause_id, tenant_id, scope, subject, kill, reason, paused_by, killed_at) VALUES ($1, $2, 'tool', $3, true, 'test', 'ada', now())
			ON CONFLICT (tenant_id, scope, subject) WHERE lifted_at IS NULL DO UPDATE SET lifted_at = now()`, uuid.Must(uuid.NewV7()).String(), c.Tenant.String(), tool)
		return err
	})
	if err != nil {
		return err
	}
	var sweeps []outbox.Sweep
	err = postgres.InTx(ctx, c.DB, postgres.Worker(), func(tx pgx.Tx) (err error) {
		sweeps, err = outbox.Sweeps(ctx, tx, 10)
		return err
	})
	for _, s := range sweeps {
		var at outbox.SweepCursor
		for ended := false; !ended && err == nil; {
			err = postgres.InTx(ctx, c.DB, postgres.Worker(), func(tx pgx.Tx) (err error) {
				at, ended, err = s.Step(ctx, tx, at, 7)
				return err
			})
		}
	}
	return err
}
