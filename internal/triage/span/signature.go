package span

import (
	"regexp"
	"slices"
	"strings"
)

// Signature holds the spans of a signature.
type Signature struct {
	Phones         []Span
	Title, Company Span
	// Lines are the lines behind the closing, or from the sender's name on.
	Lines []Span
}

// signatureLines bounds the lines of a signature.
const signatureLines = 12

var (
	closingForm = regexp.MustCompile(`(?i)^\s*(-- ?|(kind |best |warm )?regards,?|best,?|cheers,?|thanks,?|sincerely,?|(mit )?(freundlichen|besten|viele[nr]?|liebe) grü(ß|ss)en?,?|cordialement,?)\s*$`)
	quotedForm  = regexp.MustCompile(`(?i)^\s*>|^\s*(on .*wrote|am .* schrieb.*|le .* a écrit ?):\s*$|^-+ ?original message`)
	// positionForm is a line such as "Jane Doe, CTO at NewCompany".
	positionForm = regexp.MustCompile(`^\s*(?:(?P<name>[^,|]{2,60}?)\s*[,|]\s*)?(?P<title>[^,|@\d]{2,60}?)(?:\s+(?:at|bei|chez)\s+|\s*[|]\s*|,\s+)(?P<company>[^,|@]{2,60}?)\s*$`)
)

// SignatureOf returns the signature in a text: the lines after a closing, or from
// the sender's name on, at the end of the sender's own text.
func SignatureOf(text, name string) (s Signature) {
	var lines []Span
	at := 0
	for l := range strings.Lines(text) {
		line := Span{at, at + len(strings.TrimSuffix(l, "\n"))}
		at += len(l)
		if quotedForm.MatchString(line.Of(text)) {
			break
		}
		if strings.TrimSpace(line.Of(text)) != "" {
			lines = append(lines, line)
		}
	}
	lines = lines[max(0, len(lines)-signatureLines):]
	begin := slices.IndexFunc(lines, func(l Span) bool {
		line := strings.TrimSpace(l.Of(text))
		return closingForm.MatchString(line) || name != "" && strings.HasPrefix(line, name)
	})
	if begin < 0 {
		return s
	}
	s.Lines = lines[begin:]
	for _, l := range s.Lines {
		for _, p := range Phones(l.Of(text)) {
			s.Phones = append(s.Phones, Span{l.From + p.From, l.From + p.To})
		}
		s.position(text, l, name)
	}
	s.Phones = s.Phones[:min(len(s.Phones), 3)]
	return s
}

// position takes the title and the organization of a line, unless an earlier one
// named them.
func (s *Signature) position(text string, line Span, name string) {
	match := positionForm.FindStringSubmatchIndex(line.Of(text))
	if match == nil || s.Title != (Span{}) {
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
	s.Title, s.Company = title, company
}
