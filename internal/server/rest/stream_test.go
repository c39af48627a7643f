package rest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest"
)

// message is one message of a stream.
type message struct {
	id, event string
	data      struct {
		ActionID     string `json:"action_id"`
		InvocationID string `json:"invocation_id"`
		Kind         string
		Status       string
		Phase        string
		Subject      string
		Actor        string
	}
}

// listener reads a stream.
type listener struct {
	c      *client
	body   io.ReadCloser
	lines  *bufio.Scanner
	schema *jsonschema.Schema
	// last is the id of the last message.
	last string
	// beats counts the comments.
	beats int
}

func (c *client) listen(last string) *listener {
	c.t.Helper()
	r, err := c.request(c.t.Context(), "GET", "/api/v1/events", nil)
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
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
		c.t.Fatalf("stream = %d %v", res.StatusCode, res.Header)
	}
	l := &listener{c: c, body: res.Body, lines: bufio.NewScanner(res.Body)}
	if l.schema, err = c.contract.EventSchema(); err != nil {
		c.t.Fatal(err)
	}
	if m, err := l.next(); err != nil || m.event != "" || m.id == "" {
		c.t.Fatalf("the first message = %+v, %v, want only an id", m, err)
	}
	return l
}

// next reads one message.
func (l *listener) next() (message, error) {
	var m message
	for l.lines.Scan() {
		name, value, _ := strings.Cut(l.lines.Text(), ": ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
			if err != nil {
				return m, err
			}
			if err := l.schema.Validate(doc); err != nil {
				return m, err
			}
			if err := json.Unmarshal([]byte(value), &m.data); err != nil {
				return m, err
			}
		case "":
			if m.id == "" {
				l.beats++
				continue
			}
			l.last = m.id
			return m, nil
		}
	}
	return m, errors.Join(io.EOF, l.lines.Err())
}

// take reads n messages.
func (l *listener) take(n int) []message {
	l.c.t.Helper()
	var all []message
	for range n {
		m, err := l.next()
		if err != nil {
			l.c.t.Fatalf("after %d of %d messages: %v", len(all), n, err)
		}
		all = append(all, m)
	}
	return all
}

// until reads up to the first message about an action. Events from just before
// the stream began may still come.
func (l *listener) until(action string) {
	l.c.t.Helper()
	for l.take(1)[0].data.ActionID != action {
		continue
	}
}

func TestStreamSendsEveryEventInOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("sequence")
	l := f.operator.listen("")

	id := f.agent.propose("write")
	f.operator.send("POST", path(id, "/approve"), nil).wants(t, 200)
	if n := f.settle(envelope.StatusSent, ""); n != 1 {
		t.Fatalf("settled %d actions, want 1", n)
	}
	f.admin.send("PUT", "/api/v1/policy/modes/*", object{"mode": "deny"}).wants(t, 200)

	var got []string
	for _, m := range l.take(4) {
		if m.event != m.data.Kind || m.data.Kind != "configured" && m.data.ActionID != id {
			t.Errorf("message = %+v", m)
		}
		got = append(got, strings.Join([]string{m.event, m.data.Status, m.data.Phase, m.data.Actor, m.data.Subject}, " "))
	}
	want := []string{"proposed pending pending " + f.agent.named("agent") + " ", "decided pending approved " + f.operator.named("operator") + " ", "settled sent  worker/test ", "configured   " + f.admin.named("admin") + " policy * is deny"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestStreamShowsAgentsTheirOwnSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("own")
	all, mine := f.operator.listen(""), f.agent.listen("")
	start := mine.last

	f.other.propose("read")
	id := f.agent.propose("read")
	f.admin.send("PUT", "/api/v1/policy/modes/*", object{"mode": "deny"}).wants(t, 200)
	last := f.agent.send("POST", "/api/v1/actions", proposal("read", object{})).wants(t, 403).problem(t).Action.Envelope.ActionID

	all.take(4)
	for _, l := range []*listener{mine, f.agent.listen(start)} {
		got := l.take(2)
		if got[0].data.ActionID != id || got[1].data.ActionID != last {
			t.Errorf("the agent saw %+v", got)
		}
	}
}

func TestResumeLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("resume")
	f.admin.send("PUT", "/api/v1/settings", object{"timezone": "UTC", "session_pending_max": 0, "session_minute_max": 0}).wants(t, 200)
	l := f.operator.listen("")
	l.until(f.agent.propose("read"))
	const writers, batches, size = 4, 12, 7
	want := make(chan string, writers*batches*size)

	var busy errgroup.Group
	for range writers {
		busy.Go(func() error {
			for range batches {
				items := make([]any, size)
				for i := range items {
					items[i] = proposal("read", object{})
				}
				a, err := f.agent.trySend(t.Context(), "POST", "/api/v1/actions/batch", object{"items": items})
				if err != nil {
					return err
				}
				if a.status != http.StatusOK {
					f.api.Close() // or the reader below would wait forever
					return fmt.Errorf("batch = %d: %s", a.status, a.body)
				}
				var answered batchAnswer
				if err := json.Unmarshal(a.body, &answered); err != nil {
					return err
				}
				for _, it := range answered.Items {
					want <- it.ActionID
				}
			}
			return nil
		})
	}
	seen := make(map[string]int)
	for n := range writers * batches * size {
		if n%31 == 30 { // also in the middle of a batch
			_ = l.body.Close()
			l = f.operator.listen(l.last)
		}
		m, err := l.next()
		if err != nil {
			t.Fatalf("after %d messages: %v, %v", n, err, busy.Wait())
		}
		seen[m.data.ActionID]++
	}
	if err := busy.Wait(); err != nil {
		t.Fatal(err)
	}
	close(want)

	for id := range want {
		if seen[id] != 1 {
			t.Errorf("%s was told %d times", id, seen[id])
		}
	}
	end := f.agent.propose("read")
	if got := l.take(1)[0].data.ActionID; got != end {
		t.Errorf("after all came %s, want %s", got, end)
	}
}

func TestResumeByQueryAfterAWhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("query")
	f.admin.send("PUT", "/api/v1/settings", object{"timezone": "UTC", "session_pending_max": 0, "session_minute_max": 0}).wants(t, 200)
	l := f.operator.listen("")
	first := l.last
	_ = l.body.Close()
	var ids []string
	for range 250 { // more than one read returns
		ids = append(ids, f.agent.propose("read"))
	}

	r, err := f.operator.request(t.Context(), "GET", "/api/v1/events?last_event_id="+first, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	l = &listener{c: f.operator, body: res.Body, lines: bufio.NewScanner(res.Body)}
	if l.schema, err = f.contract.EventSchema(); err != nil {
		t.Fatal(err)
	}

	l.take(1) // where it begins
	for i, m := range l.take(len(ids)) {
		if m.data.ActionID != ids[i] {
			t.Fatalf("message %d is of %s, want %s", i, m.data.ActionID, ids[i])
		}
	}
}

func TestHeartbeatsComeAndRevocationEndsTheStream(t *testing.T) {
	t.Parallel()
	h := newFixtureWith(t, dbtest.DB(t), rest.Config{Heartbeat: 5 * time.Millisecond})
	f := h.tenant("beats")
	l := f.operator.listen("")

	id := f.agent.propose("read")
	l.take(1)
	f.admin.send("DELETE", "/api/v1/tokens/"+f.operator.id.String(), nil).wants(t, 204)

	_, err := l.next() // the first message after the revocation, then the end
	for err == nil {
		_, err = l.next()
	}
	if !errors.Is(err, io.EOF) || l.beats == 0 {
		t.Errorf("stream of %s ended with %v after %d beats", id, err, l.beats)
	}
}

func TestCloseEndsStreamsAndWaits(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("close")
	id := f.agent.propose("write")
	l := f.operator.listen("")
	waited := make(chan answer, 1)
	var waiting errgroup.Group
	waiting.Go(func() error {
		a, err := f.agent.trySend(t.Context(), "GET", path(id, "/wait?wait=5m"), nil)
		waited <- a
		return err
	})
	l.until(f.operator.propose("read"))

	f.api.Close()

	if m, err := l.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after Close came %+v, %v, want the end", m, err)
	}
	if err := waiting.Wait(); err != nil {
		t.Fatal(err)
	}
	if a := <-waited; a.status != 200 || a.header.Get("Countersign-Pending") != "true" {
		t.Errorf("the wait = %d: %s", a.status, a.body)
	}
	f.operator.send("GET", "/api/v1/events", nil).wants(t, 503)
	f.agent.send("GET", path(id), nil).wants(t, 200)
}
