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

	"github.com/cenkalti/backoff/v4"

	"github.com/countersign-dev/countersign/envelope"
)

// FromStart is the place before every event that is kept.
const FromStart = "0-0-0"

// maxLine bounds a line of a stream of events, in bytes.
const maxLine = 1 << 20

// Event is what happened to one action; or, for the kind configured, what was
// changed.
type Event struct {
	// ID says where it stands, for Follow to go on from.
	ID       string            `json:"id"`
	ActionID envelope.ActionID `json:"action_id,omitzero"`
	// Kind is proposed, decided, settled, undone, parked, replayed, discarded,
	// resolved, killed or configured.
	Kind     string            `json:"kind"`
	Status   envelope.Status   `json:"status,omitzero"`
	Approval envelope.Approval `json:"approval,omitzero"`
	Phase    envelope.Phase    `json:"phase,omitzero"`
	Code     string            `json:"code,omitzero"`
	Attempt  int               `json:"attempt,omitzero"`
	Subject  string            `json:"subject,omitzero"`
	// Note is what the actor gave as the reason.
	Note string `json:"note,omitzero"`
	// Detail is what was set to what, for the kind configured.
	Detail map[string]any `json:"detail,omitempty"`
	Actor  string         `json:"actor"`
	At     time.Time      `json:"at"`
}

// EventFilter leaves events out of a stream. Its zero fields leave out none.
type EventFilter struct {
	// Kinds are the kinds of event to hear of.
	Kinds []string
	// Action and Session are those that an event must be about.
	Action, Session string
	// Tool is a pattern of the tool, as source:name, where either may be *.
	Tool string
}

func (f EventFilter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"kind": strings.Join(f.Kinds, ","), "action_id": f.Action, "session_id": f.Session, "tool": f.Tool,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// Watcher hears of a stream of events.
type Watcher struct {
	// Only leaves out what the watcher does not want to hear of.
	Only EventFilter
	// Event is told each event, once and in order. An error ends Follow.
	Event func(Event) error
	// Opened, which may be nil, is told that the stream is open, and after
	// which event it begins.
	Opened func(last string)
	// Lost, which may be nil, is told why the stream was lost, and after how
	// long it is opened again.
	Lost func(err error, again time.Duration)
}

// Follow passes on what happens until ctx ends, the watcher returns an error,
// or the server refuses the stream for good. It begins after the event whose
// id is since, or now if that is empty. When the stream is lost it resumes
// after the last event that was seen. It returns that event's id.
func (c *Client) Follow(ctx context.Context, since string, w Watcher) (last string, err error) {
	pause := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(c.cfg.Pause), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	last = since
	for {
		err := c.stream(ctx, &last, pause, w)
		if ctx.Err() != nil {
			return last, ctx.Err()
		}
		if stop, ok := errors.AsType[*stopError](err); ok {
			return last, stop.cause
		}
		if p, ok := errors.AsType[*Problem](err); ok && p.Status < http.StatusInternalServerError && p.Status != http.StatusTooManyRequests {
			return last, p
		}
		again := pause.NextBackOff()
		if w.Lost != nil {
			w.Lost(err, again)
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return last, ctx.Err()
		case <-timer.C:
		}
	}
}

// stopError carries a watcher's error out of a stream.
type stopError struct{ cause error }

func (e *stopError) Error() string { return e.cause.Error() }

// stream reads one connection's events. It moves last on.
func (c *Client) stream(ctx context.Context, last *string, pause backoff.BackOff, w Watcher) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(c.cfg.Silence, func() { cancel(fmt.Errorf("nothing came for %s", c.cfg.Silence)) })
	defer silent.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if *last != "" {
		header.Set("Last-Event-ID", *last)
	}
	answer, err := c.send(ctx, request{method: http.MethodGet, path: "/api/v1/events", query: w.Only.query(), header: header})
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	opened := false
	err = readEvents(answer.Body, func() { silent.Reset(c.cfg.Silence) }, func(m message) error {
		if m.id != "" {
			*last = m.id
		}
		if !opened {
			opened = true
			pause.Reset()
			if w.Opened != nil {
				w.Opened(*last)
			}
		}
		if len(m.data) == 0 {
			return nil
		}
		e := Event{}
		if err := json.Unmarshal(m.data, &e); err != nil {
			return errors.New("an event is not what this version expects")
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

// message is one message of a stream of server-sent events.
type message struct {
	id   string
	data []byte
}

// readEvents reads messages until the stream ends, which is io.EOF, or emit
// returns an error. It tells alive of every line. A message that the end cuts
// off is dropped.
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
