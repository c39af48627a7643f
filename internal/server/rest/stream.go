package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// eventID is where an item of an event stands, as clients carry it.
type eventID struct {
	place audit.Place
	item  int
}

// wholeEvent is an item behind every item that an event has.
const wholeEvent = 999_999_999

// String writes an id, such as 812-4711-0.
func (id eventID) String() string { return id.place.String() + "-" + strconv.Itoa(id.item) }

func parseEventID(text string) (eventID, error) {
	refused := invalid("/header/Last-Event-ID", envelope.RuleFormat, "is not the id of an event; take it as it was, or leave it out to begin now")
	at := strings.LastIndexByte(text, '-')
	if at < 0 {
		return eventID{}, refused
	}
	place, err := audit.ParsePlace(text[:at])
	if err != nil || place.Event < 0 {
		return eventID{}, refused
	}
	item, err := strconv.Atoi(text[at+1:])
	if err != nil || item < 0 {
		return eventID{}, refused
	}
	return eventID{place, item}, nil
}

// after says that id comes behind other.
func (id eventID) after(other eventID) bool {
	switch {
	case id.place.Tx != other.place.Tx:
		return id.place.Tx > other.place.Tx
	case id.place.Event != other.place.Event:
		return id.place.Event > other.place.Event
	}
	return id.item > other.item
}

// event is the data of one message.
type event struct {
	Action   envelope.ActionID `json:"action_id,omitzero"`
	Kind     audit.Kind        `json:"kind"`
	Status   envelope.Status   `json:"status,omitzero"`
	Approval envelope.Approval `json:"approval,omitzero"`
	Phase    envelope.Phase    `json:"phase,omitzero"`
	Code     string            `json:"code,omitzero"`
	Attempt  int               `json:"attempt,omitzero"`
	Subject  string            `json:"subject,omitzero"`
	Note     string            `json:"note,omitzero"`
	Detail   map[string]any    `json:"detail,omitempty"`
	Actor    string            `json:"actor"`
	At       time.Time         `json:"at"`
}

// stream writes events to one client, each once and in order.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sieve   sieve
	// views reads actions, for the events of invocations.
	views func(ids []envelope.ActionID) (map[envelope.ActionID]outbox.View, error)
	// last is the last event that was looked at, told the last id that the
	// client got.
	last, told eventID
}

// lastEvent is the event that the caller has seen last, if it says so.
func (c *call) lastEvent() (id eventID, given bool, err error) {
	text := c.r.Header.Get("Last-Event-ID")
	if text == "" {
		text = c.query.Get("last_event_id")
	}
	if text == "" {
		return eventID{}, false, nil
	}
	id, err = parseEventID(text)
	return id, true, err
}

func (s *Server) streamEvents(c *call) error {
	last, resuming, err := c.lastEvent()
	if err != nil {
		return err
	}
	out := &stream{w: c.w, control: http.NewResponseController(c.w), last: last}
	out.views = func(ids []envelope.ActionID) (map[envelope.ActionID]outbox.View, error) { return s.viewsByID(c, ids) }
	if out.sieve, err = c.sieve(); err != nil {
		return err
	}
	if !resuming {
		return s.follow(c, out, false)
	}
	// Most of what was missed is read before the stream joins the others, so
	// that new events do not pile up meanwhile.
	if err = out.open(); err == nil {
		err = s.catchUp(c, out, nil)
	}
	if err != nil {
		return s.streamEnd(c, err)
	}
	return s.follow(c, out, true)
}

// follow passes on what is new until the client, or the server, ends it.
func (s *Server) follow(c *call, out *stream, resumed bool) error {
	ctx := c.r.Context()
	sub, err := s.hub.follow(ctx, c.by.Tenant, out.sieve.choosy())
	if err != nil {
		if resumed {
			return s.streamEnd(c, err)
		}
		return err
	}
	defer s.hub.leave(sub)
	if resumed {
		err = s.catchUp(c, out, &sub.from)
	} else {
		out.last = eventID{sub.from, wholeEvent}
		err = out.open()
	}
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	for err == nil {
		select {
		case b, more := <-sub.batches:
			if !more {
				return nil
			}
			err = out.send(b)
		case <-beat.C:
			err = s.beat(c, out)
		case <-ctx.Done():
			return nil
		}
	}
	return s.streamEnd(c, err)
}

// beat shows that the stream lives, and ends it when its token no longer does.
func (s *Server) beat(c *call, out *stream) error {
	if _, err := s.authenticate(c.r); errors.Is(err, identity.ErrToken) || errors.Is(err, fault.Denied) {
		return err
	}
	alive := []byte(": alive\n\n")
	if out.told != out.last {
		// What was left out need not be gone through again on resuming.
		alive = append(alive, "id: "+out.last.String()+"\n\n"...)
		out.told = out.last
	}
	return out.write(alive)
}

// streamEnd ends a stream whose answer has begun: nothing can be said to the
// client any more, who resumes. What is worth knowing goes to the log.
func (s *Server) streamEnd(c *call, err error) error {
	if c.r.Context().Err() == nil && !s.hub.isClosed() {
		s.cfg.Log.InfoContext(c.r.Context(), "event stream cut", slog.String("request_id", requestID(c.r.Context())), slog.Any("error", err))
	}
	return nil
}

// catchUp sends what came behind the last event that the client saw: until
// there is no more or, if until is given, up to there.
func (s *Server) catchUp(c *call, out *stream, until *audit.Place) error {
	ctx := c.r.Context()
	// The event that was last may have had more items.
	at := audit.Place{Tx: out.last.place.Tx, Event: out.last.place.Event - 1}
	for {
		events, err := s.page(ctx, c.by.Tenant, at, out.sieve.choosy())
		if err != nil {
			return err
		}
		full := len(events.events) == readAtOnce
		if until != nil {
			events.events = upTo(events.events, *until)
		}
		if len(events.events) == 0 {
			return nil
		}
		if err := out.send(events); err != nil {
			return err
		}
		if !full {
			return nil
		}
		at = events.events[len(events.events)-1].Place
	}
}

// page reads the next events, with what their actions are if that matters.
func (s *Server) page(ctx context.Context, tenant envelope.TenantID, after audit.Place, choosy bool) (batch, error) {
	ctx, cancel := context.WithTimeout(ctx, workFor)
	defer cancel()
	events, err := readEvents(ctx, s.DB, tenant, after)
	if err != nil || !choosy || len(events) == 0 {
		return batch{events: events}, err
	}
	known, err := aboutOf(ctx, s.DB, tenant, events)
	return batch{events, known}, err
}

// upTo leaves out the events behind a place.
func upTo(events []audit.Stored, until audit.Place) []audit.Stored {
	for i, e := range events {
		if (eventID{place: e.Place}).after(eventID{place: until}) {
			return events[:i]
		}
	}
	return events
}

// open begins the answer, and says where it begins.
func (o *stream) open() error {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	o.w.WriteHeader(http.StatusOK)
	o.told = o.last
	return o.write([]byte("id: " + o.last.String() + "\n\n"))
}

// send writes what the client has not seen and may see.
func (o *stream) send(b batch) error {
	views, err := o.invoked(b)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, e := range b.events {
		for i, it := range e.Items {
			id := eventID{e.Place, i}
			if !id.after(o.last) {
				continue
			}
			o.last = id
			if !o.sieve.passes(e.Kind, it, b.about) {
				continue
			}
			if err := o.message(&out, id, e, it, views); err != nil {
				return err
			}
		}
		if out.Len() > 0 {
			if err := o.write(out.Bytes()); err != nil {
				return err
			}
			out.Reset()
		}
	}
	return nil
}

// message writes one event, as a transition or as an event of an invocation.
func (o *stream) message(out *bytes.Buffer, id eventID, e audit.Stored, it audit.Item, views map[envelope.ActionID]outbox.View) error {
	if !o.sieve.invocations {
		o.told = id
		return message(out, id, e, it)
	}
	view, ok := views[it.Action]
	if !ok { // retention took it
		return nil
	}
	o.told = id
	name := subscription.Invocation(e.Kind, it)
	return written(out, id, name, subscription.Invoke(name, e.Actor, it, view))
}

// message writes one event in the form of the stream. JSON has no line breaks
// of its own.
func message(out *bytes.Buffer, id eventID, e audit.Stored, it audit.Item) error {
	data := event{
		Action: it.Action, Kind: e.Kind, Status: it.Status, Approval: it.Approval, Code: it.Code,
		Attempt: it.Attempt, Subject: it.Subject, Note: it.Note, Detail: it.Detail, Actor: e.Actor, At: e.At.UTC(),
	}
	if it.Approval != "" && it.Status != "" {
		data.Phase = envelope.PhaseOf(it.Approval, it.Status)
	}
	return written(out, id, string(e.Kind), data)
}

func written(out *bytes.Buffer, id eventID, name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "id: %s\nevent: %s\ndata: %s\n\n", id, name, text)
	return nil
}

// write sends a piece, within a time of its own: a client that does not read
// is cut off.
func (o *stream) write(piece []byte) error {
	if err := o.control.SetWriteDeadline(time.Now().Add(writeFor)); err != nil {
		return err
	}
	if _, err := o.w.Write(piece); err != nil {
		return err
	}
	return o.control.Flush()
}
