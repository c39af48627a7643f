package span

import (
	"regexp"
	"strings"
	"time"
)

// limitForm is a time limit in words: a preposition with a day of the week or a day near
// the sender's own. "Next Friday" has no date, since people mean different weeks by it.
var limitForm = regexp.MustCompile(`(?i)\b(?:by|until|till|before|due|no later than|bis(?: spätestens)?(?: zum)?|spätestens(?: am)?|vor)\s+(?:the\s+)?(?:this\s+|coming\s+|diesen\s+|kommenden\s+)?` +
	`(monday|tuesday|wednesday|thursday|friday|saturday|sunday|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag|today|tonight|tomorrow|heute|morgen|übermorgen)\b`)

var limitDays = map[string]time.Weekday{
	"monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6, "sunday": 0,
	"montag": 1, "dienstag": 2, "mittwoch": 3, "donnerstag": 4, "freitag": 5, "samstag": 6, "sonnabend": 6, "sonntag": 0,
}

// Limits returns the time limits of a text that are days near the day on which it was
// sent, by the clock of its sender: the date of sent in its own zone. The sender's own day
// of the week sets no limit, since it may be that of the next week.
func Limits(text string, sent time.Time) (all []Date) {
	if sent.IsZero() || sent.Year() < 1970 || sent.Year() > 2199 {
		return nil
	}
	y, m, d := sent.Date()
	for _, at := range limitForm.FindAllStringSubmatchIndex(text, -1) {
		days := 0
		switch word := strings.ToLower(text[at[2]:at[3]]); word {
		case "today", "tonight", "heute":
		case "tomorrow", "morgen":
			days = 1
		case "übermorgen":
			days = 2
		default:
			if days = (int(limitDays[word]-sent.Weekday()) + 7) % 7; days == 0 {
				continue
			}
		}
		all = append(all, Date{Span: Span{at[0], at[1]}, At: time.Date(y, m, d+days, 0, 0, 0, 0, sent.Location()), WholeDay: true})
	}
	return all
}
