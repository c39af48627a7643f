package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/span"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

// Tagged is the action of proposals for action tags.
const Tagged decide.Action = "tag"

// Try is a try of an action tag.
type Try struct {
	Name   string
	Action tag.Action
	Number int
	// Fields are the parameters of the tool, and Arguments their values in the
	// message.
	Fields    []tag.Field
	Arguments []tag.Argument
	// Zone is the owner's.
	Zone *time.Location
	// Confirm reports whether a person has to approve it. Otherwise policy
	// decides.
	Confirm bool
}

// IncompleteError is the error of arguments without a required one.
type IncompleteError struct{ Missing []string }

// Error implements error.
func (e *IncompleteError) Error() string {
	return "the message has no value for " + strings.Join(e.Missing, ", ")
}

// TryID returns the name of the proposal of a try.
func TryID(account string, identity [32]byte, action string, number int) string {
	id := ExternalID(account, identity, decide.Action("tag "+action), strconv.Itoa(number))
	return TryPrefix + strings.TrimPrefix(id, "triage:")
}

// TryPrefix is the beginning of the names of tries.
const TryPrefix = "triage:tag:"

// Call returns the proposal of a try. Default arguments win. An argument of the
// message stands in it literally, or is a date of its text. The error is an
// *IncompleteError if a required argument is missing.
func (t Try) Call(m *message.Message, c Config) (Proposal, error) {
	p := Proposal{
		Action: Tagged, Parts: []Part{{Tagged, t.Name}}, Source: t.Action.Source, Tool: Tool(t.Action.Tool), Confirm: t.Confirm,
		ExternalID: TryID(c.Account, m.Identity, t.Name, t.Number),
	}
	given := make(map[string]int)
	for _, name := range slices.Sorted(maps.Keys(t.Action.DefaultArgs)) {
		v, err := line(Value{t.Action.DefaultArgs[name], Configured, "/actions/" + t.Name + "/default_args/" + name})
		if err != nil {
			return Proposal{}, err
		}
		pointer := "/" + name
		if slices.ContainsFunc(t.Fields, func(f tag.Field) bool { return f.Name == name && f.List }) {
			pointer += "/0"
		}
		p.Fields, given[name] = append(p.Fields, Field{pointer, v}), -1
	}
	for _, a := range t.Arguments {
		at, name := given[a.Field.Name], a.Field.Name
		if at < 0 || at > 0 && !a.Field.List {
			continue
		}
		v, err := t.value(m, a)
		if err != nil {
			continue // the same as a message without it
		}
		pointer := "/" + name
		if a.Field.List {
			pointer += "/" + strconv.Itoa(at)
		}
		p.Fields, given[name] = append(p.Fields, Field{pointer, v}), at+1
	}
	var missing []string
	for _, f := range t.Fields {
		if f.Required && given[f.Name] == 0 {
			missing = append(missing, f.Name)
		}
	}
	if len(missing) > 0 {
		return Proposal{}, &IncompleteError{missing}
	}
	if len(p.Fields) == 0 {
		return Proposal{}, fmt.Errorf("the message has no value for any parameter of %s", t.Action.Tool)
	}
	return p, nil
}

// value returns the value of an argument, with its origin.
func (t Try) value(m *message.Message, a tag.Argument) (Value, error) {
	switch a.Part {
	case tag.SenderAddress:
		return FromHeader(m, HeaderFrom, 0)
	case tag.SenderName:
		if len(m.From) == 0 {
			break
		}
		return line(Value{m.From[0].Name, Header, "From/0/name"})
	case tag.Subject:
		return FromHeader(m, HeaderSubject, 0)
	case tag.Text:
		return line(Value{a.Span.Of(m.Text), Span, fmt.Sprintf("text/%d-%d", a.Span.From, a.Span.To)})
	case tag.DateText:
		text := a.Span.Of(m.Text)
		dates := span.Dates(text, m.Date, t.Zone)
		if len(dates) != 1 || dates[0].Span != (span.Span{From: 0, To: len(text)}) {
			break
		}
		return line(Value{dates[0].Text(), Span, fmt.Sprintf("text/%d-%d %s", a.Span.From, a.Span.To, text)})
	}
	return Value{}, fmt.Errorf("the message has no value for %s", a.Field.Name)
}
