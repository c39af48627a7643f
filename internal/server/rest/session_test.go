package rest_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestSessionLimitHasRetryAfter(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("session-limits")
	f.admin.send("PUT", "/api/v1/settings", object{"timezone": "UTC", "session_pending_max": 1, "session_minute_max": 3}).wants(t, 200)
	first := proposal("write", object{"to": "a"})
	accepted := f.agent.send("POST", "/api/v1/actions", first).wants(t, 201)

	pending := f.agent.send("POST", "/api/v1/actions", proposal("write", object{"to": "a"})).wants(t, 429)
	again := f.agent.send("POST", "/api/v1/actions", first).wants(t, 200)
	f.other.send("POST", "/api/v1/actions", proposal("write", object{"to": "a"})).wants(t, 201)
	f.operator.send("POST", "/api/v1/actions", proposal("write", object{"to": "a"})).wants(t, 201)
	batch := f.agent.send("POST", "/api/v1/actions/batch", object{"items": []any{
		first, proposal("write", object{"to": "a"}), proposal("read", object{}), proposal("read", object{}), proposal("read", object{}),
	}}).wants(t, 200)
	minute := f.agent.send("POST", "/api/v1/actions", proposal("read", object{})).wants(t, 429)

	for what, got := range map[string]answer{"pending": pending, "minute": minute} {
		wait, err := strconv.Atoi(got.header.Get("Retry-After"))
		if p := got.problem(t); err != nil || wait < 1 || p.Type != "urn:countersign:problem:limited" || !strings.Contains(p.Detail, "try again") {
			t.Errorf("%s: Retry-After %q and %+v, want when to try again", what, got.header.Get("Retry-After"), p)
		}
	}
	for what, tt := range map[string]struct {
		got             answer
		policies, state string
	}{
		"accepted": {accepted, `"session-minute";q=3;w=60, "session-pending";q=1`, `^"session-minute";r=2;t=\d+, "session-pending";r=0;t=\d+$`},
		"pending":  {pending, `"session-pending";q=1`, `^"session-pending";r=0;t=\d+$`},
		"batch":    {batch, `"session-minute";q=3;w=60, "session-pending";q=1`, `^"session-minute";r=0;t=\d+, "session-pending";r=0;t=\d+$`},
		"minute":   {minute, `"session-minute";q=3;w=60`, `^"session-minute";r=0;t=\d+$`},
		"known":    {again, "", `^$`},
	} {
		policies, state := tt.got.header.Get("RateLimit-Policy"), tt.got.header.Get("RateLimit")
		if policies != tt.policies || !regexp.MustCompile(tt.state).MatchString(state) {
			t.Errorf("%s: RateLimit-Policy %s and RateLimit %s, want %s and %s", what, policies, state, tt.policies, tt.state)
		}
	}
	if wait, _ := strconv.Atoi(minute.header.Get("Retry-After")); wait > 60 {
		t.Errorf("Retry-After is %d, want at most a minute", wait)
	}
	if again.action(t).Phase != "pending" {
		t.Errorf("a repeat is %s, want the first one", again.body)
	}
	var list struct {
		Items []struct {
			Result  string
			Problem *shownProblem
		}
	}
	batch.into(t, &list)
	var results []string
	for _, it := range list.Items {
		results = append(results, it.Result)
		if it.Result == "refused" && it.Problem.Status != 429 {
			t.Errorf("refused with %+v, want 429", it.Problem)
		}
	}
	if got := strings.Join(results, " "); got != "known refused accepted accepted refused" {
		t.Errorf("the batch became %s", got)
	}
}
