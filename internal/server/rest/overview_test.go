package rest_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOverviewCounts goes through every list once, so that each kind
// of element is checked against the contract.
func TestOverviewCounts(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, other := h.tenant("mine"), h.tenant("theirs")
	other.dead()
	f.dead()
	f.agent.propose("read")
	f.agent.propose("write")
	f.exec("UPDATE outbox SET next_attempt_at = now() + interval '1 hour', waits_for = 'quiet_hours' WHERE tenant_id = $1", f.id.String())
	f.agent.propose("read")
	f.exec("UPDATE buckets SET concurrency = 3, rate_limit = 5, rate_seconds = 1, burst = 5, closed_until = now() + interval '1 minute', closed_by = 'retry_after' WHERE tenant_id = $1", f.id.String())
	f.exec("INSERT INTO breakers (tenant_id, source_id, state, cause, open_until, worker) VALUES ($1, 'mail', 'open', 'failures', now(), 'w')", f.id.String())
	f.exec("INSERT INTO pauses (pause_id, tenant_id, scope, subject, reason, paused_by) VALUES (gen_random_uuid(), $1, 'tool', 'mail:write', 'why', 'Ana')", f.id.String())

	var got struct {
		Due, Scheduled int
		Waiting        []struct {
			Reason  string
			Actions int
		}
		Buckets []struct {
			Name                 string
			Waiting              int
			Permits, Concurrency *int
			ClosedBy             *string `json:"closed_by"`
		}
		Breakers    []struct{ Source, State string }
		Pauses      []struct{ Scope, Subject, Reason, By string }
		Approvals   struct{ Waiting int }
		DeadLetters []struct {
			Reason string
			Count  int
		} `json:"dead_letters"`
		Throughput struct {
			Covers float64 `json:"covers_seconds"`
			Ended  []struct {
				Tool, Status string
				LastMinute   int `json:"last_minute"`
			}
		}
	}
	f.operator.send("GET", "/api/v1/overview", nil).wants(t, http.StatusOK).into(t, &got)

	waiting := map[string]int{}
	for _, w := range got.Waiting {
		waiting[w.Reason] = w.Actions
	}
	if diff := cmp.Diff(map[string]int{"quiet_hours": 1, "retry_after": 1, "approval": 1}, waiting); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	if got.Due != 1 || got.Scheduled != 1 || got.Approvals.Waiting != 1 {
		t.Errorf("due, scheduled, approvals = %d, %d, %d, want 1 of each", got.Due, got.Scheduled, got.Approvals.Waiting)
	}
	if len(got.Buckets) != 1 || got.Buckets[0].Waiting != 2 || *got.Buckets[0].Permits != 0 || *got.Buckets[0].Concurrency != 3 || *got.Buckets[0].ClosedBy != "retry_after" {
		t.Errorf("buckets = %+v", got.Buckets)
	}
	if len(got.Breakers) != 1 || got.Breakers[0].State != "open" || len(got.Pauses) != 1 || got.Pauses[0].By != "Ana" {
		t.Errorf("breakers = %+v, pauses = %+v", got.Breakers, got.Pauses)
	}
	if len(got.DeadLetters) != 1 || got.DeadLetters[0].Count != 3 {
		t.Errorf("dead deadLettersPath = %+v, want 3 of its own", got.DeadLetters)
	}
	if len(got.Throughput.Ended) != 1 || got.Throughput.Ended[0].Status != "failed" || got.Throughput.Ended[0].LastMinute != 3 || got.Throughput.Covers != 300 {
		t.Errorf("throughput = %+v", got.Throughput)
	}
}

func TestOverviewOfANewTenantIsEmpty(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("new")

	body := string(f.operator.send("GET", "/api/v1/overview", nil).wants(t, http.StatusOK).body)

	var got map[string]any
	f.operator.send("GET", "/api/v1/overview", nil).into(t, &got)
	for _, list := range []string{"waiting", "buckets", "breakers", "pauses", "dead_letters"} {
		if all, ok := got[list].([]any); !ok || len(all) > 0 {
			t.Errorf("%s is no empty list in %s", list, body)
		}
	}
}

func (f *tenantFixture) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
}
