// Package followup finds the follow-ups in the threads of a mail account, of its
// owner and of others: from the speech acts of decisions, the owner's unanswered questions and
// the dates in messages. Only the follow-ups that people closed or put off are stored, so
// that the rest cannot differ from the mail: one query over partial indexes finds it, and
// dates are read from the text that it returns.
package followup

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/triage/span"
)

// The sides that owe.
const (
	Me   = "me"
	Them = "them"
)

// Age is the age of the oldest message that a follow-up rests on.
const Age = 90 * 24 * time.Hour

// maxListed bounds the follow-ups of an account.
const maxListed = 500

// impossible is the difference to the time of arrival from which on the Date of a
// message is not believed.
const impossible = 48 * time.Hour

// besides is the distance in bytes at which a date explains a day before it.
const besides = 12

// Dated sets the due date of a follow-up: the first date of its text on the day that
// the message was received or later, or the first time limit by a day of the week. Such
// a day is of the sender's clock; sent is the zero time if that is unknown.
func Dated(f *wire.TriageFollowUp, text string, sent, received time.Time, zone *time.Location) {
	y, m, d := received.In(zone).Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, zone)
	all := slices.DeleteFunc(span.Dates(text, received, zone), func(found span.Date) bool { return found.At.Before(day) })
	if sent.Sub(received).Abs() <= impossible {
		for _, limit := range span.Limits(text, sent) {
			if !slices.ContainsFunc(all, func(found span.Date) bool {
				return found.Span.From >= limit.Span.To && found.Span.From-limit.Span.To <= besides
			}) {
				all = append(all, limit)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	first := slices.MinFunc(all, func(a, b span.Date) int { return a.Span.From - b.Span.From })
	due := first.At
	if first.WholeDay {
		y, m, d := due.Date()
		due = time.Date(y, m, d, 23, 59, 59, 0, zone)
	}
	f.Due, f.DueText, f.WholeDay = new(due.UTC()), strings.Join(strings.Fields(first.Span.Of(text)), " "), first.WholeDay
}

// sortByDue sorts follow-ups by their due dates, those without one last, oldest first.
func sortByDue(all []wire.TriageFollowUp) {
	slices.SortStableFunc(all, func(a, b wire.TriageFollowUp) int {
		switch {
		case a.Due != nil && b.Due != nil:
			return a.Due.Compare(*b.Due)
		case a.Due != nil:
			return -1
		case b.Due != nil:
			return 1
		}
		return a.Since.Compare(b.Since)
	})
}

// with returns the other side of a message of the owner: its first participant who is
// not the owner.
func with(participants, own []string) string {
	for _, p := range participants {
		if !slices.ContainsFunc(own, func(a string) bool { return strings.EqualFold(a, p) }) {
			return p
		}
	}
	return ""
}
