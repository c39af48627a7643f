package invitation

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-ical"
)

// Reply returns the calendar that answers the invitation. It repeats what
// identifies the event, the organizer and the attendee as the invitation has them.
func (i Invitation) Reply(answer Answer, now time.Time) ([]byte, error) {
	status, ok := map[Answer]string{Accepted: "ACCEPTED", Tentative: "TENTATIVE", Declined: "DECLINED"}[answer]
	if !ok {
		return nil, fmt.Errorf("unknown answer %q", answer)
	}
	event := ical.NewComponent(ical.CompEvent)
	for _, name := range []string{ical.PropUID, ical.PropSequence, ical.PropRecurrenceID, ical.PropOrganizer} {
		if p := i.event.Props.Get(name); p != nil {
			event.Props.Set(p)
		}
	}
	event.Props.SetDateTime(ical.PropDateTimeStamp, now.UTC())
	attendee := ical.Prop{Name: i.attendee.Name, Params: maps.Clone(i.attendee.Params), Value: i.attendee.Value}
	attendee.Params.Set(ical.ParamParticipationStatus, status)
	attendee.Params.Del(ical.ParamRSVP)
	event.Props.Set(&attendee)

	calendar := ical.NewCalendar()
	calendar.Props.SetText(ical.PropVersion, "2.0")
	calendar.Props.SetText(ical.PropProductID, "-//Countersign//EN")
	calendar.Props.SetText(ical.PropMethod, "REPLY")
	if p := event.Props.Get(ical.PropRecurrenceID); p != nil && p.Params.Get(ical.PropTimezoneID) != "" {
		zone := p.Params.Get(ical.PropTimezoneID)
		at := slices.IndexFunc(i.zones, func(c *ical.Component) bool {
			id := c.Props.Get(ical.PropTimezoneID)
			return id != nil && id.Value == zone
		})
		if at >= 0 {
			calendar.Children = append(calendar.Children, i.zones[at])
		}
	}
	calendar.Children = append(calendar.Children, event)
	var b bytes.Buffer
	if err := ical.NewEncoder(&b).Encode(calendar); err != nil {
		return nil, err
	}
	return fold(b.Bytes()), nil
}

// fold breaks lines of more than 75 bytes, which the library does not (RFC 5545,
// section 3.1).
func fold(text []byte) []byte {
	const most = 75
	var b bytes.Buffer
	for l := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\r\n")), []byte("\r\n")) {
		for room := most; len(l) > room; room = most - 1 {
			n := room
			for !utf8.RuneStart(l[n]) {
				n--
			}
			b.Write(l[:n])
			b.WriteString("\r\n ")
			l = l[n:]
		}
		b.Write(l)
		b.WriteString("\r\n")
	}
	return b.Bytes()
}
