package rest_test

import (
	"maps"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
)

// TestOnlyEventsMakeAnActionAwaited records the value of the column in every
// version of an action's row.
func TestOnlyEventsMakeAnActionAwaited(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	outboxtest.RecordAwaited(t, f.db)
	reads := func(more object) object {
		p := proposal("read", object{"urgent": true, "awaited": true, "wait": "1m"})
		maps.Copy(p, more)
		return p
	}
	send := func(path string, body object, status int) func(t *testing.T) {
		return func(t *testing.T) {
			t.Helper()
			f.agent.send("POST", path, body).wants(t, status)
		}
	}
	for _, test := range []struct {
		name string
		do   func(t *testing.T)
		want []bool
	}{
		{"proposed without a wait, as urgent as can be", send("/api/v1/actions", reads(object{"risk": "high", "constraints": object{"urgent": true}}), http.StatusCreated), []bool{false}},
		{"proposed in a batch", send("/api/v1/actions/batch", object{"items": []object{reads(nil)}}, http.StatusOK), []bool{false}},
		{"proposed with a wait that ended", send("/api/v1/actions?wait=1ms", reads(nil), http.StatusCreated), []bool{true, false}},
		{"called, with a wait that ended", send("/api/v1/tools/mail:read", named(object{"wait": "1ms"}), http.StatusAccepted), []bool{true, false}},
		{"called without a wait", send("/api/v1/tools/mail:read", named(object{"wait": "0s"}), http.StatusAccepted), []bool{false}},
		{"waits for a person", send("/api/v1/actions?wait=1ms", proposal("write", object{}), http.StatusCreated), []bool{}},
		{"approved by a person", func(t *testing.T) {
			t.Helper()
			id := f.agent.propose("write")
			f.operator.send("POST", path(id, "/approve?wait=1ms"), object{}).wants(t, http.StatusOK)
		}, []bool{true}},
	} {
		outboxtest.AwaitedSince(t, f.db)

		test.do(t)

		if diff := cmp.Diff(test.want, outboxtest.AwaitedSince(t, f.db)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
