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
