package extract

import (
	"regexp"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/triage/span"
)

var (
	// meetForm are words of a meeting that somebody proposes or confirms.
	meetForm = regexp.MustCompile(`\b(?:meet|meeting|a call|call with|phone call|video call|appointment|lunch|dinner|coffee|interview|termin|treffen|besprechung|telefonat|vorstellungsgespräch|rendez-vous|réunion|entretien|reunión|cita|entrevista)\b|打ち合わせ|会議|面談`)
	// notMeetForm are words of events that nobody arranges with the owner.
	notMeetForm = regexp.MustCompile(`\b(?:minutes of|webinar|register|channel|livestream|stream|sale|tickets?|protokoll|compte rendu)\b|議事録`)
	// askForm are words that ask the owner for something.
	askForm = regexp.MustCompile(`\b(?:please|kindly|could you|can you|would you|will you|could i have|can i have|i need|we need you|you need to|you must|you should|bitte|ich bitte|wir bitten|kannst du|könntest du|könnten sie|können sie|sie müssen|du musst|merci de|veuillez|peux-tu|pouvez-vous|pourriez-vous|prière de|por favor|debe|debes|puedes|podrías|le rogamos|you can submit)\b|ください|お願い`)
	// offerForm are words of offers, whose end is no task.
	offerForm = regexp.MustCompile(`\b(?:offers?|free|discount|sale|save|book by|deal|sichern sie sich|rabatt|angebot|verständnis|gesperrt|valable|soldes|ofertas?|descuento)\b|\d ?%`)
	// dueForm are the words before the day on which a task is due, and afterForm those
	// behind it.
	dueForm   = regexp.MustCompile(`\b(?:by|before|no later than|not later than|until|till|due(?: on| by)?|deadline(?: is| for[^.]{0,40} is)?:?|bis(?: zum| spätestens| spätestens zum)?|spätestens(?: am)?|vor dem|avant le|d['’]ici(?: le| au)?|jusqu['’]au|au plus tard le|antes del?|hasta el|a más tardar el)\s+(?:the end of\s+|end of\s+)?(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|satur|sat|sun)(?:day)?,?\s+|(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)[s,]*\s+(?:den\s+)?)?$`)
	afterForm = regexp.MustCompile(`^\s*(?:まで|迄)`)
)

// dueWords are parts of the words before or behind a time limit, and meetWords those
// of a meeting. They are searched first, which is faster.
var (
	dueWords  = []string{"by ", "before ", "later than ", "until ", "till ", "due", "deadline", "bis ", "spätestens", "vor dem ", "avant le", "d'ici", "d’ici", "jusqu", "au plus tard", "antes de", "hasta el", "a más tardar", "まで", "迄"}
	meetWords = []string{"meet", " call", "appointment", "lunch", "dinner", "coffee", "interview", "termin", "treffen", "besprechung", "telefonat", "gespräch", "rendez-vous", "réunion", "entretien", "reunión", "cita", "entrevista", "打ち合わせ", "会議", "面談"}
)

// meeting adds a meeting that a person proposes or confirms, with a day and a time.
func (f *finder) meeting() {
	if f.bulk() || !f.contains(meetWords) {
		return
	}
	for _, s := range f.sentences() {
		if !contains(s.low, meetWords) || !meetForm.MatchString(s.low) || notMeetForm.MatchString(s.low) || !strings.ContainsAny(s.low, "0123456789") {
			continue
		}
		d, ok := f.date(s.value)
		if !ok || d.WholeDay || d.At.Before(f.sent()) {
			continue
		}
		subject := clip(f.m.Subject, maxLine)
		f.add(Finding{Kind: Meeting, At: d.At, Ends: d.At.Add(time.Hour), Fields: []Field{
			{Name: "summary", Value: subject, Part: Subject, Span: span.Span{To: len(subject)}}, dateField("start", d),
		}})
		return
	}
}

// tasks adds the requests of the sender with a day, a sentence each.
func (f *finder) tasks() {
	if f.bulk() || !f.contains(dueWords) {
		return
	}
	all := f.sentences()
	seen := map[string]bool{}
	for i, s := range all {
		if !strings.ContainsAny(s.low, "0123456789") || !contains(s.low, dueWords) || offerForm.MatchString(s.low) {
			continue
		}
		d, ok := f.due(s)
		if !ok || seen[d.Text()] {
			continue
		}
		asked := askForm.MatchString(s.low)
		// The request may stand before or behind, in the same breath.
		for _, near := range []int{i - 1, i + 1} {
			if near >= 0 && near < len(all) && !asked {
				asked = askForm.MatchString(all[near].low) && !offerForm.MatchString(all[near].low) && len(all[near].text) < maxValue
			}
		}
		if !asked {
			continue
		}
		seen[d.Text()] = true
		summary := value{strings.Join(strings.Fields(s.text), " "), s.at}
		field := summary.field("summary")
		field.Span.To = s.at + len(s.text)
		f.add(Finding{Kind: Task, At: d.At, Fields: []Field{field, dateField("due", d)}})
	}
}

// due returns the date in a sentence that is the end of a time limit, unless it was
// over when the mail was sent.
func (f *finder) due(s sentence) (span.Date, bool) {
	for _, d := range span.Dates(clip(s.text, maxLine), f.sent(), f.zone()) {
		before, after := strings.ToLower(s.text[:d.Span.From]), s.text[d.Span.To:]
		if !dueForm.MatchString(before) && !afterForm.MatchString(after) {
			continue
		}
		if d.At.AddDate(0, 0, 1).Before(f.sent()) {
			continue
		}
		d.Span.From, d.Span.To = d.Span.From+s.at, d.Span.To+s.at
		return d, true
	}
	return span.Date{}, false
}
