package engine_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/engine"
)

func TestGaugeOfAccounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"failing", "late", "held", "disabled"} {
		f.put(name, func(a *account.Account) { a.Enabled = name != "disabled" })
	}
	reader := sdkmetric.NewManualReader()
	e := f.engine(func(c *engine.Config) {
		c.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	})
	f.exec(`INSERT INTO triage_schedules (tenant_id, account_id, failures, next_run_at, holder, lease_until)
		SELECT tenant_id, account_id, CASE name WHEN 'failing' THEN 3 ELSE 0 END,
			CASE WHEN name IN ('late', 'held', 'disabled') THEN now() - interval '1 hour' ELSE now() END,
			CASE name WHEN 'held' THEN gen_random_uuid() END, CASE name WHEN 'held' THEN now() + interval '1 hour' END
		FROM triage_accounts`)
	gauge := func() map[string]int64 {
		var all metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				if points, ok := m.Data.(metricdata.Gauge[int64]); ok && m.Name == "countersign.triage.accounts" {
					for _, p := range points.DataPoints {
						state, _ := p.Attributes.Value("state")
						got[state.AsString()] = p.Value
					}
				}
			}
		}
		return got
	}

	got := gauge()
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Error(err)
	}

	if diff := cmp.Diff(map[string]int64{"ok": 2, "failing": 1, "late": 1}, got); diff != "" {
		t.Errorf("accounts by state (-want +got):\n%s", diff)
	}
	if after := gauge(); len(after) > 0 {
		t.Errorf("after Close the gauge shows %v", after)
	}
}
