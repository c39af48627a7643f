package telemetry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/countersign-dev/countersign/internal/telemetry"
)

// fleet is a standing in which everything has a value of its own.
func fleet() telemetry.Standing {
	return telemetry.Standing{
		Due: 3, Scheduled: 4, InFlight: 5, Overdue: 6, OldestDue: 1500 * time.Millisecond,
		Waiting: map[string]int64{"turn": 7, "quiet_hours": 8},
		Buckets: []telemetry.BucketStanding{
			{Tenant: "acme", Bucket: "email.daily", Waiting: 9, OldestDue: time.Minute, Limited: true, Tokens: 10, InUse: 11, Concurrency: 12, OpensIn: 13 * time.Second},
			{Tenant: "acme", Bucket: "slow", Limited: true, Tokens: -1, Concurrency: 1},
			{Tenant: "acme", Bucket: "free", Waiting: 14, Tokens: -1, Concurrency: -1},
		},
		Breakers: []telemetry.BreakerStanding{
			{Tenant: "acme", Source: "mail", State: "open"}, {Tenant: "acme", Source: "chat", State: "half-open"}, {Tenant: "acme", Source: "crm", State: "closed"},
		},
		Pauses: map[string]int64{"source": 1}, Letters: map[string]int64{"unknown": 15}, OldestUnknown: time.Hour, Unsealed: 2 * time.Minute,
		Notices: map[string]int64{"ledger": 16}, Tables: []telemetry.TableStanding{{Name: "outbox", Bytes: 17, Live: 18, Dead: 19}},
	}
}

func TestStandingInPrometheus(t *testing.T) {
	t.Parallel()

	tel := setup(t)
	stop, err := tel.Metrics.ObserveStanding(func(context.Context) (telemetry.Standing, error) { return fleet(), nil })
	if err != nil {
		t.Fatalf("ObserveStanding = %v", err)
	}

	page := scrape(t, tel)

	for _, line := range []string{
		`countersign_backlog{state="due"} 3`,
		`countersign_backlog{state="scheduled"} 4`,
		`countersign_backlog{state="in_flight"} 5`,
		`countersign_leases_overdue 6`,
		`countersign_backlog_oldest_due_age_seconds 1.5`,
		`countersign_waiting{reason="turn"} 7`,
		`countersign_waiting{reason="quiet_hours"} 8`,
		`countersign_bucket_waiting{bucket="email.daily",tenant="acme"} 9`,
		`countersign_bucket_oldest_due_age_seconds{bucket="email.daily",tenant="acme"} 60`,
		`countersign_bucket_tokens{bucket="email.daily",tenant="acme"} 10`,
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
		`countersign_seals_lag_seconds 120`,
		`countersign_notices{kind="ledger"} 16`,
		`countersign_table_size_bytes{table="outbox"} 17`,
		`countersign_table_rows{state="live",table="outbox"} 18`,
		`countersign_table_rows{state="dead",table="outbox"} 19`,
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
	for _, series := range []string{
		`countersign_bucket_tokens{bucket="slow"`, `countersign_bucket_tokens{bucket="free"`, `countersign_bucket_opens_in_seconds{bucket="free"`,
		`countersign_bucket_in_use{bucket="free"`,
	} {
		if strings.Contains(page, series) {
			t.Errorf("metrics have %s of a limit that there is not", series)
		}
	}
	if t.Failed() {
		t.Log(page)
	}

	if err := stop(); err != nil {
		t.Fatalf("stop = %v", err)
	}
	if page := scrape(t, tel); strings.Contains(page, "countersign_waiting{") {
		t.Error("the standing is observed after stop")
	}
}

func TestStandingThatCannotBeReadSparesTheRest(t *testing.T) {
	t.Parallel()

	tel := setup(t)
	if _, err := tel.Metrics.ObserveStanding(func(context.Context) (telemetry.Standing, error) {
		return telemetry.Standing{}, errors.New("database is away")
	}); err != nil {
		t.Fatalf("ObserveStanding = %v", err)
	}
	tel.Metrics.FenceLost.Add(t.Context(), 1)

	page := scrape(t, tel)

	if strings.Contains(page, "countersign_backlog{") || !strings.Contains(page, "countersign_claims_lost_total 1\n") {
		t.Errorf("want the counter and no backlog, got:\n%s", page)
	}
}

func TestStandingIsReadOnlyWhenCollected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		m, err := telemetry.NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
		if err != nil {
			t.Fatal(err)
		}
		reads, broken := 0, errors.New("database is away")
		_, err = m.ObserveStanding(func(context.Context) (telemetry.Standing, error) {
			if reads++; reads == 2 {
				return telemetry.Standing{}, broken
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
