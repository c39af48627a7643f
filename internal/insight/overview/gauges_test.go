package overview_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

// fleet returns a state in which every number is different.
func fleet() overview.Fleet {
	return overview.Fleet{
		Backlog: overview.Backlog{Due: 3, Scheduled: 4, InFlight: 5, Overdue: 6, Startable: 2, OldestDue: 1500 * time.Millisecond},
		Waiting: map[string]int64{"turn": 7, "quiet_hours": 8},
		Buckets: []overview.Bucket{
			{Tenant: "acme", Name: "email.daily", Waiting: 9, OldestDue: time.Minute, Limited: true, Permits: 10, InUse: 11, Concurrency: 12, OpensIn: 13 * time.Second},
			{Tenant: "acme", Name: "slow", Limited: true, Permits: -1, Concurrency: 1},
			{Tenant: "acme", Name: "free", Waiting: 14, Permits: -1, Concurrency: -1},
		},
		Breakers: []overview.Breaker{
			{Tenant: "acme", OverviewBreaker: wire.OverviewBreaker{Source: "mail", State: "open"}}, {Tenant: "acme", OverviewBreaker: wire.OverviewBreaker{Source: "chat", State: "half-open"}}, {Tenant: "acme", OverviewBreaker: wire.OverviewBreaker{Source: "crm", State: "closed"}},
		},
		Pauses: map[string]int64{"source": 1}, DeadLetters: map[string]int64{"unknown": 15}, OldestUnknown: time.Hour, CheckpointLag: 2 * time.Minute,
		Held: true, Proposals: 20, OldestProposal: 21 * time.Second,
		PastRetention: map[string]int64{"actions": 16}, Tables: []overview.Table{{Name: "outbox", Bytes: 17, Live: 18, Dead: 19}},
	}
}

// scrape returns the metrics in the format of Prometheus.
func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func setup(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{Service: "countersign-test"})
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

func TestGaugesInPrometheus(t *testing.T) {
	t.Parallel()

	tel := setup(t)
	stop, err := overview.Observe(tel.Meter(), func(context.Context) (overview.Fleet, error) { return fleet(), nil })
	if err != nil {
		t.Fatalf("Observe() = %v", err)
	}

	metrics := scrape(t, tel)

	for _, line := range []string{
		`countersign_backlog{state="due"} 3`,
		`countersign_backlog{state="scheduled"} 4`,
		`countersign_backlog{state="in_flight"} 5`,
		`countersign_leases_overdue 6`,
		`countersign_backlog_startable 2`,
		`countersign_backlog_oldest_due_age_seconds 1.5`,
		`countersign_waiting{reason="turn"} 7`,
		`countersign_waiting{reason="quiet_hours"} 8`,
		`countersign_bucket_waiting{bucket="email.daily",tenant="acme"} 9`,
		`countersign_bucket_oldest_due_age_seconds{bucket="email.daily",tenant="acme"} 60`,
		`countersign_bucket_permits{bucket="email.daily",tenant="acme"} 10`,
		`countersign_bucket_in_use{bucket="email.daily",tenant="acme"} 11`,
		`countersign_bucket_concurrency{bucket="email.daily",tenant="acme"} 12`,
		`countersign_bucket_opens_in_seconds{bucket="email.daily",tenant="acme"} 13`,
		`countersign_bucket_concurrency{bucket="slow",tenant="acme"} 1`,
		`countersign_bucket_waiting{bucket="free",tenant="acme"} 14`,
		`countersign_breaker_state{source="mail",tenant="acme"} 2`,
		`countersign_breaker_state{source="chat",tenant="acme"} 1`,
		`countersign_breaker_state{source="crm",tenant="acme"} 0`,
		`countersign_pauses{scope="source"} 1`,
		`countersign_dead_letters{reason="unknown"} 15`,
		`countersign_unknowns_oldest_age_seconds 3600`,
		`countersign_checkpoint_lag_seconds 120`,
		`countersign_proposals_waiting 20`,
		`countersign_proposals_oldest_age_seconds 21`,
		`countersign_retention_overdue{kind="actions"} 16`,
		`countersign_table_size_bytes{table="outbox"} 17`,
		`countersign_table_rows{state="live",table="outbox"} 18`,
		`countersign_table_rows{state="dead",table="outbox"} 19`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
	for _, series := range []string{
		`countersign_bucket_permits{bucket="slow"`, `countersign_bucket_permits{bucket="free"`, `countersign_bucket_opens_in_seconds{bucket="free"`,
		`countersign_bucket_in_use{bucket="free"`,
	} {
		if strings.Contains(metrics, series) {
			t.Errorf("metrics have %s of a limit that there is not", series)
		}
	}
	if t.Failed() {
		t.Log(metrics)
	}

	if err := stop(); err != nil {
		t.Fatalf("stop = %v", err)
	}
	if metrics := scrape(t, tel); strings.Contains(metrics, "countersign_waiting{") {
		t.Error("the fleet is observed after stop")
	}
}

func TestFailedReadingLeavesOtherMetrics(t *testing.T) {
	t.Parallel()

	tel := setup(t)
	if _, err := overview.Observe(tel.Meter(), func(context.Context) (overview.Fleet, error) {
		return overview.Fleet{}, errors.New("database is away")
	}); err != nil {
		t.Fatalf("Observe() = %v", err)
	}
	tel.Metrics.FenceLost.Add(t.Context(), 1)

	metrics := scrape(t, tel)

	if strings.Contains(metrics, "countersign_backlog{") || !strings.Contains(metrics, "countersign_claims_lost_total 1\n") {
		t.Errorf("want the counter and no backlog, got:\n%s", metrics)
	}
}

func TestFleetIsReadOnlyWhenCollected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
		reads, broken := 0, errors.New("database is away")
		_, err := overview.Observe(meter, func(context.Context) (overview.Fleet, error) {
			if reads++; reads == 2 {
				return overview.Fleet{}, broken
			}
			return fleet(), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var got metricdata.ResourceMetrics
		for _, step := range []struct {
			pause time.Duration
			reads int
			err   error
		}{
			{0, 1, nil}, {4 * time.Second, 1, nil}, {time.Second, 2, broken}, {0, 3, nil}, {0, 3, nil},
		} {
			time.Sleep(step.pause)
			if err := reader.Collect(t.Context(), &got); !errors.Is(err, step.err) {
				t.Errorf("Collect = %v, want %v", err, step.err)
			}
			if reads != step.reads {
				t.Errorf("read %d times, want %d", reads, step.reads)
			}
		}
	})
}
