// Package invitation reads the iCalendar invitation of a mail (RFC 5546, RFC 6047)
// and writes the answer of an attendee. It refuses every invitation that is not
// the only one of its mail, or that two programs could read differently.
package invitation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-ical"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

const (
	// maxBytes bounds a calendar, and maxParameters the part of a line before its
	// value, which the library reads in quadratic time.
	maxBytes      = 256 << 10
	maxParameters = 4 << 10
	// maxText bounds a value that the answer repeats, and maxAttendees the people.
	maxText      = 1000
	maxAttendees = 2000
)

// Answer is the answer of an attendee.
type Answer string

// The answers, by their names in arguments.
const (
	Accepted  Answer = "accepted"
	Tentative Answer = "tentative"
	Declined  Answer = "declined"
)

// Invitation is an invitation that one of the owner's addresses can answer.
type Invitation struct {
	// Organizer and Attendee are addresses: the one that invites, which is the
	// sender of the mail, and the invited one.
	Organizer, Attendee string

	event    *ical.Component
	attendee ical.Prop
	zones    []*ical.Component
}

// Read returns the invitation in a mail; raw are the bytes that m was parsed from.
// own are the addresses of the owner. The error is for people.
func Read(raw []byte, m *message.Message, own []string, now time.Time) (Invitation, error) {
	text, err := calendarOf(raw)
	if err != nil {
		return Invitation{}, err
	}
	calendar, err := parse(text)
	if err != nil {
		return Invitation{}, err
	}
	i, err := eventOf(calendar)
	if err != nil {
		return Invitation{}, err
	}
	if err := i.people(m, own); err != nil {
		return Invitation{}, err
	}
	end, err := endOf(i.event.Props)
	if err == nil && end.Before(now) {
		err = errors.New("the event is over")
	}
	if err != nil {
		return Invitation{}, err
	}
	return i, nil
}

// line matches the part of a content line before its value (RFC 5545, section 3.1).
var line = regexp.MustCompile(`^[A-Za-z0-9-]+(;[A-Za-z0-9-]+=("[^"]*"|[^";:,]*)(,("[^"]*"|[^";:,]*))*)*:`)

// parse returns a calendar. Its lines are checked first, since the library is
// lenient about them.
func parse(text []byte) (*ical.Calendar, error) {
	invalid := errors.New("the calendar is not valid iCalendar")
	if len(text) > maxBytes {
		return nil, errors.New("the calendar is too large")
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	control := func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029'
	}
	if !utf8.Valid(text) || bytes.ContainsFunc(text, control) {
		return nil, errors.New("the calendar has control characters, or is not UTF-8")
	}
	unfolded := strings.NewReplacer("\n ", "", "\n\t", "").Replace(string(text))
	for l := range strings.SplitSeq(strings.TrimRight(unfolded, "\n"), "\n") {
		if at := line.FindStringIndex(l); at == nil || at[1] > maxParameters {
			return nil, invalid
		}
	}
	d := ical.NewDecoder(strings.NewReader(unfolded))
	calendar, err := d.Decode()
	if err != nil {
		return nil, invalid
	}
	if _, err := d.Decode(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the calendar is followed by something else")
	}
	return calendar, nil
}

// eventOf returns the only event of a request.
func eventOf(calendar *ical.Calendar) (i Invitation, _ error) {
	method := calendar.Props[ical.PropMethod]
	switch {
	case len(method) == 0:
		return i, errors.New("the calendar has no METHOD")
	case len(method) > 1 || !strings.EqualFold(method[0].Value, "REQUEST"):
		return i, errors.New("the METHOD of the calendar is not REQUEST")
	}
	for _, child := range calendar.Children {
		switch {
		case child.Name == ical.CompTimezone:
			i.zones = append(i.zones, child)
		case child.Name != ical.CompEvent:
			return i, errors.New("the calendar has something other than an event")
		case i.event != nil:
			return i, errors.New("the calendar has several events")
		default:
			i.event = child
		}
	}
	if i.event == nil {
		return i, errors.New("the calendar has no event")
	}
	for name, count := range map[string]struct{ least, most int }{
		ical.PropUID: {1, 1}, ical.PropOrganizer: {1, 1}, ical.PropDateTimeStart: {1, 1}, ical.PropSequence: {0, 1},
		ical.PropRecurrenceID: {0, 1}, ical.PropStatus: {0, 1}, ical.PropDateTimeEnd: {0, 1}, ical.PropDuration: {0, 1},
		ical.PropRecurrenceRule: {0, 1}, ical.PropAttendee: {1, maxAttendees},
	} {
		if n := len(i.event.Props[name]); n < count.least || n > count.most {
			return i, fmt.Errorf("the event has %s %d times", name, n)
		}
	}
	for _, name := range []string{ical.PropUID, ical.PropRecurrenceID} {
		if p := i.event.Props.Get(name); p != nil && (p.Value == "" || len(p.Value) > maxText) {
			return i, fmt.Errorf("the %s of the event is empty or too long", name)
		}
	}
	if p := i.event.Props.Get(ical.PropSequence); p != nil && !sequence.MatchString(p.Value) {
		return i, errors.New("the SEQUENCE of the event is not a number")
	}
	if p := i.event.Props.Get(ical.PropStatus); p != nil && strings.EqualFold(p.Value, "CANCELLED") {
		return i, errors.New("the event is cancelled")
	}
	return i, nil
}

var sequence = regexp.MustCompile(`^[0-9]{1,9}$`)

// people finds the organizer, who is the sender of the mail, and the only attendee
// that is the owner.
func (i *Invitation) people(m *message.Message, own []string) error {
	organizer, ok := address(i.event.Props.Get(ical.PropOrganizer))
	if !ok || len(m.From) != 1 || !strings.EqualFold(organizer, m.From[0].Addr) {
		return errors.New("the organizer of the event is not the sender of the message")
	}
	is := func(address string) bool {
		return slices.ContainsFunc(own, func(one string) bool { return strings.EqualFold(one, address) })
	}
	if is(organizer) {
		return errors.New("the owner of the account is the organizer of the event")
	}
	var invited []ical.Prop
	for _, p := range i.event.Props[ical.PropAttendee] {
		if to, ok := address(&p); ok && is(to) {
			invited = append(invited, p)
			i.Attendee = to
		}
	}
	switch {
	case len(invited) == 0:
		return errors.New("the event does not invite an address of the account")
	case len(invited) > 1:
		return errors.New("the event invites the owner of the account more than once")
	}
	i.Organizer, i.attendee = organizer, invited[0]
	return nil
}

// address returns the address of an organizer or attendee.
func address(p *ical.Prop) (string, bool) {
	const scheme = "mailto:"
	if len(p.Value) <= len(scheme) || len(p.Value) > maxText || !strings.EqualFold(p.Value[:len(scheme)], scheme) {
		return "", false
	}
	return p.Value[len(scheme):], true
}

// forever is the end of a series that may have no end.
func forever() time.Time { return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }

// endOf returns a time at which an event has certainly ended. A time without a known
// zone counts as that of the last zone on earth.
func endOf(p ical.Props) (time.Time, error) {
	start, err := timeOf(p.Get(ical.PropDateTimeStart))
	if err != nil {
		return start, errors.New("the DTSTART of the event is not valid")
	}
	end := start
	if !strings.Contains(p.Get(ical.PropDateTimeStart).Value, "T") {
		end = start.AddDate(0, 0, 1)
	}
	if prop := p.Get(ical.PropDuration); prop != nil {
		length, err := prop.Duration()
		if err != nil || length < 0 {
			return end, errors.New("the DURATION of the event is not valid")
		}
		end = start.Add(length)
	}
	if prop := p.Get(ical.PropDateTimeEnd); prop != nil {
		if end, err = timeOf(prop); err != nil {
			return end, errors.New("the DTEND of the event is not valid")
		}
	}
	if p.Get(ical.PropRecurrenceRule) == nil && len(p[ical.PropRecurrenceDates]) == 0 {
		return end, nil
	}
	rule, err := p.RecurrenceRule()
	switch {
	case err != nil:
		return end, errors.New("the RRULE of the event is not valid")
	case rule == nil || rule.Until.IsZero() || len(p[ical.PropRecurrenceDates]) > 0:
		return forever(), nil
	}
	return rule.Until.Add(end.Sub(start) + 24*time.Hour), nil
}

// timeOf returns the time of a property.
func timeOf(p *ical.Prop) (time.Time, error) {
	last := time.FixedZone("", -12*60*60)
	if t, err := p.DateTime(last); err == nil {
		return t, nil
	}
	p = &ical.Prop{Name: p.Name, Value: p.Value, Params: ical.Params{ical.ParamValue: p.Params.Values(ical.ParamValue)}} // without its unknown zone
	return p.DateTime(last)
}
