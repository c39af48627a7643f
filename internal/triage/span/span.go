// Package span finds dates, telephone numbers and signatures in a text, with
// their places. It is pure.
package span

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Span is a part of a text: the bytes from From up to To.
type Span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Of returns the part of a text, or "" if the text is shorter.
func (s Span) Of(text string) string {
	if s.From < 0 || s.To > len(text) || s.From > s.To {
		return ""
	}
	return text[s.From:s.To]
}

// Date is a date or a time that stands in a text. It has a zone of its own, or
// that of the owner.
type Date struct {
	Span Span
	At   time.Time
	// WholeDay reports whether the text names no time of day.
	WholeDay bool
}

// Text returns the date as an argument: a date, or a time of RFC 3339.
func (d Date) Text() string {
	if d.WholeDay {
		return d.At.Format(time.DateOnly)
	}
	return d.At.Format(time.RFC3339)
}

// months are names of months in English, German, French and Spanish, by their
// first letters.
var months = []struct {
	prefix string
	month  time.Month
}{
	{"jan", 1}, {"jän", 1}, {"feb", 2}, {"fév", 2}, {"mar", 3}, {"mär", 3}, {"apr", 4}, {"avr", 4}, {"may", 5}, {"mai", 5}, {"jun", 6}, {"juin", 6},
	{"juil", 7}, {"jul", 7}, {"aug", 8}, {"aoû", 8}, {"sep", 9}, {"okt", 10}, {"oct", 10}, {"nov", 11}, {"ene", 1}, {"abr", 4}, {"ago", 8}, {"set", 9}, {"dic", 12}, {"dez", 12}, {"déc", 12}, {"dec", 12},
}

const (
	monthName = `(?:jan(?:uary|uar|vier)?|jänner|feb(?:ruary|ruar)?|février|mar(?:ch|s)?|märz|apr(?:il)?|avril|may|mai|june?|juni|juin|july?|juli|juillet|aug(?:ust)?|août|sep(?:t|tember|tembre)?|o[ck]t(?:ober|obre)?|nov(?:ember|embre)?|de[cz](?:ember)?|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre)`
	clock     = `(?:(?:,|\s+at|\s+um|\s+à|\s+a las|T)?[ \t]*(\d{1,2})(?:[:.h時](\d{2})(?::\d{2})?)[ \t]*(am|pm|uhr)?\b|(?:,|\s+at)?[ \t]+(\d{1,2})[ \t]*(am|pm)\b)`
)

// dateForms are the forms of dates: year, month and day by the names of their
// groups, and a time of day.
var dateForms = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?P<clock>` + clock + `)?`),
	regexp.MustCompile(`(?i)\b(?P<name>` + monthName + `)\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?\b(?P<clock>` + clock + `)?`),
	regexp.MustCompile(`(?i)\b(?P<day>\d{1,2})(?:st|nd|rd|th|\.|er)?\s+(?:de\s+|of\s+)?(?P<name>` + monthName + `)\b\.?(?:,?\s+(?:del?\s+)?(?P<year>\d{4})\b)?(?P<clock>` + clock + `)?`),
	regexp.MustCompile(`(?i)\b(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})\b(?P<clock>` + clock + `)?`),
	regexp.MustCompile(`(?:\b(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})日(?P<clock>` + clock + `)?`),
	// With strokes, the larger number must be the day: the order differs by country.
	regexp.MustCompile(`(?i)\b(?P<day>1[3-9]|2\d|3[01])/(?P<month>\d{1,2})/(?P<year>\d{4})\b(?P<clock>` + clock + `)?`),
	regexp.MustCompile(`(?i)\b(?P<month>\d{1,2})/(?P<day>1[3-9]|2\d|3[01])/(?P<year>\d{4})\b(?P<clock>` + clock + `)?`),
}

// Dates returns the dates in a text, in their order. A date without a year is the
// next one after the mail was sent; zone is that of times without one.
func Dates(text string, sent time.Time, zone *time.Location) []Date {
	var all []Date
	// next holds the next date of every form, so that no form reads a part of the
	// text twice.
	next := make([]Date, len(dateForms))
	for at := 0; at < len(text); {
		first := Date{Span: Span{From: len(text)}}
		for i, form := range dateForms {
			if n := &next[i]; n.At.IsZero() && n.Span.From < len(text) || n.Span.From < at {
				var ok bool
				if *n, ok = findDate(form, text, at, sent, zone); !ok {
					n.Span.From = len(text)
				}
			}
			if !next[i].At.IsZero() && next[i].Span.From < first.Span.From {
				first = next[i]
			}
		}
		if first.At.IsZero() {
			break
		}
		all, at = append(all, first), first.Span.To
	}
	return all
}

// findDate returns the first valid date of a form from an index on.
func findDate(form *regexp.Regexp, text string, at int, sent time.Time, zone *time.Location) (Date, bool) {
	for at < len(text) {
		m := form.FindStringSubmatchIndex(text[at:])
		if m == nil {
			return Date{}, false
		}
		group := func(name string) string {
			if i := form.SubexpIndex(name); i >= 0 && m[2*i] >= 0 {
				return text[at+m[2*i] : at+m[2*i+1]]
			}
			return ""
		}
		if d, ok := parseDate(group, sent, zone); ok {
			d.Span = Span{at + m[0], at + m[1]}
			if clock := form.SubexpIndex("clock"); !d.WholeDay && continues(text[at+m[1]:]) {
				// The time is the beginning of another date.
				d, _ = parseDate(func(name string) string {
					if name == "clock" {
						return ""
					}
					return group(name)
				}, sent, zone)
				d.Span = Span{at + m[0], at + m[2*clock]}
			}
			d.Span.To = d.Span.From + len(strings.TrimRight(d.Span.Of(text), " ,\n\t"))
			return d, true
		}
		at += m[1]
	}
	return Date{}, false
}

// continues reports whether a number goes on behind a match.
func continues(after string) bool {
	return len(after) > 1 && strings.ContainsRune("./-", rune(after[0])) && after[1] >= '0' && after[1] <= '9'
}

// parseDate returns the date of the groups of a form.
func parseDate(group func(string) string, sent time.Time, zone *time.Location) (Date, bool) {
	number := func(name string) int {
		n, _ := strconv.Atoi(group(name)) // a group of digits, or ""
		return n
	}
	year, month, day := number("year"), time.Month(number("month")), number("day")
	if name := strings.ToLower(group("name")); name != "" {
		month = monthOf(name)
	}
	if year == 0 {
		year = sent.In(zone).Year()
		if time.Date(year, month, day, 23, 59, 59, 0, zone).Before(sent) {
			year++
		}
	}
	at := time.Date(year, month, day, 0, 0, 0, 0, zone)
	if at.Month() != month || at.Day() != day || year < 1970 || year > 2199 {
		return Date{}, false
	}
	text := group("clock")
	if text == "" {
		return Date{At: at, WholeDay: true}, true
	}
	hour, minute, ok := parseClock(text)
	if !ok {
		return Date{}, false
	}
	return Date{At: time.Date(year, month, day, hour, minute, 0, 0, zone)}, true
}

func monthOf(name string) time.Month {
	for _, m := range months {
		if strings.HasPrefix(name, m.prefix) {
			return m.month
		}
	}
	return 0
}

var clockForm = regexp.MustCompile(`(?i)(\d{1,2})(?:[:.h時](\d{2}))?(?::\d{2})?\s*(am|pm)?`)

// parseClock returns a time of day.
func parseClock(text string) (hour, minute int, ok bool) {
	m := clockForm.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, false
	}
	hour, _ = strconv.Atoi(m[1])
	minute, _ = strconv.Atoi(m[2]) // "" is 0
	if half := strings.ToLower(m[3]); half != "" {
		if hour < 1 || hour > 12 {
			return 0, 0, false
		}
		hour %= 12
		if half == "pm" {
			hour += 12
		}
	}
	return hour, minute, hour < 24 && minute < 60
}

// phoneForm is the form of telephone numbers in signatures: with a + or a leading
// 0 or bracket, so that other numbers are not taken for one.
var phoneForm = regexp.MustCompile(`(?:\+|\(0|\b0|\(\d{3}\)|\b\d{3}[-.]\d{3}[-.]\d{4})[0-9 ()/.-]{4,24}|\b\d{3}[-.]\d{3}[-.]\d{4}\b`)

// Phones returns the telephone numbers in a text: 7 to 15 digits.
func Phones(text string) []Span {
	var all []Span
	for _, m := range phoneForm.FindAllStringIndex(text, -1) {
		s := Span{m[0], m[1]}
		s.To = s.From + len(strings.TrimRight(s.Of(text), " .-/("))
		digits := 0
		for _, r := range s.Of(text) {
			if r >= '0' && r <= '9' {
				digits++
			}
		}
		if digits >= 7 && digits <= 15 {
			all = append(all, s)
		}
	}
	return all
}
