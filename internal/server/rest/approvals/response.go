package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// maxNote bounds the characters of a note, as the contract does.
const maxNote = 500

// response is a response of LangGraph's Agent Inbox.
type response struct {
	kind string
	// text is that of a response; edited are the action and the arguments of an edit,
	// or of an acceptance that repeats them.
	text   string
	edited *actionRequest
}

// actionRequest is an action with its arguments.
type actionRequest struct {
	action string
	args   json.RawMessage
}

// humanResponse parses a response, or a list of one. at is the pointer to it. The
// contract allows either, so that its errors would be about both.
func humanResponse(body []byte) (in response, at string, err error) {
	if _, err := envelope.Canonical(body); err != nil {
		return in, "", err
	}
	var p check.Problems
	if body = bytes.TrimSpace(body); kindOf(body) == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(body, &list); err != nil {
			return in, "", err
		}
		if len(list) != 1 {
			p.Add("", envelope.RuleMaxItems, "must have one response")
			return in, "", p.Err()
		}
		body, at = list[0], "/0"
	}
	found := fields(&p, at, body, "type", "args")
	in.kind = text(&p, at+"/type", found["type"])
	args, place := found["args"], at+"/args"
	switch in.kind {
	case wire.ResponseText:
		in.text = text(&p, place, args)
		if n := utf8.RuneCountInString(in.text); n > maxNote {
			p.Add(place, envelope.RuleMaxLength, "must have at most %d characters", maxNote)
		}
	case wire.ResponseEdit, wire.ResponseAccept:
		if in.kind == wire.ResponseAccept && isNull(args) {
			break
		}
		request := fields(&p, place, args, "action", "args")
		in.edited = &actionRequest{action: text(&p, place+"/action", request["action"]), args: request["args"]}
		if kindOf(in.edited.args) != '{' {
			p.Add(place+"/args", envelope.RuleType, "must be an object")
		}
	case wire.ResponseIgnore:
		if !isNull(args) {
			p.Add(place, envelope.RuleType, "must be null")
		}
	default:
		p.Add(at+"/type", envelope.RuleEnum, "must be accept, ignore, response or edit")
	}
	return in, at, p.Err()
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || kindOf(value) == 'n' }

// fields returns the members of an object that has no others than those named.
func fields(p *check.Problems, at string, value json.RawMessage, names ...string) (found map[string]json.RawMessage) {
	if kindOf(value) != '{' || json.Unmarshal(value, &found) != nil {
		p.Add(at, envelope.RuleType, "must be an object")
	}
	for name := range found {
		if !slices.Contains(names, name) {
			p.Add(at+check.Pointer(name), envelope.RuleUnknownField, "is not a field of a response")
		}
	}
	return found
}

// text returns a text that must be there.
func text(p *check.Problems, at string, value json.RawMessage) (s string) {
	if !isText(value) || json.Unmarshal(value, &s) != nil || s == "" {
		p.Add(at, envelope.RuleType, "must be a text")
	}
	return s
}

// revise returns the arguments of an edit for a tool, or nil for an acceptance of
// the arguments that the action has. The pointers of an *envelope.InvalidError are
// below /args.
func revise(ctx context.Context, in response, tool *catalog.Tool, now json.RawMessage) (json.RawMessage, error) {
	if in.edited == nil {
		return nil, nil
	}
	var p check.Problems
	if in.edited.action != tool.Key.String() {
		p.Add("/action", envelope.RuleEnum, "must be the action of the interrupt: %s", tool.Key)
		return nil, p.Err()
	}
	was, err := members(now)
	if err != nil {
		return nil, err
	}
	given, err := members(in.edited.args)
	if err != nil {
		return nil, err
	}
	restore(given, was)
	for name, value := range given {
		if rounded(was[name], value) {
			p.Add("/args"+check.Pointer(name), envelope.RuleNumber, "has lost digits; send a large integer as text")
		}
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	if in.kind == wire.ResponseAccept {
		return nil, unchanged(given, was)
	}
	return typed(ctx, tool, given, was)
}

// members returns the members of arguments, which are valid.
func members(args json.RawMessage) (map[string]json.RawMessage, error) {
	if _, err := envelope.Canonical(args); err != nil {
		var p check.Problems
		return nil, errors.Join(p.Below("/args", err), p.Err())
	}
	found := make(map[string]json.RawMessage)
	return found, json.Unmarshal(args, &found)
}

// restore replaces the texts of values that the action has by the values: Agent
// Inbox returns every value that is not a text as its JSON.
func restore(given, was map[string]json.RawMessage) {
	for name, value := range given {
		if before, ok := was[name]; ok && !isText(before) && same(unquoted(value), before) {
			given[name] = before
		}
	}
}

// unchanged returns an error unless an acceptance repeats the arguments of the
// action.
func unchanged(given, was map[string]json.RawMessage) error {
	var p check.Problems
	for name, value := range given {
		if before, ok := was[name]; !ok || !same(value, before) {
			p.Add("/args"+check.Pointer(name), envelope.RuleReadOnly, "differs from the interrupt; send the type edit to change it")
		}
	}
	for name := range was {
		if _, ok := given[name]; !ok {
			p.Add("/args"+check.Pointer(name), envelope.RuleRequired, "is missing; send the type edit to remove it")
		}
	}
	return p.Err()
}

// typed returns arguments of which each text is replaced by the JSON that it is,
// where the schema of the tool takes no text, or the action has another type that
// the schema takes as well. What the schema takes in neither form stays a text.
func typed(ctx context.Context, tool *catalog.Tool, given, was map[string]json.RawMessage) (json.RawMessage, error) {
	texts := make(map[string]json.RawMessage) // the values whose text is JSON of another type
	for name, value := range given {
		if parsed := unquoted(value); parsed != nil && !isText(parsed) {
			texts[name] = value
			if before, ok := was[name]; ok && kindOf(before) == kindOf(parsed) {
				given[name] = parsed
			}
		}
	}
	budget := schema.NewBudget(len(given))
	tried := make(map[string]bool)
	for {
		args, err := json.Marshal(given)
		if err != nil {
			return nil, err
		}
		err = tool.CheckWithin(ctx, budget, args)
		broken, ok := errors.AsType[*envelope.InvalidError](err)
		if !ok {
			return args, err
		}
		changed := false
		for name, text := range texts {
			if tried[name] || !fails(broken, "/args"+check.Pointer(name)) {
				continue
			}
			tried[name], changed = true, true
			if isText(given[name]) {
				given[name] = unquoted(text)
			} else {
				given[name] = text
			}
		}
		if !changed {
			return nil, err
		}
	}
}

// fails reports whether an error is about a value as a whole. One about a value within
// means that the type is right.
func fails(broken *envelope.InvalidError, pointer string) bool {
	return slices.ContainsFunc(broken.Fields, func(f envelope.FieldError) bool { return f.Pointer == pointer })
}

// unquoted returns the JSON that a text of JSON contains, or nil.
func unquoted(value json.RawMessage) json.RawMessage {
	var text string
	if !isText(value) || json.Unmarshal(value, &text) != nil || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(strings.TrimSpace(text))
}

func isText(value json.RawMessage) bool { return kindOf(value) == '"' }

// kindOf returns the first character of a value, as the type of JSON that it has:
// 0 for a number, t for a boolean. An absent value is null.
func kindOf(value json.RawMessage) byte {
	switch value = bytes.TrimSpace(value); {
	case len(value) == 0:
		return 'n'
	case value[0] == '-' || '0' <= value[0] && value[0] <= '9':
		return 0
	case value[0] == 'f':
		return 't'
	}
	return value[0]
}

// same reports whether two values are equal, with numbers by value.
func same(a, b json.RawMessage) bool {
	x, errX := envelope.Canonical(a)
	y, errY := envelope.Canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// maxExact is the first integer with a neighbour that a JavaScript number does not
// have.
const maxExact = 1 << 53

// rounded reports whether a number is a large integer of the action, in the
// precision of a JavaScript number.
func rounded(before, value json.RawMessage) bool {
	if parsed := unquoted(value); parsed != nil {
		value = parsed
	}
	if kindOf(before) != 0 || kindOf(value) != 0 || same(before, value) {
		return false
	}
	was, errWas := strconv.ParseFloat(string(before), 64)
	is, errIs := strconv.ParseFloat(string(value), 64)
	return errWas == nil && errIs == nil && math.Abs(was) >= maxExact && was == is
}
