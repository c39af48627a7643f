// Package events handles the requests about events: the stream of events, the
// subscriptions that deliver them elsewhere, and the buttons of Slack messages.
package events

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/broker"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Stream handles GET /api/v1/events. It answers with the tenant's events as
// server-sent events, until the client or the server closes the stream.
func Stream(c *request.Call) error {
	last, resuming, err := lastEvent(c)
	if err != nil {
		return err
	}
	s := &stream{c: c, control: http.NewResponseController(c.W), last: last}
	if s.filter, err = newFilter(c); err != nil {
		return err
	}
	if !resuming {
		return s.follow(false)
	}
	// Most of the missed events are sent before the stream subscribes, so that new
	// events do not fill its backlog meanwhile.
	if err = s.open(); err == nil {
		err = s.catchUp(nil)
	}
	if err != nil {
		return s.end(err)
	}
	return s.follow(true)
}

// lastEvent returns the id of the last event that the client received, if it
// sent one.
func lastEvent(c *request.Call) (id eventID, given bool, err error) {
	text := c.R.Header.Get("Last-Event-ID")
	text = cmp.Or(text, c.Query.Get("last_event_id"))
	if text == "" {
		return eventID{}, false, nil
	}
	id, err = parseEventID(text)
	return id, true, err
}

// stream writes events to one client, each once and in order.
type stream struct {
	c       *request.Call
	control *http.ResponseController
	filter  filter
	// last is the last event that was read, sent the last id that the client
	// received.
	last, sent eventID
}

// follow sends new events until the client or the server closes the stream.
func (s *stream) follow(resumed bool) error {
	ctx := s.c.R.Context()
	sub, err := s.c.Broker.Subscribe(ctx, s.c.By.Tenant)
	if err != nil {
		if resumed {
			return s.end(err)
		}
		return err
	}
	defer s.c.Broker.Unsubscribe(sub)
	if resumed {
		err = s.catchUp(&sub.From)
	} else {
		s.last = eventID{sub.From, afterAllItems}
		err = s.open()
	}
	heartbeat := time.NewTicker(s.c.Heartbeat)
	defer heartbeat.Stop()
	for err == nil {
		select {
		case b, more := <-sub.Batches():
			if !more {
				return nil
			}
			err = s.send(b)
		case <-heartbeat.C:
			err = s.heartbeat()
		case <-ctx.Done():
			return nil
		}
	}
	return s.end(err)
}

// errOther is the error of a stream whose token or session has other rights now.
var errOther = errors.New("the rights of the caller changed since the stream began")

// heartbeat shows the client that the stream is alive, and ends the stream when
// its token or session is no longer valid, or allows something else.
func (s *stream) heartbeat() error {
	by, err := s.c.Authenticate()
	if errors.Is(err, identity.ErrToken) || errors.Is(err, fault.Denied) {
		return err
	}
	if err == nil && !by.Equal(s.c.By) {
		return errOther
	}
	alive := []byte(": alive\n\n")
	if s.sent != s.last {
		// Events that did not pass need not be read again on resuming.
		alive = append(alive, "id: "+s.last.String()+"\n\n"...)
		s.sent = s.last
	}
	return s.write(alive)
}

// end ends a stream after its response has begun. The client cannot get an
// error any more and resumes; the error is logged.
func (s *stream) end(err error) error {
	ctx := s.c.R.Context()
	if ctx.Err() == nil && !s.c.Broker.IsClosed() {
		s.c.Log.InfoContext(ctx, "event stream cut", slog.String("request_id", request.ID(ctx)), slog.Any("error", err))
	}
	return nil
}

// catchUp sends the events after the last one that the client received, up to
// and including the event at until; nil means all.
func (s *stream) catchUp(until *audit.Position) error {
	// The last event may have more items than the client received.
	at := audit.Position{Tx: s.last.place.Tx, Event: s.last.place.Event - 1}
	for {
		b, err := s.c.Broker.Read(s.c.R.Context(), s.c.By.Tenant, at)
		if err != nil {
			return err
		}
		full := b.Full()
		if until != nil {
			b.Events = upTo(b.Events, *until)
		}
		if len(b.Events) == 0 {
			return nil
		}
		if err := s.send(b); err != nil {
			return err
		}
		if !full {
			return nil
		}
		at = b.Events[len(b.Events)-1].Position
	}
}

// upTo returns the events up to and including the event at a place.
func upTo(events []audit.Stored, until audit.Position) []audit.Stored {
	for i, e := range events {
		if (eventID{place: e.Position}).after(eventID{place: until}) {
			return events[:i]
		}
	}
	return events
}

// open begins the answer with the id at which the stream begins.
func (s *stream) open() error {
	h := s.c.W.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	s.c.W.WriteHeader(http.StatusOK)
	s.sent = s.last
	return s.write([]byte("id: " + s.last.String() + "\n\n"))
}

// send writes the items of a batch that the client has not received and that
// pass the filter.
func (s *stream) send(b broker.Batch) error {
	views, err := s.invoked(b)
	if err != nil {
		return err
	}
	var out []byte
	for _, e := range b.Events {
		out = out[:0]
		for i, it := range e.Items {
			id := eventID{e.Position, i}
			if !id.after(s.last) {
				continue
			}
			s.last = id
			if !s.filter.passes(e.Kind, it, b) {
				continue
			}
			if out, err = s.appendMessage(out, id, e, it, b.Subjects[it.Action], views); err != nil {
				return err
			}
		}
		if len(out) > 0 {
			if err := s.write(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes a piece with a deadline of its own, so that a client that does
// not read is disconnected.
func (s *stream) write(piece []byte) error { return s.c.WritePiece(piece) }
