package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/broker"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// eventID is the place of an item of an event, which clients send back to
// resume.
type eventID struct {
	place audit.Position
	item  int
}

// afterAllItems is an item index behind every item of an event.
const afterAllItems = 999_999_999

// String returns an id such as 812-4711-0.
func (id eventID) String() string { return id.place.String() + "-" + strconv.Itoa(id.item) }

func parseEventID(text string) (eventID, error) {
	invalid := request.Invalid("/header/Last-Event-ID", envelope.RuleFormat, "is not the id of an event; send it unchanged, or omit it to start now")
	at := strings.LastIndexByte(text, '-')
	if at < 0 {
		return eventID{}, invalid
	}
	place, err := audit.ParsePosition(text[:at])
	if err != nil || place.Event < 0 {
		return eventID{}, invalid
	}
	item, err := strconv.Atoi(text[at+1:])
	if err != nil || item < 0 {
		return eventID{}, invalid
	}
	return eventID{place, item}, nil
}

// after reports whether id comes behind other.
func (id eventID) after(other eventID) bool {
	switch {
	case id.place.Tx != other.place.Tx:
		return id.place.Tx > other.place.Tx
	case id.place.Event != other.place.Event:
		return id.place.Event > other.place.Event
	}
	return id.item > other.item
}

// invoked reads the actions of a batch's events, for the view of invocations.
func (s *stream) invoked(b broker.Batch) (map[envelope.ActionID]outbox.View, error) {
	if !s.filter.invocations {
		return nil, nil
	}
	var ids []envelope.ActionID
	for _, e := range b.Events {
		for i, it := range e.Items {
			if (eventID{e.Position, i}).after(s.last) && s.filter.passes(e.Kind, it, b) {
				ids = append(ids, it.Action)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.SortFunc(ids, func(a, b envelope.ActionID) int { return slices.Compare(a[:], b[:]) })
	return actions.Views(s.c, slices.Compact(ids)...)
}

// appendMessage appends the message of one item, as a transition or as an event
// of an invocation.
func (s *stream) appendMessage(out []byte, id eventID, e audit.Stored, it audit.Item, about access.Subject, views map[envelope.ActionID]outbox.View) ([]byte, error) {
	if !s.filter.invocations {
		s.sent = id
		return appendSSE(out, id, string(e.Kind), eventOf(e, it, about))
	}
	view, ok := views[it.Action]
	if !ok { // retention deleted the action
		return out, nil
	}
	s.sent = id
	name := subscription.InvocationKind(e.Kind, it)
	return appendSSE(out, id, name, subscription.NewInvocationData(name, e.Actor, it, view))
}

func eventOf(e audit.Stored, it audit.Item, about access.Subject) wire.Event {
	data := wire.Event{
		ActionID: it.Action, Kind: string(e.Kind), Status: it.Status, Approval: it.Approval, Code: it.Code,
		Attempt: it.Attempt, Subject: it.Subject, Note: it.Note, Detail: it.Detail, Actor: e.Actor, At: e.At.UTC(),
	}
	if about.Tool != (policy.Key{}) { // otherwise the action was deleted or never existed
		data.Tool = about.Tool.String()
	}
	if it.Approval != "" && it.Status != "" {
		data.Phase = envelope.PhaseOf(it.Approval, it.Status, it.Code)
	}
	return data
}

// appendSSE appends a server-sent event. Its data is one line, because JSON
// escapes line breaks.
func appendSSE(out []byte, id eventID, name string, data any) ([]byte, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return out, err
	}
	return fmt.Appendf(out, "id: %s\nevent: %s\ndata: %s\n\n", id, name, text), nil
}
