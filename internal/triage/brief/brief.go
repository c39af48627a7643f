// Package brief makes briefs about a mail account from stored data, without a model,
// and renders them as text, Markdown and blocks of Slack. It owns the settings of
// briefs and the times at which they are due. A brief has no text of a mail's body,
// and senders and subjects only where they are asked for. The package sends nothing.
package brief

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/triage/extract"
	"github.com/countersign-dev/countersign/internal/visible"
)

// section is a titled part of a brief, as all renderings show it.
type section struct {
	title string
	lines []line
	// more counts the lines that are left out.
	more int
	// note is a sentence in place of lines, or after them.
	note string
}

// line is a line: a short mark, and a text that may come from mail.
type line struct{ mark, text string }

// Title returns the first line of a brief.
func Title(b wire.TriageBrief) string {
	zone := Location(b.Zone)
	return fmt.Sprintf("%s brief of %s, %s (%s)", cmp.Or(strings.ToUpper(b.Kind[:min(1, len(b.Kind))])+b.Kind[min(1, len(b.Kind)):], "A"),
		b.Account, b.Until.In(zone).Format("Monday 2 January 2006"), b.Zone)
}

// sections returns the parts of a brief in their order. Empty ones are left out,
// except the first.
func sections(b wire.TriageBrief) []section {
	zone := Location(b.Zone)
	mail := section{title: fmt.Sprintf("Mail since %s: %d", b.Since.In(zone).Format("Monday 15:04"), b.Total)}
	if b.Until.Sub(b.Since) > 6*24*time.Hour {
		mail.title = fmt.Sprintf("Mail since %s: %d", b.Since.In(zone).Format("2 January"), b.Total)
	}
	for _, c := range b.Buckets {
		mail.lines = append(mail.lines, line{c.Name, fmt.Sprint(c.Count)})
	}
	if b.Late != nil {
		mail.note = "This brief is late: it was due at " + b.Late.In(zone).Format("Monday 15:04") + "."
	}
	all := []section{mail, attention(b)}
	if b.Calendar != nil {
		all = append(all, calendar(*b.Calendar, b.ShowsMail, zone))
	}
	all = append(all, followUps("You owe", b.Owed, b.ShowsMail, b.Until, zone), followUps("You wait for", b.Awaited, b.ShowsMail, b.Until, zone), found(b.Found, b.ShowsMail, zone))
	moved := section{title: "Left the inbox"}
	for _, c := range b.Moved {
		moved.lines = append(moved.lines, line{c.Name, fmt.Sprint(c.Count)})
	}
	all = append(all, moved)
	shown := all[:1]
	for _, s := range all[1:] {
		if len(s.lines) > 0 || s.note != "" || s.more > 0 {
			shown = append(shown, s)
		}
	}
	return shown
}

func attention(b wire.TriageBrief) section {
	s := section{title: "Needs you now", more: b.Attention.Total - len(b.Attention.Items)}
	for _, m := range b.Attention.Items {
		mark := m.Bucket
		if m.Question {
			mark += " ?"
		}
		s.lines = append(s.lines, line{mark, person(m.SenderName, m.Sender) + ": " + cmp.Or(m.Subject, "(no subject)")})
	}
	if b.Attention.Total == 0 {
		s.title, s.note = "Nothing needs you now", "No message waits for you."
	} else if !b.ShowsMail {
		s.title, s.more, s.note = fmt.Sprintf("Needs you now: %d", b.Attention.Total), 0, counted(b.Attention.Total, "message")+" for you."
	}
	return s
}

// counted returns a number with its noun and "waits" or "wait".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " waits"
	}
	return fmt.Sprintf("%d %ss wait", n, noun)
}

func calendar(c wire.TriageBriefCalendar, showsMail bool, zone *time.Location) section {
	s := section{title: "Calendar", more: c.Events.Total - len(c.Events.Items)}
	for _, e := range c.Events.Items {
		mark := e.Start.In(zone).Format(clock) + "–" + e.End.In(zone).Format(clock)
		switch {
		case e.WholeDay:
			mark = "all day"
		case e.End.Equal(e.Start):
			mark = e.Start.In(zone).Format(clock)
		}
		text := cmp.Or(e.Summary, "(no title)")
		if e.Location != "" {
			text += " (" + e.Location + ")"
		}
		s.lines = append(s.lines, line{mark, text})
	}
	switch {
	case c.Problem != "":
		s.note = "The calendar " + c.Source + " is missing: " + c.Problem + "."
	case c.Events.Total == 0:
		s.note = "No events."
	case !showsMail && c.Events.Total == 1:
		s.more, s.note = 0, "1 event."
	case !showsMail:
		s.more, s.note = 0, fmt.Sprintf("%d events.", c.Events.Total)
	}
	if c.Unread > 0 {
		s.note = strings.TrimSpace(s.note + fmt.Sprintf(" Events that cannot be read: %d.", c.Unread))
	}
	return s
}

func followUps(title string, list wire.TriageBriefFollowUps, showsMail bool, now time.Time, zone *time.Location) section {
	s := section{title: title, more: list.Total - len(list.Items)}
	if !showsMail && list.Total > 0 {
		s.title, s.more, s.note = fmt.Sprintf("%s: %d", title, list.Total), 0, counted(list.Total, "answer")+"."
		if list.Overdue > 0 {
			s.note = fmt.Sprintf("%s, %d overdue.", counted(list.Total, "answer"), list.Overdue)
		}
		return s
	}
	for _, f := range list.Items {
		mark := "since " + f.Since.In(zone).Format("2 Jan")
		text := person(f.WithName, f.With) + ": " + cmp.Or(f.Subject, "(no subject)")
		if f.Due != nil {
			mark = "due " + f.Due.In(zone).Format("2 Jan")
			if !f.WholeDay {
				mark += f.Due.In(zone).Format(" " + clock)
			}
			if overdue(f, now) {
				mark = "overdue, " + mark
			}
			text += " (“" + f.DueText + "”)"
		}
		s.lines = append(s.lines, line{mark, text})
	}
	return s
}

// overdue reports whether the due date of a follow-up is over.
func overdue(f wire.TriageFollowUp, now time.Time) bool { return f.Due != nil && f.Due.Before(now) }

func found(list wire.TriageBriefFound, showsMail bool, zone *time.Location) section {
	s := section{title: "In the mail", more: list.Total - len(list.Items)}
	if !showsMail {
		s.more = 0
		for _, c := range list.Kinds {
			s.lines = append(s.lines, line{c.Name, fmt.Sprint(c.Count)})
		}
		return s
	}
	for _, it := range list.Items {
		text := it.Text
		switch {
		case it.At == nil:
		case it.WholeDay || it.Kind == string(extract.Receipt):
			text += ", " + it.At.In(zone).Format("2 January")
		default:
			text += ", " + it.At.In(zone).Format("2 January "+clock)
		}
		s.lines = append(s.lines, line{it.Kind, text})
	}
	return s
}

// person returns a name, or the address without one.
func person(name, address string) string { return cmp.Or(name, address, "(no sender)") }

// maxLine bounds the characters of a line.
const maxLine = 160

// plain returns a text in one line of bounded length, with escapes in place of the
// characters that do not show.
func plain(text string) string {
	text = strings.Join(strings.Fields(visible.Text(strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(text))), " ")
	if runes := []rune(text); len(runes) > maxLine {
		return string(runes[:maxLine-1]) + "…"
	}
	return text
}

// omitted returns the sentence about lines that are left out.
func omitted(n int) string { return fmt.Sprintf("and %d more", n) }
