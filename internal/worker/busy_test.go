package worker_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// meter counts every statement, and signals queries for due buckets.
type meter struct {
	all, looked atomic.Int64
	looks       chan struct{}
}

func (m *meter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	m.all.Add(1)
	if strings.Contains(data.SQL, "OutboxDueBuckets") {
		m.looked.Add(1)
		select {
		case m.looks <- struct{}{}:
		default:
		}
	}
	return ctx
}

func (*meter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestIdleFleetRarelyQueriesTheDatabase has three workers with nothing but work
// that may not run now, and counts their statements.
func TestIdleFleetRarelyQueriesTheDatabase(t *testing.T) {
	t.Parallel()
	const workers, each, poll, relook = 3, 10, 250 * time.Millisecond, 125 * time.Millisecond
	slow := limits.Bucket{Name: "slow", Rate: &limits.Rate{Limit: 1, Per: envelope.Duration(time.Hour)}}
	full := limits.Bucket{Name: "slow", Concurrency: 1}
	for name, test := range map[string]struct {
		bucket limits.Bucket
		state  string
		pause  *pause.Target
		every  time.Duration
		// statements bounds the statements of a round, those of its transactions
		// included.
		statements int
	}{
		"an exhausted bucket": {slow, "buckets SET tat = now() + interval '1 hour' WHERE name = 'slow'", nil, poll, 4},
		"a closed bucket":     {limits.Bucket{Name: "slow"}, "buckets SET closed_until = now() + interval '1 hour' WHERE name = 'slow'", nil, poll, 4},
		"a paused bucket":     {limits.Bucket{Name: "slow"}, "", &pause.Target{Scope: pause.Bucket, Subject: "slow"}, poll, 4},
		"a paused tenant":     {slow, "", &pause.Target{Scope: pause.Tenant}, poll, 4},
		"what waits":          {slow, "outbox SET next_attempt_at = now() + interval '1 hour'", nil, poll, 4},
		// That a place was freed by another worker is seen by looking.
		"a bucket at its ceiling": {full, "outbox SET held = true, fence = 1, lease_until = now() + interval '1 hour' WHERE action_id = (SELECT min(action_id::text)::uuid FROM outbox)", nil, relook, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			y.bucket(test.bucket)
			p := proposal(in("slow"))
			y.propose(p, p, p)
			if test.state != "" {
				y.exec("UPDATE " + test.state)
			}
			if test.pause != nil {
				y.pause(*test.pause, false)
			}
			cfg, err := pgxpool.ParseConfig(y.url)
			if err != nil {
				t.Fatal(err)
			}
			m := &meter{looks: make(chan struct{}, 1000)}
			cfg.ConnConfig.Tracer = m
			db, err := pgxpool.NewWithConfig(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)

			began := time.Now()
			for i := range workers {
				wc := config(fmt.Sprintf("w%d", i))
				wc.Poll, wc.BacklogPoll = poll, relook
				y.run(y.pipeline(db, y.src, wc))
			}
			for range workers * each {
				<-m.looks
			}
			took, asked := time.Since(began), m.all.Load()
			looked := m.looked.Load() // those of asked, and perhaps more

			// A look that begins behind the last bucket wraps around, which takes two;
			// sleeps are spread by a fifth.
			if least := time.Duration(each/2-1) * test.every * 4 / 5; took < least {
				t.Errorf("%d looks of %d workers were made in %v, want them to take %v", workers*each, workers, took, least)
			}
			// Each worker registers at its start, and checks its fence every second.
			if most := looked*int64(test.statements) + workers*(10+3*int64(took/time.Second)); asked > most {
				t.Errorf("%d statements were made for %d looks in %v, want at most %d", asked, looked, took, most)
			}
			if got := len(y.src.Calls()); got != 0 {
				t.Errorf("%d calls were made", got)
			}
		})
	}
}

// TestFullBucketsDoNotDelayOthers has a bucket at its ceiling, which always
// seems due, and another with a backlog.
func TestFullBucketsDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.bucket(limits.Bucket{Name: "slow", Concurrency: 1})
	p := proposal(in("slow"))
	y.propose(p, p, p)
	y.exec("UPDATE outbox SET held = true, fence = 1, lease_until = now() + interval '1 hour' WHERE action_id = (SELECT min(action_id::text)::uuid FROM outbox)")
	y.submit(toolRead, 1000)
	y.submit(toolRead, 1000)
	db, claims := y.watched("OutboxClaim")
	cfg := config("w1")
	cfg.Concurrency = 100

	y.run(y.pipeline(db, y.src, cfg))
	y.until("SELECT count(1) = 3 FROM outbox")

	if got := len(claims.made); got > 400 {
		t.Errorf("%d claims were made for 2000 envelopes in batches of 100", got)
	}
}
