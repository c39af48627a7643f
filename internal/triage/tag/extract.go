package tag

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/span"
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
	Span  span.Span
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
	sign := span.SignatureOf(m.Text, senderName(m))
	dates := span.Dates(m.Text, m.Date, zone)
	for _, f := range fields {
		add := func(part Part, spans ...span.Span) {
			for _, s := range spans {
				all = append(all, Argument{f, part, s})
			}
		}
		switch {
		case slices.Contains(nameFields, f.Name) && len(m.From) > 0 && m.From[0].Name != "":
			add(SenderName, span.Span{})
		case slices.Contains(emailFields, f.Name) && len(m.From) > 0:
			add(SenderAddress, span.Span{})
		case slices.Contains(phoneFields, f.Name) && f.List:
			add(Text, sign.Phones...)
		case slices.Contains(phoneFields, f.Name):
			add(Text, sign.Phones[:min(1, len(sign.Phones))]...)
		case slices.Contains(companyFields, f.Name) && sign.Company != (span.Span{}):
			add(Text, sign.Company)
		case slices.Contains(titleFields, f.Name) && person && sign.Title != (span.Span{}):
			add(Text, sign.Title)
		case slices.Contains(titleFields, f.Name) && !person, slices.Contains(summaryFields, f.Name):
			if m.Subject != "" {
				add(Subject, span.Span{})
			}
		case slices.Contains(startFields, f.Name) && len(dates) > 0:
			add(DateText, dates[0].Span)
		case slices.Contains(endFields, f.Name) && len(dates) > 0:
			add(DateText, endOf(m.Text, dates))
		}
	}
	return all
}

func senderName(m *message.Message) string {
	if len(m.From) == 0 {
		return ""
	}
	return m.From[0].Name
}

// rangeForm is the text between the two dates of a range.
var rangeForm = regexp.MustCompile(`(?i)^\s*(-|–|—|to|until|till|bis|à|au)\s*$`)

// endOf returns the span of the end: the second date of a range, or the first.
func endOf(text string, dates []span.Date) span.Span {
	if len(dates) > 1 && rangeForm.MatchString(text[dates[0].Span.To:dates[1].Span.From]) &&
		dates[0].WholeDay == dates[1].WholeDay && dates[1].At.After(dates[0].At) {
		return dates[1].Span
	}
	return dates[0].Span
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
		dates := span.Dates(text, m.Date, zone)
		if len(dates) == 0 {
			return Argument{}, false
		}
		return Argument{f, DateText, span.Span{From: at + dates[0].Span.From, To: at + dates[0].Span.To}}, true
	case date:
		return Argument{}, false
	case len(m.From) > 0 && text == m.From[0].Name:
		return Argument{f, SenderName, span.Span{}}, true
	case len(m.From) > 0 && strings.EqualFold(text, m.From[0].Addr):
		return Argument{f, SenderAddress, span.Span{}}, true
	case text == m.Subject:
		return Argument{f, Subject, span.Span{}}, true
	case at >= 0 && !strings.ContainsAny(text, "\r\n"):
		return Argument{f, Text, span.Span{From: at, To: at + len(text)}}, true
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
