// Package extract finds facts in a mail: receipts, meetings, tasks, one-time
// codes, travel and contacts. It is pure and uses no model. The findings are text
// that a sender chose: it is shown to the owner, and decides nothing.
package extract

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/signal"
	"github.com/countersign-dev/countersign/internal/triage/span"
)

// Kind is the kind of a finding.
type Kind string

// The kinds.
const (
	Receipt Kind = "receipt"
	Meeting Kind = "meeting"
	Task    Kind = "task"
	Code    Kind = "code"
	Travel  Kind = "travel"
	Contact Kind = "contact"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Receipt, Meeting, Task, Code, Travel, Contact} }

// Part is the part of a mail that a value is from.
type Part string

// The parts. Body is the text without quotes and signature, Text the whole text, both
// as they are shown; a place in them is a range of bytes.
const (
	Body      Part = "body"
	Text      Part = "text"
	Subject   Part = "subject"
	Header    Part = "header"
	Calendar  Part = "icalendar"
	JSONLD    Part = "json_ld"
	Microdata Part = "microdata"
)

// Cancelled is the value of the field status of an event that is cancelled.
const Cancelled = "cancelled"

// Field is a value of a finding, with the part of the mail that it is from.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Part  Part   `json:"part"`
	// Span is the place in a body, a text or a subject.
	Span span.Span `json:"span,omitzero"`
}

// Finding is one receipt, meeting, task, code, journey or contact.
type Finding struct {
	Kind   Kind    `json:"kind"`
	Fields []Field `json:"fields"`
	// At is the time of the finding: of a purchase, the start of a meeting or a
	// journey, the day on which a task is due. Ends is when it is over.
	At, Ends time.Time
	// Key identifies a meeting or a task of a calendar.
	Key string
}

// Get returns a value, or "".
func (f *Finding) Get(name string) string {
	for _, v := range f.Fields {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

const (
	// maxBody bounds the text that is read, maxLine a line and maxLines their number.
	maxBody  = 16 << 10
	maxLine  = 500
	maxLines = 400
	// maxFindings bounds the findings of a mail, and maxValue a value.
	maxFindings = 12
	maxValue    = 300
)

// line is a line of the text of the sender, with the place at which it begins.
type line struct {
	text string
	at   int
}

// finder is a mail and its findings.
type finder struct {
	m     *message.Message
	lines []line
	// low is the subject and the lines in lower case.
	low    string
	sender message.Address
	domain string
	found  []Finding
}

// Find returns the findings in a mail apart from one-time codes, which are not kept.
// Times without a zone are those of the sender's clock.
func Find(m *message.Message) []Finding {
	f := &finder{m: m, lines: linesOf(m.Body)}
	low := make([]string, 0, len(f.lines)+1)
	low = append(low, strings.ToLower(clip(m.Subject, maxLine)))
	for _, l := range f.lines {
		low = append(low, strings.ToLower(l.text))
	}
	f.low = strings.Join(low, "\n")
	if len(m.From) > 0 {
		f.sender = m.From[0]
		_, f.domain, _ = strings.Cut(f.sender.Addr, "@")
	}
	f.calendars()
	f.data()
	if !f.has(Travel) {
		f.travel()
	}
	if !f.has(Receipt) {
		f.receipt()
	}
	if !f.has(Meeting) && !f.has(Travel) {
		f.meeting()
	}
	f.tasks()
	f.contact()
	return f.found[:min(len(f.found), maxFindings)]
}

func (f *finder) has(k Kind) bool {
	return slices.ContainsFunc(f.found, func(found Finding) bool { return found.Kind == k })
}

// add adds a finding with the fields that have a value.
func (f *finder) add(found Finding) {
	found.Fields = slices.DeleteFunc(found.Fields, func(v Field) bool { return v.Value == "" })
	for i := range found.Fields {
		found.Fields[i].Value = clip(found.Fields[i].Value, maxValue)
	}
	f.found = append(f.found, found)
}

// zone is the zone of times without one: that of the sender's clock.
func (f *finder) zone() *time.Location {
	if f.m.Date.IsZero() {
		return time.UTC
	}
	return f.m.Date.Location()
}

// sent is the time at which the mail was written, or zero if it is not plausible.
func (f *finder) sent() time.Time {
	if y := f.m.Date.Year(); y < 1970 || y > 2199 {
		return time.Time{}
	}
	return f.m.Date
}

// contains reports whether the subject or the text has one of the phrases.
func (f *finder) contains(phrases []string) bool { return contains(f.low, phrases) }

func contains(low string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(low, p) })
}

// bulk reports whether the mail went to many: it offers, and asks for nothing of its
// owner alone.
func (f *finder) bulk() bool {
	return f.m.Get("List-Id") != "" || f.contains(unsubscribing)
}

// freemail reports whether the sender has an address of a public mail provider, as
// no shop has.
func (f *finder) freemail() bool { return f.domain == "" || signal.Freemail(f.domain) }

var unsubscribing = []string{"unsubscribe", "abmelden", "abbestellen", "désabonner", "désinscrire", "darse de baja", "配信停止"}

// linesOf returns the lines of a text that are not quoted.
func linesOf(text string) (all []line) {
	at := 0
	for l := range strings.Lines(clip(text, maxBody)) {
		if trimmed := strings.TrimRight(l, "\n"); !strings.HasPrefix(strings.TrimSpace(l), ">") && strings.TrimSpace(l) != "" && len(all) < maxLines {
			all = append(all, line{clip(trimmed, maxLine), at})
		}
		at += len(l)
	}
	return all
}

// clip returns the beginning of a text, without half a character at its end.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xc0 == 0x80 {
		most--
	}
	return text[:most]
}

// value is a text and its place in the body.
type value struct {
	text string
	at   int
}

func (v value) span() span.Span { return span.Span{From: v.at, To: v.at + len(v.text)} }

// field returns the field of a value in the body.
func (v value) field(name string) Field {
	if v.text == "" {
		return Field{Name: name}
	}
	return Field{Name: name, Value: v.text, Part: Body, Span: v.span()}
}

// trim returns a value without characters at its ends.
func (v value) trim(cut string) value {
	left := strings.TrimLeft(v.text, cut)
	return value{strings.TrimRight(left, cut), v.at + len(v.text) - len(left)}
}

// separators are the characters between a label and its value.
const separators = " \t\u00a0\u202f:：.|#*–—-=()"

// labelled returns the values behind a label at the beginning of a line, in order. A
// label that is a whole line has its value on the next one.
func (f *finder) labelled(label string) (all []value) {
	for i, l := range f.lines {
		text := strings.TrimLeft(l.text, " \t*|•-")
		at := l.at + len(l.text) - len(text)
		if len(text) < len(label) || !strings.EqualFold(text[:len(label)], label) {
			continue
		}
		rest := value{text[len(label):], at + len(label)}
		if wordly(label) && startsWord(rest.text) {
			continue
		}
		if v := rest.trim(separators); v.text != "" {
			all = append(all, v)
		} else if i+1 < len(f.lines) {
			all = append(all, value{f.lines[i+1].text, f.lines[i+1].at}.trim(separators))
		}
	}
	return all
}

// first returns the first value behind one of the labels.
func (f *finder) first(labels ...string) value {
	for _, label := range labels {
		if all := f.labelled(label); len(all) > 0 {
			return all[0]
		}
	}
	return value{}
}

// wordly reports whether a label ends with a letter of a language with spaces.
func wordly(label string) bool { return label[len(label)-1] < 0x80 || strings.HasSuffix(label, "é") }

func startsWord(text string) bool {
	for _, r := range text {
		return r < 0x2000 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0xc0 && r <= 0x24f)
	}
	return false
}

// sentence is a sentence of the body; a line break ends one only behind an empty
// line, a colon or a stop.
type sentence struct {
	value
	low string
}

// sentences returns the sentences of the body.
func (f *finder) sentences() (all []sentence) {
	body := clip(f.m.Body, maxBody)
	from := 0
	add := func(to int) {
		v := value{body[from:to], from}.trim(" \t\n\r\u00a0")
		if v.text != "" && len(v.text) <= 2*maxLine && v.text[0] != '>' && len(all) < maxLines {
			all = append(all, sentence{v, strings.ToLower(v.text)})
		}
		from = to
	}
	for i, r := range body {
		end := i + len(string(r))
		next := body[end:]
		switch {
		case r == '\n' && (strings.HasPrefix(next, "\n") || strings.HasPrefix(next, ">")):
			add(end)
		case r == '。' || r == '！' || r == '？':
			add(end)
		case (r == '.' || r == '!' || r == '?') && (next == "" || next[0] == ' ' || next[0] == '\n') && !abbreviated(body[from:i], next):
			add(end)
		}
	}
	add(len(body))
	return all
}

// abbreviated reports whether a stop belongs to a day of a month or an abbreviation.
func abbreviated(before, next string) bool {
	word := before[strings.LastIndexAny(before, " \n")+1:]
	if strings.Trim(word, "0123456789") == "" && word != "" && len(word) <= 2 {
		return len(next) > 1 && next[0] == ' '
	}
	return slices.Contains([]string{"Dr", "Mr", "Ms", "Mrs", "Nr", "No", "St", "Jan", "Feb", "Mar", "Apr", "Aug", "Sep", "Sept", "Oct", "Okt", "Nov", "Dec", "Dez"}, word)
}

// date returns the first date in a value, with its place in the body.
func (f *finder) date(v value) (span.Date, bool) {
	dates := span.Dates(clip(v.text, maxLine), f.sent(), f.zone())
	if len(dates) == 0 {
		return span.Date{}, false
	}
	d := dates[0]
	d.Span.From, d.Span.To = d.Span.From+v.at, d.Span.To+v.at
	return d, true
}

// dateField returns the field of a date.
func dateField(name string, d span.Date) Field {
	if d.At.IsZero() {
		return Field{Name: name}
	}
	return Field{Name: name, Value: d.Text(), Part: Body, Span: d.Span}
}

// endOr returns an end, or else the end of the day or of the hour of a start.
func endOr(end, start time.Time, wholeDay bool) time.Time {
	if end.IsZero() && wholeDay {
		return start.AddDate(0, 0, 1)
	}
	return cmp.Or(end, start.Add(time.Hour))
}
