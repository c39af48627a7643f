package invitation

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-ical"
)

// Occurrence is one occurrence of an event.
type Occurrence struct {
	UID, Summary, Location string
	// People are the addresses of the organizer and the attendees.
	People []string
	// Start and End are days in the local zone if WholeDay is set.
	Start, End time.Time
	WholeDay   bool
}

const (
	// maxPeople bounds the people of an occurrence, and maxOccurrences the occurrences
	// and the components of a calendar.
	maxPeople      = 200
	maxOccurrences = 1000
	// maxRule bounds a recurrence rule, and maxLength the length of an occurrence.
	maxRule   = 300
	maxLength = 366 * 24 * time.Hour
)

var errUnsupported = errors.New("the event has times or a rule that are not supported")

// Occurrences returns the occurrences of the events of a calendar between two times, and
// the number of the events that cannot be read. Recurring events keep the time of day
// of their zone across clock changes. A time without a known zone is that of local.
func Occurrences(text string, from, until time.Time, local *time.Location) (all []Occurrence, unread int) {
	calendar, err := parse([]byte(text))
	if err != nil {
		return nil, 1
	}
	x := expansion{from: from, until: until, local: local, zones: map[string]*ical.Component{}, replaced: map[string][]time.Time{}}
	children := calendar.Children[:min(len(calendar.Children), maxOccurrences)]
	for _, child := range children {
		if p := child.Props.Get(ical.PropTimezoneID); child.Name == ical.CompTimezone && p != nil {
			x.zones[p.Value] = child
		}
	}
	for _, child := range children {
		if p := child.Props.Get(ical.PropRecurrenceID); child.Name == ical.CompEvent && p != nil {
			if at, _, err := x.time(p, p.Value); err == nil {
				x.replaced[uidOf(child)] = append(x.replaced[uidOf(child)], at)
			}
		}
	}
	for _, child := range children {
		if child.Name != ical.CompEvent {
			continue
		}
		if err := x.event(child); err != nil {
			unread++
		}
	}
	return x.all, unread
}

// expansion collects the occurrences of a calendar.
type expansion struct {
	from, until time.Time
	local       *time.Location
	zones       map[string]*ical.Component
	// replaced are the occurrences that have an event of their own, by UID.
	replaced map[string][]time.Time
	all      []Occurrence
}

func uidOf(event *ical.Component) string {
	if p := event.Props.Get(ical.PropUID); p != nil {
		return p.Value
	}
	return ""
}

// time returns the instant of a value of a property: in UTC, in its zone, or else in
// the local one. It reports whether the value is a date.
func (x *expansion) time(p *ical.Prop, value string) (at time.Time, wholeDay bool, err error) {
	wall, wholeDay, err := wallOf(strings.TrimSuffix(value, "Z"))
	if err != nil {
		return at, wholeDay, err
	}
	return x.instant(p, value, wall), wholeDay, nil
}

// instant returns the instant of a wall time in the zone of a property.
func (x *expansion) instant(p *ical.Prop, value string, wall time.Time) time.Time {
	in := func(zone *time.Location) time.Time {
		return time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	}
	id := p.Params.Get(ical.PropTimezoneID)
	switch {
	case strings.HasSuffix(value, "Z"):
		return wall
	case !strings.Contains(value, "T") || id == "":
		return in(x.local)
	}
	if zone, err := time.LoadLocation(id); err == nil && id != "Local" {
		return in(zone)
	}
	if zone := x.zones[id]; zone != nil {
		return inZone(wall, zone, in(x.local))
	}
	return in(x.local)
}

// wallOf parses a time without a zone, or a date.
func wallOf(value string) (at time.Time, wholeDay bool, err error) {
	if at, err = time.Parse("20060102T150405", value); err == nil {
		return at, false, plausible(at)
	}
	at, err = time.Parse("20060102", value)
	return at, true, errors.Join(err, plausible(at))
}

func plausible(at time.Time) error {
	if at.Year() < 1600 || at.Year() > 2199 {
		return errUnsupported
	}
	return nil
}

// event adds the occurrences of an event.
func (x *expansion) event(event *ical.Component) error {
	text := func(name string) string {
		if p := event.Props.Get(name); p != nil {
			if text, err := p.Text(); err == nil {
				return clipped(text)
			}
		}
		return ""
	}
	start := event.Props.Get(ical.PropDateTimeStart)
	if strings.EqualFold(text(ical.PropStatus), "CANCELLED") {
		return nil
	}
	if start == nil {
		return errUnsupported
	}
	first, wholeDay, err := x.time(start, start.Value)
	if err != nil {
		return err
	}
	length, err := x.length(event, first, wholeDay)
	if err != nil {
		return err
	}
	o := Occurrence{UID: clipped(uidOf(event)), Summary: text(ical.PropSummary), Location: text(ical.PropLocation), People: peopleOf(event), WholeDay: wholeDay}
	starts := []time.Time{first}
	if event.Props.Get(ical.PropRecurrenceID) == nil {
		if starts, err = x.starts(event, start, first, wholeDay, length); err != nil {
			return err
		}
	}
	for _, at := range starts {
		o.Start, o.End = at, at.Add(length)
		if wholeDay {
			o.End = at.AddDate(0, 0, int(length/(24*time.Hour)))
		}
		if o.Start.Before(x.until) && (o.End.After(x.from) || o.End.Equal(o.Start) && !o.Start.Before(x.from)) && len(x.all) < maxOccurrences {
			x.all = append(x.all, o)
		}
	}
	return nil
}

// length returns the length of the occurrences of an event; of days, as 24 hours each.
func (x *expansion) length(event *ical.Component, first time.Time, wholeDay bool) (length time.Duration, err error) {
	if p := event.Props.Get(ical.PropDateTimeEnd); p != nil {
		end, dates, err := x.time(p, p.Value)
		if err != nil || dates != wholeDay {
			return 0, errUnsupported
		}
		length = end.Sub(first)
		if wholeDay { // days of 23 and 25 hours count as one
			length = (length + 12*time.Hour).Truncate(24 * time.Hour)
		}
	} else if p := event.Props.Get(ical.PropDuration); p != nil {
		if length, err = p.Duration(); err != nil {
			return 0, errUnsupported
		}
	}
	if length < 0 || length > maxLength {
		return 0, errUnsupported
	}
	if wholeDay {
		length = max(length, 24*time.Hour)
	}
	return length, nil
}

// starts returns the starts of the occurrences of a series near the wanted time.
func (x *expansion) starts(event *ical.Component, start *ical.Prop, first time.Time, wholeDay bool, length time.Duration) (all []time.Time, err error) {
	rules := event.Props[ical.PropRecurrenceRule]
	switch {
	case len(rules) > 1:
		return nil, errUnsupported
	case len(rules) == 1:
		if all, err = x.repeat(rules[0].Value, start, first, length); err != nil {
			return nil, err
		}
	default:
		all = []time.Time{first}
	}
	values := func(name string) (times []time.Time, err error) {
		for _, p := range event.Props[name] {
			for value := range strings.SplitSeq(p.Value, ",") {
				at, dates, err := x.time(&p, value)
				if err != nil || len(times) > maxOccurrences {
					return nil, errUnsupported
				}
				if dates && !wholeDay {
					continue
				}
				times = append(times, at)
			}
		}
		return times, nil
	}
	added, err := values(ical.PropRecurrenceDates)
	if err != nil {
		return nil, err
	}
	without, err := values(ical.PropExceptionDates)
	if err != nil {
		return nil, err
	}
	without = append(without, x.replaced[uidOf(event)]...)
	all = slices.DeleteFunc(append(all, added...), func(at time.Time) bool {
		return slices.ContainsFunc(without, func(other time.Time) bool { return other.Equal(at) })
	})
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal), nil
}

// repeat returns the starts by a rule. The rule is applied to wall times, which then
// become instants of the zone: the time of day stays across clock changes.
func (x *expansion) repeat(rule string, start *ical.Prop, first time.Time, length time.Duration) (all []time.Time, err error) {
	if len(rule) > maxRule {
		return nil, errUnsupported
	}
	wall, _, err := wallOf(strings.TrimSuffix(start.Value, "Z"))
	if err != nil {
		return nil, err
	}
	last := x.until.AddDate(0, 0, 2)
	var end time.Time
	kept := []string{}
	for part := range strings.SplitSeq(strings.ToUpper(rule), ";") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "UNTIL":
			at, dates, err := x.time(start, value)
			if err != nil {
				return nil, err
			}
			if end = at; dates {
				end = at.AddDate(0, 0, 1).Add(-time.Second)
			}
			continue
		case "FREQ":
			if !slices.Contains([]string{"DAILY", "WEEKLY", "MONTHLY", "YEARLY"}, value) || wall.Year() < 1970 && value != "YEARLY" {
				return nil, errUnsupported // too many occurrences to count
			}
		case "INTERVAL", "COUNT", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS", "WKST", "BYYEARDAY", "BYWEEKNO":
		default:
			return nil, errUnsupported
		}
		kept = append(kept, part)
	}
	// The library goes on to its own end of time without an end of the rule.
	kept = append(kept, "UNTIL="+last.UTC().Format("20060102T150405Z"))
	series := ical.NewComponent(ical.CompEvent)
	for name, value := range map[string]string{ical.PropDateTimeStart: wall.Format("20060102T150405Z"), ical.PropRecurrenceRule: strings.Join(kept, ";")} {
		p := ical.NewProp(name)
		p.Value = value
		series.Props.Set(p)
	}
	set, err := series.RecurrenceSet(time.UTC)
	if err != nil || set == nil {
		return nil, errUnsupported
	}
	for _, at := range set.Between(x.from.Add(-length).AddDate(0, 0, -2), last, true) {
		at = x.instant(start, start.Value, at)
		if (end.IsZero() || !at.After(end)) && !at.Before(first) && len(all) < maxOccurrences {
			all = append(all, at)
		}
	}
	return all, nil
}

// peopleOf returns the addresses of the organizer and the attendees of an event.
func peopleOf(event *ical.Component) (people []string) {
	for _, name := range []string{ical.PropOrganizer, ical.PropAttendee} {
		for _, p := range event.Props[name] {
			if who, ok := address(&p); ok && len(people) < maxPeople && !slices.Contains(people, strings.ToLower(who)) {
				people = append(people, strings.ToLower(who))
			}
		}
	}
	return people
}
