package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
)

// FromStart is the id before every event that is kept.
const FromStart = "0-0-0"

// maxLine bounds a line of a stream of events, in bytes.
const maxLine = 1 << 20

// EventFilter leaves events out of a stream. Its zero fields leave out none.
type EventFilter struct {
	// Kinds are the kinds of events to pass on.
	Kinds []string
	// Action and Session restrict the events to one action or session.
	Action, Session string
	// Tool is a pattern of the tool, as source:name, where either may be *.
	Tool string
}

func (f EventFilter) query() url.Values {
	return given("kind", strings.Join(f.Kinds, ","), "action_id", f.Action, "session_id", f.Session, "tool", f.Tool)
}

// Watcher receives a stream of events.
type Watcher struct {
	// Only leaves out events.
	Only EventFilter
	// Event is called with each event, once and in order. An error ends Follow.
	Event func(wire.Event) error
	// Opened, which may be nil, is called when the stream is open, with the id of
	// the event after which it begins.
	Opened func(last string)
	// Lost, which may be nil, is called when the stream was lost, with the cause
	// and the time after which it is opened again.
	Lost func(err error, again time.Duration)
}

// Follow passes events to the watcher until ctx ends, the watcher returns an
// error, or the server refuses the stream. It begins after the event whose id
// is since, or now if that is empty. If the stream is lost, it resumes after
// the last event passed to the watcher. It returns that event's id.
func (c *Client) Follow(ctx context.Context, since string, w Watcher) (last string, err error) {
	pauses := c.pauses()
	last = since
	for {
		err := c.stream(ctx, &last, pauses.Reset, w)
		if ctx.Err() != nil {
			return last, ctx.Err()
		}
		if stop, ok := errors.AsType[*stopError](err); ok {
			return last, stop.cause
		}
		if p, ok := asProblem(err); ok && p.Status < http.StatusInternalServerError && p.Status != http.StatusTooManyRequests {
			return last, p
		}
		again := pauses.NextBackOff()
		if w.Lost != nil {
			w.Lost(err, again)
		}
		if err := pause(ctx, again); err != nil {
			return last, err
		}
	}
}

// stopError carries a watcher's error out of a stream.
type stopError struct{ cause error }

func (e *stopError) Error() string { return e.cause.Error() }

// stream reads the events of one connection. It calls opened with the first
// message, and sets last to the id of each.
func (c *Client) stream(ctx context.Context, last *string, opened func(), w Watcher) error {
	ctx, alive, stop := c.withSilence(ctx)
	defer stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if *last != "" {
		header.Set("Last-Event-ID", *last)
	}
	answer, err := c.send(ctx, request{method: http.MethodGet, path: "/api/v1/events", query: w.Only.query(), header: header})
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	first := true
	err = readEvents(answer.Body, alive, func(m message) error {
		if m.id != "" {
			*last = m.id
		}
		if first {
			first = false
			opened()
			if w.Opened != nil {
				w.Opened(*last)
			}
		}
		if len(m.data) == 0 {
			return nil
		}
		e := wire.Event{}
		if err := json.Unmarshal(m.data, &e); err != nil {
			return errors.New("unexpected event for this version")
		}
		e.ID = *last
		if err := w.Event(e); err != nil {
			return &stopError{err}
		}
		return nil
	})
	if cause := context.Cause(ctx); cause != nil && err != nil {
		if _, stopped := errors.AsType[*stopError](err); !stopped {
			return cause
		}
	}
	return err
}

// withSilence returns a context that ends when alive has not been called for
// Config.Silence.
func (c *Client) withSilence(parent context.Context) (ctx context.Context, alive, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	timer := time.AfterFunc(c.cfg.Silence, func() { cancel(fmt.Errorf("nothing was received for %s", c.cfg.Silence)) })
	return ctx, func() { timer.Reset(c.cfg.Silence) }, func() {
		timer.Stop()
		cancel(nil)
	}
}

// message is one message of a stream of server-sent events.
type message struct {
	id   string
	data []byte
}

// readEvents reads messages until the stream ends, which is io.EOF, or emit
// returns an error. It calls alive for every line. A message that is cut off by
// the end is dropped.
func readEvents(r io.Reader, alive func(), emit func(message) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var m message
	var begun bool
	for lines.Scan() {
		alive()
		line := lines.Bytes()
		if len(line) == 0 {
			if begun {
				if err := emit(m); err != nil {
					return err
				}
			}
			m, begun = message{}, false
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			if !bytes.ContainsRune(value, 0) {
				m.id, begun = string(value), true
			}
		case "data":
			if len(m.data) > 0 {
				m.data = append(m.data, '\n')
			}
			m.data, begun = append(m.data, value...), true
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.EOF
}
