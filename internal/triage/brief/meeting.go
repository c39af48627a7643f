package brief

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
)

// MeetingText renders the preparation for a meeting as plain text.
func MeetingText(m wire.TriageMeeting) string {
	zone := Location(m.Zone)
	when := m.Event.Start.In(zone).Format("Monday 2 January at " + clock)
	if m.Event.WholeDay {
		when = m.Event.Start.In(zone).Format("Monday 2 January")
	}
	people := section{title: fmt.Sprintf("People: %d", m.People.Total)}
	for _, p := range m.People.Items {
		text := "no mail"
		if p.Last != nil {
			text = fmt.Sprintf("%d from them, %d from you, last on %s", p.Theirs, p.Mine, p.Last.In(zone).Format("2 January 2006"))
		}
		people.lines = append(people.lines, line{p.Address, text})
	}
	threads := section{title: fmt.Sprintf("Threads with them: %d", m.Threads.Total)}
	for _, t := range m.Threads.Items {
		from := person(t.SenderName, t.Sender)
		if t.Outgoing {
			from = "you"
		}
		threads.lines = append(threads.lines, line{t.ReceivedAt.In(zone).Format("2 January"), from + ": " + cmp.Or(t.Subject, "(no subject)")})
	}
	if m.ShowsMail {
		people.more, threads.more = m.People.Total-len(m.People.Items), m.Threads.Total-len(m.Threads.Items)
	}
	now := time.Now()
	all := append([]section{people, threads}, followUps("You owe them", m.Owed, m.ShowsMail, now, zone), followUps("You wait for", m.Awaited, m.ShowsMail, now, zone))
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s (%s)\n", plain(cmp.Or(m.Event.Summary, "A meeting")), when, m.Zone)
	for _, s := range all {
		if strings.HasPrefix(s.title, "You") && len(s.lines) == 0 && s.note == "" && s.more == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", s.title)
		for _, l := range s.lines {
			fmt.Fprintf(&b, "  %s  %s\n", plain(l.mark), plain(l.text))
		}
		if s.note != "" {
			fmt.Fprintf(&b, "  %s\n", s.note)
		}
		if s.more > 0 {
			fmt.Fprintf(&b, "  %s\n", omitted(s.more))
		}
	}
	return b.String()
}
