package signal

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/lookalike"
	"github.com/countersign-dev/countersign/internal/mail/message"
)

const (
	maxEvidence = 200
	// Limits of the subject and of a display name, in bytes.
	maxSubject = 2000
	maxName    = 500
)

// finder collects the symbols of one message.
type finder struct {
	m        *message.Message
	about    Context
	rules    map[string]Rule
	lex      *lexicon
	imitable []*lookalike.Targets
	fields   fields
	from     message.Address // zero without a From
	domain   string          // registrable domain of from
	subject  string          // truncated
	symbols  []Symbol
	// found holds the phrases of the visible text, written those of the text
	// without quotes.
	found, written hits
	oneTimeCode    string
}

// fields are the header fields that the rules read; of a repeated field, the
// first.
type fields struct {
	from                                 int
	listID, unsubscribe, unsubscribePost string
	precedence, autoSubmitted, listPost  string
}

// Header returns the fields of a message's header that the rules read, apart
// from addresses and subject. Copies of a message may differ in them.
func Header(m *message.Message) string {
	var h fields
	for _, field := range m.Fields {
		h.read(field)
	}
	return fmt.Sprintf("%#v", h)
}

func newFinder(m *message.Message, about Context) *finder {
	about.Sender, about.List = Counted(about.Authentication, about.Sender, about.List)
	f := &finder{m: m, about: about, rules: ruleByName(), lex: loaded(), symbols: make([]Symbol, 0, 16), subject: beginningOf(m.Subject, maxSubject)}
	for _, field := range m.Fields {
		f.fields.read(field)
	}
	if len(m.From) > 0 {
		f.from = message.Address{Name: beginningOf(m.From[0].Name, maxName), Addr: m.From[0].Addr}
		f.domain = lookalike.Registrable(lookalike.DomainOf(f.from.Addr))
	}
	return f
}

func (h *fields) read(field message.Field) {
	set := func(to *string) {
		if *to == "" {
			*to = strings.TrimSpace(field.Value)
		}
	}
	switch strings.ToLower(field.Name) {
	case "from":
		h.from++
	case "list-id":
		set(&h.listID)
	case "list-unsubscribe":
		set(&h.unsubscribe)
	case "list-unsubscribe-post":
		set(&h.unsubscribePost)
	case "precedence":
		set(&h.precedence)
	case "auto-submitted":
		set(&h.autoSubmitted)
	case "list-post":
		set(&h.listPost)
	}
}

// add adds a symbol with its evidence. A message has a symbol once, with the
// largest weight.
func (f *finder) add(name, evidence string) { f.addScaled(name, 1, evidence) }

// addScaled adds a symbol with a part of its weight. A partial weight proves
// nothing about identity.
func (f *finder) addScaled(name string, part float64, evidence string) {
	rule := f.rules[name]
	one := Symbol{
		Name: name, Axis: rule.Axis, Weight: rule.Weight * part,
		Identity: rule.Identity && part == 1,
	}
	at := slices.IndexFunc(f.symbols, func(s Symbol) bool { return s.Name == name })
	if at >= 0 && (f.symbols[at].Weight >= one.Weight || one.Weight < 0) {
		return
	}
	one.Evidence = clip(evidence)
	if at >= 0 {
		f.symbols[at] = one
		return
	}
	f.symbols = append(f.symbols, one)
}

func (f *finder) has(names ...string) bool {
	return slices.ContainsFunc(f.symbols, func(s Symbol) bool { return slices.Contains(names, s.Name) })
}

// sum returns the weight so far on an axis.
func (f *finder) sum(axis Axis) float64 {
	total := 0.0
	for _, s := range f.symbols {
		if s.Axis == axis {
			total += s.Weight
		}
	}
	return total
}

// beginningOf returns at most length bytes of a text.
func beginningOf(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return text[:length]
}

// clip returns at most maxEvidence characters of a text, as valid UTF-8.
func clip(text string) string {
	if len(text) > 4*maxEvidence {
		text = text[:4*maxEvidence]
	}
	text = strings.ToValidUTF8(strings.TrimSpace(text), "")
	if utf8.RuneCountInString(text) <= maxEvidence {
		return text
	}
	n := 0
	for i := range text {
		if n == maxEvidence {
			return text[:i]
		}
		n++
	}
	return text
}
