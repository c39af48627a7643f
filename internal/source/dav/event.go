package dav

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/invitation"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

const (
	// maxEvents bounds the events of a result, and maxItems the items of a calendar.
	maxEvents = 500
	maxItems  = 5000
	// maxWindow bounds the time of a call.
	maxWindow = 40 * 24 * time.Hour
)

// query is a CalDAV REPORT (RFC 4791, section 7.8) for the events between two times.
const query = `<?xml version="1.0" encoding="utf-8"?><C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:prop><C:calendar-data/></D:prop>` +
	`<C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT"><C:time-range start="%s" end="%s"/></C:comp-filter></C:comp-filter></C:filter></C:calendar-query>`

// eventArgs are the arguments of ToolEvents.
type eventArgs struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Zone is the IANA name of the zone of whole days and of times without a zone.
	Zone string `json:"zone"`
}

// Event is an occurrence of an event in a calendar.
type Event struct {
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	WholeDay bool      `json:"whole_day"`
	Summary  string    `json:"summary"`
	Location string    `json:"location,omitempty"`
	// People are the addresses of the organizer and the attendees.
	People []string `json:"people,omitempty"`
}

// Events is the result of ToolEvents.
type Events struct {
	// Events are sorted by their start. Unread counts the events that cannot be read,
	// and More the events that are left out.
	Events []Event `json:"events"`
	Unread int     `json:"unread"`
	More   int     `json:"more"`
}

// events reads the events of all calendars. A failure of one fails the call: a part of
// the events would look like all.
func (s *server) events(ctx context.Context, _ source.Call, in eventArgs) source.Observation {
	zone, err := time.LoadLocation(in.Zone)
	if err != nil || in.Zone == "" || in.Zone == "Local" || !in.From.Before(in.Until) || in.Until.Sub(in.From) > maxWindow {
		return s.refuse(source.CodeInvalidArgs, "the zone must be an IANA name, and the time at most 40 days")
	}
	all := Events{Events: []Event{}}
	calendars := s.collections[reminder]
	for _, name := range slices.Sorted(maps.Keys(calendars)) {
		o, items := s.report(ctx, calendars[name], in)
		if !o.Answered {
			return o
		}
		for _, text := range items {
			occurrences, unread := invitation.Occurrences(text, in.From, in.Until, zone)
			all.Unread += unread
			for _, e := range occurrences {
				all.Events = append(all.Events, Event{Start: e.Start.UTC(), End: e.End.UTC(), WholeDay: e.WholeDay, Summary: e.Summary, Location: e.Location, People: e.People})
			}
		}
	}
	slices.SortStableFunc(all.Events, func(a, b Event) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Summary, b.Summary)) })
	all.More = max(0, len(all.Events)-maxEvents)
	all.Events = all.Events[:min(len(all.Events), maxEvents)]
	result, err := json.Marshal(all)
	o := source.Observation{Written: true, Answered: true, Result: result}
	if err != nil {
		return o.Malformed()
	}
	return o
}

// report returns the items of a calendar that have an event in the time, as iCalendar.
func (s *server) report(ctx context.Context, calendar rest.Base, in eventArgs) (o source.Observation, items []string) {
	at, ok := calendar.URL(nil, "")
	if !ok {
		return s.refuse(source.CodeInvalidArgs, "the calendar has no address"), nil
	}
	// Servers compare times without a zone as UTC: a day more on both sides has all.
	stamp := func(t time.Time) string { return t.UTC().Format("20060102T150405Z") }
	body := fmt.Appendf(nil, query, stamp(in.From.AddDate(0, 0, -1)), stamp(in.Until.AddDate(0, 0, 1)))
	header := s.header.Clone()
	header.Set("Content-Type", "application/xml; charset=utf-8")
	header.Set("Depth", "1")
	reply := s.client.Send(ctx, rest.Request{Method: "REPORT", URL: at, Header: header, Body: body})
	if o = reply.Observe(); !o.Answered {
		o.Result = nil
		return o, nil
	}
	if reply.Status != http.StatusMultiStatus { // such as a page for people
		return o.Malformed(), nil
	}
	decoder := xml.NewDecoder(bytes.NewReader(reply.Body))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return o, items
		}
		if err != nil || len(items) > maxItems {
			return o.Malformed(), nil
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Space == "urn:ietf:params:xml:ns:caldav" && e.Name.Local == "calendar-data" {
			var text string
			if err := decoder.DecodeElement(&text, &e); err != nil {
				return o.Malformed(), nil
			}
			items = append(items, text)
		}
	}
}
