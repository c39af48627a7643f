package tag

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// Part is the part of a message that an argument comes from.
type Part string

// The parts.
const (
	// Text is a span of the text, taken literally.
	Text Part = "text"
	// DateText is a span of the text that holds a date.
	DateText Part = "date"
	// SenderName, SenderAddress and Subject are of the header.
	SenderName    Part = "sender_name"
	SenderAddress Part = "sender_address"
	Subject       Part = "subject"
)

// Argument is an argument of a call and the part of the message with its value.
type Argument struct {
	Field Field
	Part  Part
	Span  Span
}

// Names of parameters by their meaning. A tool of another source may have any.
var (
	nameFields    = []string{"formatted_name", "full_name", "name"}
	emailFields   = []string{"emails", "email"}
	phoneFields   = []string{"phones", "phone"}
	companyFields = []string{"organization", "company"}
	titleFields   = []string{"title", "role"}
	summaryFields = []string{"summary", "subject"}
	startFields   = []string{"start", "date", "due"}
	endFields     = []string{"end"}
)

// Extract returns arguments from the header, the signature and the dates of a
// message, without a model. A parameter without a value has none.
func Extract(m *message.Message, fields []Field, zone *time.Location) []Argument {
	var all []Argument
	person := slices.ContainsFunc(fields, func(f Field) bool { return slices.Contains(nameFields, f.Name) })
	sign := signatureOf(m)
	dates := Dates(m.Text, m.Date, zone)
	for _, f := range fields {
		add := func(part Part, spans ...Span) {
			for _, s := range spans {
				all = append(all, Argument{f, part, s})
			}
		}
		switch {
		case slices.Contains(nameFields, f.Name) && len(m.From) > 0 && m.From[0].Name != "":
			add(SenderName, Span{})
		case slices.Contains(emailFields, f.Name) && len(m.From) > 0:
			add(SenderAddress, Span{})
		case slices.Contains(phoneFields, f.Name) && f.List:
			add(Text, sign.phones...)
		case slices.Contains(phoneFields, f.Name):
			add(Text, sign.phones[:min(1, len(sign.phones))]...)
		case slices.Contains(companyFields, f.Name) && sign.company != (Span{}):
			add(Text, sign.company)
		case slices.Contains(titleFields, f.Name) && person && sign.title != (Span{}):
			add(Text, sign.title)
		case slices.Contains(titleFields, f.Name) && !person, slices.Contains(summaryFields, f.Name):
			if m.Subject != "" {
				add(Subject, Span{})
			}
		case slices.Contains(startFields, f.Name) && len(dates) > 0:
			add(DateText, dates[0].Span)
		case slices.Contains(endFields, f.Name) && len(dates) > 0:
			add(DateText, endOf(m.Text, dates))
		}
	}
	return all
}

// rangeForm is the text between the two dates of a range.
var rangeForm = regexp.MustCompile(`(?i)^\s*(-|–|—|to|until|till|bis|à|au)\s*$`)

// endOf returns the span of the end: the second date of a range, or the first.
func endOf(text string, dates []Date) Span {
	if len(dates) > 1 && rangeForm.MatchString(text[dates[0].Span.To:dates[1].Span.From]) &&
		dates[0].WholeDay == dates[1].WholeDay && dates[1].At.After(dates[0].At) {
		return dates[1].Span
	}
	return dates[0].Span
}

// signature holds the spans of a signature.
type signature struct {
	phones         []Span
	title, company Span
}

// signatureLines bounds the lines of a signature.
const signatureLines = 12

var (
	closingForm = regexp.MustCompile(`(?i)^\s*(-- ?|(kind |best |warm )?regards,?|best,?|cheers,?|thanks,?|sincerely,?|(mit )?(freundlichen|besten|viele[nr]?|liebe) grü(ß|ss)en?,?|cordialement,?)\s*$`)
	quotedForm  = regexp.MustCompile(`(?i)^\s*>|^\s*(on .*wrote|am .* schrieb.*|le .* a écrit ?):\s*$|^-+ ?original message`)
	// positionForm is a line such as "Jane Doe, CTO at NewCompany".
	positionForm = regexp.MustCompile(`^\s*(?:(?P<name>[^,|]{2,60}?)\s*[,|]\s*)?(?P<title>[^,|@\d]{2,60}?)(?:\s+(?:at|bei|chez)\s+|\s*[|]\s*|,\s+)(?P<company>[^,|@]{2,60}?)\s*$`)
)

// signatureOf returns the signature of the sender: the lines after a closing, or from the sender's name on, at the end of their own text.
func signatureOf(m *message.Message) (s signature) {
	var lines []Span
	for at := 0; at < len(m.Text); {
		end := at + strings.IndexByte(m.Text[at:]+"\n", '\n')
		line := Span{at, min(end, len(m.Text))}
		at = end + 1
		if quotedForm.MatchString(line.Of(m.Text)) {
			break
		}
		if strings.TrimSpace(line.Of(m.Text)) != "" {
			lines = append(lines, line)
		}
	}
	name := ""
	if len(m.From) > 0 {
		name = m.From[0].Name
	}
	lines = lines[max(0, len(lines)-signatureLines):]
	begin := slices.IndexFunc(lines, func(l Span) bool {
		text := strings.TrimSpace(l.Of(m.Text))
		return closingForm.MatchString(text) || name != "" && strings.HasPrefix(text, name)
	})
	if begin < 0 {
		return s
	}
	for _, l := range lines[begin:] {
		text := l.Of(m.Text)
		for _, p := range Phones(text) {
			s.phones = append(s.phones, Span{l.From + p.From, l.From + p.To})
		}
		s.position(m.Text, l, name)
	}
	s.phones = s.phones[:min(len(s.phones), 3)]
	return s
}

// position takes the title and the organization of a line, unless an earlier one
// named them.
func (s *signature) position(text string, line Span, name string) {
	match := positionForm.FindStringSubmatchIndex(line.Of(text))
	if match == nil || s.title != (Span{}) {
		return
	}
	group := func(i int) Span {
		if match[2*i] < 0 {
			return Span{}
		}
		return Span{line.From + match[2*i], line.From + match[2*i+1]}
	}
	first, title, company := group(1), group(2), group(3)
	if first != (Span{}) && !strings.EqualFold(strings.TrimSpace(first.Of(text)), name) || strings.EqualFold(title.Of(text), name) {
		return
	}
	s.title, s.company = title, company
}

// Literal returns the arguments in the answer of a model that stand in the message
// as they are. Others are left out: a model chooses parts of a message, and writes
// nothing.
func Literal(m *message.Message, fields []Field, answer map[string][]string, zone *time.Location) []Argument {
	var all []Argument
	for _, f := range fields {
		for _, text := range answer[f.Name] {
			if a, ok := literal(m, f, strings.TrimSpace(text), zone); ok && !slices.Contains(all, a) {
				all = append(all, a)
			}
			if !f.List && len(all) > 0 && all[len(all)-1].Field == f {
				break
			}
		}
	}
	return all
}

func literal(m *message.Message, f Field, text string, zone *time.Location) (Argument, bool) {
	if text == "" {
		return Argument{}, false
	}
	at := strings.Index(m.Text, text)
	date := slices.Contains(startFields, f.Name) || slices.Contains(endFields, f.Name)
	switch {
	case date && at >= 0:
		dates := Dates(text, m.Date, zone)
		if len(dates) == 0 {
			return Argument{}, false
		}
		return Argument{f, DateText, Span{at + dates[0].Span.From, at + dates[0].Span.To}}, true
	case date:
		return Argument{}, false
	case len(m.From) > 0 && text == m.From[0].Name:
		return Argument{f, SenderName, Span{}}, true
	case len(m.From) > 0 && strings.EqualFold(text, m.From[0].Addr):
		return Argument{f, SenderAddress, Span{}}, true
	case text == m.Subject:
		return Argument{f, Subject, Span{}}, true
	case at >= 0 && !strings.ContainsAny(text, "\r\n"):
		return Argument{f, Text, Span{at, at + len(text)}}, true
	}
	return Argument{}, false
}

// Merge returns arguments with those of others for the fields without any.
func Merge(arguments, others []Argument) []Argument {
	merged := slices.Clone(arguments)
	for _, a := range others {
		if !slices.ContainsFunc(arguments, func(b Argument) bool { return b.Field.Name == a.Field.Name }) {
			merged = append(merged, a)
		}
	}
	return merged
}
