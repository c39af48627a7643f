package invitation

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-ical"
)

// Event is an event or a task of a calendar, as its sender wrote it.
type Event struct {
	// Task reports whether it is a VTODO.
	Task bool
	// Method is that of the calendar, such as REQUEST or CANCEL, in upper case.
	Method                                      string
	UID, Summary, Location, Organizer, Sequence string
	// Zone is the TZID of the start.
	Zone            string
	Start, End, Due time.Time // zero if missing or not valid
	// WholeDay reports whether the start, or the due time, is a date.
	WholeDay, Cancelled, Repeats bool
}

// maxEvents bounds the events of a calendar.
const maxEvents = 20

// Events returns the events and tasks of a calendar; none if it is not valid. A time
// without a known zone is that of local. Unlike Read, it accepts events that nobody answers.
func Events(text string, local *time.Location) (all []Event) {
	calendar, err := parse([]byte(text))
	if err != nil {
		return nil
	}
	var method string
	if p := calendar.Props.Get(ical.PropMethod); p != nil {
		method = strings.ToUpper(clipped(p.Value))
	}
	zones := map[string]*ical.Component{}
	for _, child := range calendar.Children {
		if p := child.Props.Get(ical.PropTimezoneID); child.Name == ical.CompTimezone && p != nil {
			zones[p.Value] = child
		}
	}
	for _, child := range calendar.Children {
		if child.Name != ical.CompEvent && child.Name != ical.CompToDo || len(all) == maxEvents {
			continue
		}
		text := func(name string) string {
			if p := child.Props.Get(name); p != nil {
				if text, err := p.Text(); err == nil {
					return clipped(text)
				}
			}
			return ""
		}
		e := Event{
			Task: child.Name == ical.CompToDo, Method: method, UID: text(ical.PropUID), Summary: text(ical.PropSummary), Location: text(ical.PropLocation),
			Sequence: text(ical.PropSequence), Cancelled: method == "CANCEL" || strings.EqualFold(text(ical.PropStatus), "CANCELLED"),
			Repeats: child.Props.Get(ical.PropRecurrenceRule) != nil,
		}
		if p := child.Props.Get(ical.PropSequence); p != nil && sequence.MatchString(p.Value) {
			e.Sequence = p.Value
		}
		if p := child.Props.Get(ical.PropOrganizer); p != nil {
			e.Organizer, _ = address(p)
		}
		e.times(child.Props, zones, local)
		all = append(all, e)
	}
	return all
}

// times reads the times of an event.
func (e *Event) times(props ical.Props, zones map[string]*ical.Component, local *time.Location) {
	at := func(name string) time.Time {
		p := props.Get(name)
		if p == nil {
			return time.Time{}
		}
		return instant(p, zones, local)
	}
	e.Start, e.End, e.Due = at(ical.PropDateTimeStart), at(ical.PropDateTimeEnd), at(ical.PropDue)
	for _, name := range []string{ical.PropDateTimeStart, ical.PropDue} {
		if p := props.Get(name); p != nil {
			e.Zone, e.WholeDay = clipped(p.Params.Get(ical.PropTimezoneID)), !strings.Contains(p.Value, "T")
			break
		}
	}
	if p := props.Get(ical.PropDuration); p != nil && !e.Start.IsZero() && e.End.IsZero() {
		if length, err := p.Duration(); err == nil && length > 0 && length < 366*24*time.Hour {
			e.End = e.Start.Add(length)
		}
	}
	if e.End.Before(e.Start) {
		e.End = time.Time{}
	}
}

// instant returns the time of a property, or zero if it is not between 1970 and 2199.
func instant(p *ical.Prop, zones map[string]*ical.Component, local *time.Location) time.Time {
	t, err := p.DateTime(local)
	if err != nil {
		bare := &ical.Prop{Name: p.Name, Value: p.Value, Params: ical.Params{ical.ParamValue: p.Params.Values(ical.ParamValue)}}
		t, err = bare.DateTime(local)
		if zone := zones[p.Params.Get(ical.PropTimezoneID)]; err == nil && zone != nil {
			if wall, err := bare.DateTime(time.UTC); err == nil {
				t = inZone(wall, zone, t)
			}
		}
	}
	if err != nil || t.Year() < 1970 || t.Year() > 2199 {
		return time.Time{}
	}
	return t
}

// inZone returns a wall time in a zone that the calendar itself defines: the offset
// of its latest observance that began before. other is the time without one.
func inZone(wall time.Time, zone *ical.Component, other time.Time) time.Time {
	var latest time.Time
	for _, c := range zone.Children[:min(len(zone.Children), maxEvents)] {
		offset, to := c.Props.Get(ical.PropTimezoneOffsetTo), c.Props.Get(ical.PropDateTimeStart)
		if offset == nil || to == nil {
			continue
		}
		seconds, ok := offsetOf(offset.Value)
		began, err := to.DateTime(time.UTC)
		if !ok || err != nil {
			continue
		}
		if p := c.Props.Get(ical.PropRecurrenceRule); p != nil {
			for _, year := range []int{wall.Year(), wall.Year() - 1} {
				if at, ok := yearly(p.Value, year, began); ok && !at.After(wall) {
					began = at
					break
				}
			}
		}
		if !began.After(wall) && (latest.IsZero() || began.After(latest)) {
			latest, other = began, time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, time.FixedZone("", seconds))
		}
	}
	return other
}

// offsetOf returns the seconds of an offset such as +0530.
func offsetOf(text string) (int, bool) {
	if len(text) < 5 || text[0] != '+' && text[0] != '-' {
		return 0, false
	}
	n, err := strconv.Atoi(text[1:5])
	if err != nil || n/100 > 14 || n%100 > 59 {
		return 0, false
	}
	seconds := n/100*3600 + n%100*60
	if text[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// yearly returns the time in a year of a rule such as FREQ=YEARLY;BYDAY=1SU;BYMONTH=11,
// the only form that programs write for zones.
func yearly(rule string, year int, began time.Time) (time.Time, bool) {
	parts := map[string]string{}
	for part := range strings.SplitSeq(rule, ";") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	month, err := strconv.Atoi(parts["BYMONTH"])
	day := parts["BYDAY"]
	if parts["FREQ"] != "YEARLY" || err != nil || month < 1 || month > 12 || len(day) < 3 {
		return time.Time{}, false
	}
	n, err := strconv.Atoi(day[:len(day)-2])
	weekday := slices.Index([]string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}, day[len(day)-2:])
	if err != nil || weekday < 0 || n == 0 || n < -5 || n > 5 {
		return time.Time{}, false
	}
	first := time.Date(year, time.Month(month), 1, began.Hour(), began.Minute(), 0, 0, time.UTC)
	if n < 0 {
		last := first.AddDate(0, 1, -1)
		return last.AddDate(0, 0, -(int(last.Weekday())-weekday+7)%7+(n+1)*7), true
	}
	return first.AddDate(0, 0, (weekday-int(first.Weekday())+7)%7+(n-1)*7), true
}

// clipped returns the beginning of a text on one line.
func clipped(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}
