package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

// A worker that is stopped while the database is away tries for a while, and
// ends: the leases of unwritten outcomes run out.
func TestAStopEndsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	metrics, err := telemetry.NewMetrics(noop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		const held = 64
		db, err := postgres.Open(t.Context(), postgres.Config{URL: "postgres://nobody@127.0.0.1:1/none?sslmode=disable"})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		p := NewPipeline(db, nil, nil, PipelineConfig{ID: "w1", Concurrency: held, Metrics: metrics})
		p.calls = t.Context()
		p.semaphore.acquire(t.Context(), held, 0, time.Hour, nil)
		p.stopping.Store(true)
		batch := make([]settlement, held)
		for i := range batch {
			it := &outbox.Item{Lease: outbox.Lease{Action: envelope.NewActionID(), Fence: 1}}
			batch[i] = settlement{Settlement: outbox.Release(*it), item: it}
		}
		began := time.Now()

		p.commit(p.guard.Loop(), batch)

		if took := time.Since(began); took > time.Minute || p.semaphore.free != held {
			t.Errorf("commit gave up after %v with %d slots free, want less than a minute and all", took, p.semaphore.free)
		}
	})
}

// TestOneSettlerCollectsAtATime holds that outcomes that come within a window are one
// batch, though two settlers wait for them.
func TestOneSettlerCollectsAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPipeline(nil, nil, nil, PipelineConfig{ID: "w1"})
		p.executing.Store(1)
		batches := make(chan []settlement, 2)
		for range p.cfg.Settlers {
			go func() { batches <- p.nextBatch(nil) }()
		}
		for range 6 {
			synctest.Wait()
			p.settle <- settlement{}
		}

		if first := <-batches; len(first) != 6 {
			t.Errorf("the first batch has %d outcomes, want 6", len(first))
		}

		close(p.settle)
		if last := <-batches; last != nil {
			t.Errorf("the other settler has %d outcomes, want none", len(last))
		}
	})
}

// TestWindowIsAsLongAsACommit collects an outcome while another call is open, and one
// while none is.
func TestWindowIsAsLongAsACommit(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond: 2 * time.Millisecond, 6 * time.Millisecond: 6 * time.Millisecond, time.Second: longestWindow,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPipeline(nil, nil, nil, PipelineConfig{ID: "w1"})
			p.commitTook.Store(int64(took))
			p.executing.Store(1)
			p.settle <- settlement{}
			began := time.Now()

			if p.nextBatch(nil); time.Since(began) != want {
				t.Errorf("after a commit of %s a batch was collected for %s, want %s", took, time.Since(began), want)
			}

			p.executing.Store(0)
			p.settle <- settlement{}
			began = time.Now()
			if p.nextBatch(nil); time.Since(began) != 0 {
				t.Errorf("without an open call a batch was collected for %s", time.Since(began))
			}
		})
	}
}
