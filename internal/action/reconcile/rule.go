// Package reconcile finds out what became of calls that nobody heard the end of.
// An operator says per tool which read of the same source tells whether a call
// happened; the fleet asks, some time after such a call, and resolves the dead
// letter if the answer is clear. It owns those rules, what their templates and
// answers mean, and when a letter is looked into. It refuses to guess: a read
// that fails, or that says neither, leaves the outcome unknown.
//
// That something is not there yet does not mean that it never comes: the first
// request may be on its way still, in a proxy or in a queue of the source. So
// no "it did not happen" is believed before Config.Grace is over. A call of
// class keyed or idempotent then runs again; should the first request arrive
// after all, it changes nothing. A call of class once stays unknown, unless
// its rule says Resend: there a late request would double the effect.
package reconcile

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Rule says how a read finds out whether a call of a tool happened.
type Rule struct {
	// Tool is the read's name at the same source.
	Tool string `json:"tool"`
	// Args is the template of its arguments, a JSON object; empty stands for
	// {}. In it the text "$key" stands for the idempotency key of the call,
	// "$args" and "$args/…" for what stands there in the call's arguments, and
	// "$$" at the beginning of a text for a dollar sign.
	Args json.RawMessage `json:"args,omitempty"`
	// Happened is a JSON Pointer into the read's structured answer, or into
	// the JSON of its text. What it finds says that the call happened, unless
	// it is false, null, 0 or empty: that says that it did not.
	Happened string `json:"happened"`
	// Resend lets a call of class once run again that was not found.
	Resend bool `json:"resend,omitzero"`
}

// maxArgs bounds a template in bytes.
const maxArgs = 16 << 10

// Validate says which fields make no rule. The error is an
// *envelope.InvalidError.
func (r Rule) Validate() error {
	var fields []envelope.FieldError
	wrong := func(at string, rule envelope.Rule, message string) {
		fields = append(fields, envelope.FieldError{Pointer: at, Rule: rule, Message: message})
	}
	if r.Tool == "" {
		wrong("/tool", envelope.RuleRequired, "is required; name a tool of the same source that only reads")
	}
	if _, ok := parsePointer(r.Happened); !ok {
		wrong("/happened", envelope.RuleFormat, "must be a JSON Pointer, such as /found")
	}
	template, err := r.template()
	switch _, object := template.(map[string]any); {
	case len(r.Args) > maxArgs:
		wrong("/args", envelope.RuleMaxLength, "must have at most "+strconv.Itoa(maxArgs)+" bytes")
	case err != nil || !object:
		wrong("/args", envelope.RuleType, "must be a JSON object")
	default:
		_, _ = walk("/args", template, func(at, text string) (any, error) {
			if _, ok := parsePlace(text); !ok {
				wrong(at, envelope.RuleFormat, "must be $key, $args, $args/… or a text; $$ at its beginning is a dollar sign")
			}
			return text, nil
		})
	}
	if len(fields) == 0 {
		return nil
	}
	return &envelope.InvalidError{Fields: fields}
}

func (r Rule) template() (any, error) {
	if len(r.Args) == 0 {
		return map[string]any{}, nil
	}
	return decode(r.Args)
}

// errMissing says that the call's arguments lack what a template names.
var errMissing = fault.New(fault.Invalid, "the call has no such argument")

// Fill returns the arguments of the read that looks for a call.
func (r Rule) Fill(key string, args json.RawMessage) (json.RawMessage, error) {
	template, err := r.template()
	if err != nil {
		return nil, err
	}
	given, err := decode(args)
	if err != nil {
		return nil, err
	}
	filled, err := walk("", template, func(_, text string) (any, error) {
		p, ok := parsePlace(text)
		switch {
		case !ok:
			return nil, errMissing
		case p.key:
			return key, nil
		case !p.args:
			return p.text, nil
		}
		value, ok := p.at.find(given)
		if !ok {
			return nil, errMissing
		}
		return value, nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(filled)
}

// place is what a text of a template stands for.
type place struct {
	key, args bool
	at        pointer
	text      string
}

// parsePlace reads a text of a template; ok is false for one that looks like a
// place and is none.
func parsePlace(text string) (p place, ok bool) {
	rest, special := strings.CutPrefix(text, "$")
	switch {
	case !special:
		return place{text: text}, true
	case strings.HasPrefix(rest, "$"):
		return place{text: rest}, true
	case rest == "key":
		return place{key: true}, true
	}
	rest, special = strings.CutPrefix(rest, "args")
	if !special {
		return place{}, false
	}
	at, ok := parsePointer(rest)
	return place{args: true, at: at}, ok
}

// walk returns a copy of a value in which every text is replaced.
func walk(at string, value any, replace func(at, text string) (any, error)) (any, error) {
	switch v := value.(type) {
	case string:
		return replace(at, v)
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			next, err := walk(at+"/"+strconv.Itoa(i), one, replace)
			if err != nil {
				return nil, err
			}
			all[i] = next
		}
		return all, nil
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			next, err := walk(at+"/"+envelope.EscapePointer(name), one, replace)
			if err != nil {
				return nil, err
			}
			all[name] = next
		}
		return all, nil
	}
	return value, nil
}

// decode reads JSON and keeps numbers as they are written.
func decode(raw json.RawMessage) (any, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not one JSON value")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	return value, dec.Decode(&value)
}
