package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
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
	// Others are required parameters that no text of a message fills.
	Others []string
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
	configured, err := defaults(t.Name, t.Action)
	if err != nil {
		return Proposal{}, err
	}
	for _, f := range configured {
		// A text for a list is its only element.
		if name := f.Pointer[1:]; slices.ContainsFunc(t.Fields, func(f tag.Field) bool { return f.Name == name && f.List }) {
			f.Pointer += "/0"
		}
		p.Fields = append(p.Fields, f)
	}
	for name := range t.Action.DefaultArgs {
		given[name] = -1
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
	for _, name := range t.Others {
		if given[name] == 0 {
			missing = append(missing, name)
		}
	}
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

const (
	// maxDefaults bounds the values of default arguments, and maxDepth their depth.
	maxDefaults, maxDepth = 100, 5
)

// argForm is the form of the names of arguments, also in objects.
var argForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// defaults returns the default arguments of an action, a field for each text, number and
// boolean.
func defaults(name string, action tag.Action) (fields []Field, err error) {
	for _, arg := range slices.Sorted(maps.Keys(action.DefaultArgs)) {
		dec := json.NewDecoder(bytes.NewReader(action.DefaultArgs[arg]))
		dec.UseNumber()
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("the default argument %s of the action %s is not JSON", arg, name)
		}
		if fields, err = flatten(fields, "/"+arg, "/actions/"+name+"/default_args/"+arg, value, 1); err != nil || !argForm.MatchString(arg) {
			return nil, fmt.Errorf("the default argument %q of the action %s must be lines of text, numbers and booleans, alone or in lists and objects with names of letters, digits, _ and -", arg, name)
		}
	}
	return fields, nil
}

// flatten appends the fields of a value. ref is its place in the configuration.
func flatten(fields []Field, pointer, ref string, value any, depth int) ([]Field, error) {
	if depth > maxDepth || len(fields) >= maxDefaults {
		return nil, errors.New("too many values")
	}
	var err error
	switch v := value.(type) {
	case string:
		text, err := line(Value{v, Configured, ref})
		return append(fields, Field{pointer, text}), err
	case json.Number:
		text, err := line(Value{v.String(), Literal, ref})
		return append(fields, Field{pointer, text}), err
	case bool:
		return append(fields, Field{pointer, Value{strconv.FormatBool(v), Literal, ref}}), nil
	case []any:
		for i, element := range v {
			if fields, err = flatten(fields, pointer+"/"+strconv.Itoa(i), ref, element, depth+1); err != nil {
				return nil, err
			}
		}
		return fields, refuse(len(v) == 0)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			// Args takes an object with an index as a name for a list.
			if !argForm.MatchString(name) || isIndex(name) {
				return nil, errors.New("the name of a member")
			}
			if fields, err = flatten(fields, pointer+"/"+name, ref, v[name], depth+1); err != nil {
				return nil, err
			}
		}
		return fields, refuse(len(v) == 0)
	}
	return nil, errors.New("null")
}

// refuse returns an error for a list or an object that is empty.
func refuse(empty bool) error {
	if empty {
		return errors.New("no values")
	}
	return nil
}
