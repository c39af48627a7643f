package rest_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// listenTo opens a stream with parameters.
func (c *client) listenTo(query, last string) *listener {
	c.t.Helper()
	r, err := c.request(c.t.Context(), "GET", "/api/v1/events?"+query, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		c.t.Fatalf("stream?%s = %d", query, res.StatusCode)
	}
	l := &listener{c: c, body: res.Body, lines: bufio.NewScanner(res.Body)}
	schema := c.contract.EventSchema
	if strings.Contains(query, "view=invocations") {
		schema = c.contract.InvocationSchema
	}
	if l.schema, err = schema(); err != nil {
		c.t.Fatal(err)
	}
	l.take(1) // where it begins
	return l
}

// subjects returns the names and subjects of messages, except messages with only an id.
func (l *listener) subjects(n int) []string {
	l.c.t.Helper()
	var all []string
	for len(all) < n {
		m := l.take(1)[0]
		if m.event == "" {
			continue
		}
		id := m.data.ActionID
		if id == "" {
			id = m.data.InvocationID
		}
		all = append(all, m.event+" "+id)
	}
	return all
}

func TestStreamsAreFiltered(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("filtered")
	narrow := f.holder(identity.Grant{Name: "narrow", Role: identity.RoleViewer, Tools: []string{"mail:read"}})
	start := f.operator.listen("").last
	read, write, other := f.agent.propose("read"), f.agent.propose("write"), f.other.propose("read")
	f.operator.send("POST", path(write, "/deny"), nil).wants(t, 200)
	f.admin.send("PUT", "/api/v1/policy/modes/*", object{"mode": "deny"}).wants(t, 200)
	last := f.agent.send("POST", "/api/v1/actions", proposal("read", object{})).wants(t, 403).problem(t).Action.Envelope.ActionID

	for query, test := range map[string]struct {
		by   *client
		want []string
	}{
		"":                          {f.operator, []string{"proposed " + read, "proposed " + write, "proposed " + other, "decided " + write, "configured ", "proposed " + last}},
		"kind=decided,configured":   {f.operator, []string{"decided " + write, "configured "}},
		"action_id=" + write:        {f.operator, []string{"proposed " + write, "decided " + write}},
		"session_id=s-two":          {f.operator, []string{"proposed " + other}},
		"tool=mail:write":           {f.operator, []string{"proposed " + write, "decided " + write}},
		"tool=*:read&kind=proposed": {f.operator, []string{"proposed " + read, "proposed " + other, "proposed " + last}},
		"view=transitions":          {narrow, []string{"proposed " + read, "proposed " + other, "proposed " + last}},
		"tool=mail:*":               {f.agent, []string{"proposed " + read, "proposed " + write, "decided " + write, "proposed " + last}},
	} {
		if diff := cmp.Diff(test.want, test.by.listenTo(query, start).subjects(len(test.want))); diff != "" {
			t.Errorf("?%s (-want +got):\n%s", query, diff)
		}
	}
	// Another agent's session is not visible to an agent, with any filter.
	l := f.agent.listenTo("session_id=s-two", start)
	f.agent.listenTo("action_id="+last, start).subjects(1)
	mine := f.agent.listenTo("session_id=s-one", start)
	mine.subjects(1)
	if l.last != start {
		t.Errorf("an agent got as far as %s of another session", l.last)
	}
	for _, query := range []string{"kind=everything", "kind=", "tool=mail", "action_id=x", "view=all", "session=s"} {
		f.operator.send("GET", "/api/v1/events?"+query, nil).wants(t, 400)
	}
}

func TestStreamOfInvocations(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("invocations")
	l, mine := f.operator.listenTo("view=invocations", ""), f.agent.listenTo("view=invocations&kind=action_completed", "")
	start := l.last

	id := f.agent.send("POST", "/api/v1/actions", proposal("write", object{"to": "bo"})).wants(t, 201).action(t).Envelope.ActionID
	f.operator.send("POST", path(id, "/approve"), object{"note": "fine"}).wants(t, 200)
	f.settle(envelope.StatusSent, "")
	free := f.agent.propose("read")
	f.settle(envelope.StatusSent, "")

	want := []string{"action_approval_request " + id, "action_approval_result " + id, "action_completed " + id, "action_completed " + free}
	if diff := cmp.Diff(want, l.subjects(4)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[2:], mine.subjects(2)); diff != "" {
		t.Errorf("events of the agent (-want +got):\n%s", diff)
	}
	// Again from the beginning, and from the middle.
	if diff := cmp.Diff(want, f.operator.listenTo("view=invocations", start).subjects(4)); diff != "" {
		t.Errorf("events on resuming (-want +got):\n%s", diff)
	}
}

// TestAQuietStreamMovesOn: skipped events are not read again.
func TestAQuietStreamMovesOn(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, dbtest.DB(t), rest.Config{Heartbeat: 5 * time.Millisecond}).tenant("quiet")
	l := f.operator.listenTo("kind=killed", "")
	start := l.last

	f.agent.propose("read")
	m := l.take(1)[0]

	if m.event != "" || m.id == start {
		t.Errorf("message = %+v, want only an id behind %s", m, start)
	}
}
