package rest_test

import (
	"net/http"
	"testing"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// stream opens a stream of events and returns its status; a stream that was
// admitted stays open until closed is called.
func (c *client) stream() (status int, header http.Header, closed func()) {
	c.t.Helper()
	r, err := c.request(c.t.Context(), "GET", "/api/v1/events", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = res.Body.Close() })
	return res.StatusCode, res.Header, func() { _ = res.Body.Close() }
}

func TestStreamsAreLimitedPerTokenAndTenant(t *testing.T) {
	t.Parallel()
	h := newFixtureWith(t, dbtest.DB(t), rest.Config{Streams: 2})
	f, neighbour := h.tenant("streams"), h.tenant("neighbour")

	f.operator.stream()
	f.operator.stream()
	third, header, _ := f.operator.stream()
	for range 4 {
		other := f.holder(identity.Grant{Name: "other", Role: identity.RoleViewer})
		other.stream()
		other.stream()
	}
	eleventh, _, _ := f.admin.stream()
	theirs, _, _ := neighbour.operator.stream()

	if third != http.StatusTooManyRequests || header.Get("Retry-After") == "" {
		t.Errorf("the third stream of a token = %d, Retry-After %q, want 429 with it", third, header.Get("Retry-After"))
	}
	if eleventh != http.StatusTooManyRequests {
		t.Errorf("the eleventh stream of a tenant = %d, want 429", eleventh)
	}
	if theirs != http.StatusOK {
		t.Errorf("a stream of another tenant = %d, want 200", theirs)
	}
}

func TestEndedStreamFreesItsSlot(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, dbtest.DB(t), rest.Config{Streams: 1}).tenant("room")

	_, _, closed := f.operator.stream()
	closed()

	for {
		status, _, closed := f.operator.stream()
		closed()
		if status == http.StatusOK {
			return // the server detects soon that a client has left
		}
		if t.Context().Err() != nil {
			t.Fatal("no stream is admitted after one has ended")
		}
	}
}

// A wait beyond the limit is refused if the request only waits. A proposal is
// accepted, and answered without a wait.
func TestWaitsAreLimitedPerToken(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, dbtest.DB(t), rest.Config{Waits: 1}).tenant("waits")
	id := f.agent.propose("write")
	waiting := make(chan int, 1)
	go func() {
		status := http.StatusTooManyRequests // while one of the short waits below has the place
		for status == http.StatusTooManyRequests && t.Context().Err() == nil {
			status = f.agent.send("GET", path(id, "/wait?wait=1m"), nil).status
		}
		waiting <- status
	}()

	for f.agent.send("GET", path(id, "/wait?wait=1ms"), nil).status != http.StatusTooManyRequests {
		if t.Context().Err() != nil {
			t.Fatal("a second wait is admitted")
		}
	}
	called := f.agent.send("POST", "/api/v1/tools/mail:write", object{"external_id": "x", "inputs": object{}, "wait": "1m"}).wants(t, 202)
	f.operator.send("POST", path(id, "/deny"), nil).wants(t, 200)

	if called.header.Get("Countersign-Pending") != "true" {
		t.Errorf("a call beyond the limit = %s, want it answered as pending at once", called.body)
	}
	if status := <-waiting; status != http.StatusOK {
		t.Errorf("the first wait = %d, want 200", status)
	}
}
