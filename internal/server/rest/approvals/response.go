package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// response is a response of LangGraph's Agent Inbox.
type response struct {
	Type string
	Args json.RawMessage
	// text is that of a response; edited are the action and the arguments of an edit,
	// or of an acceptance that repeats them.
	text   string
	edited *wire.ActionRequest
}

// humanResponse parses a response, or a list of one, which the contract has
// checked. at is the pointer to it.
func humanResponse(body []byte) (in response, at string, err error) {
	if body = bytes.TrimSpace(body); body[0] == '[' {
		list := []json.RawMessage{}
		if err := json.Unmarshal(body, &list); err != nil {
			return in, "", err
		}
		body, at = list[0], "/0"
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return in, "", err
	}
	var p check.Problems
	switch args := bytes.TrimSpace(in.Args); {
	case len(args) == 0 || string(args) == "null":
		if in.Type == wire.ResponseText || in.Type == wire.ResponseEdit {
			p.Add(at+"/args", envelope.RuleRequired, "a response needs a text, and an edit an action with its args")
		}
	case args[0] == '"' && in.Type == wire.ResponseText:
		err = json.Unmarshal(args, &in.text)
	case args[0] == '{' && (in.Type == wire.ResponseEdit || in.Type == wire.ResponseAccept):
		err = json.Unmarshal(args, &in.edited)
	default:
		p.Add(at+"/args", envelope.RuleType, "must be a text for a response, an action with its args for an edit, and null to ignore")
	}
	return in, at, errors.Join(err, p.Err())
}

// revise returns the arguments of an edit for a tool, or nil for an acceptance of
// the arguments that the action has. The pointers of an *envelope.InvalidError are
// below /args.
func revise(ctx context.Context, in response, tool *catalog.Tool, now json.RawMessage) (json.RawMessage, error) {
	if in.edited == nil {
		return nil, nil
	}
	var p check.Problems
	if in.edited.Action != tool.Key.String() {
		p.Add("/action", envelope.RuleEnum, "must be the action of the interrupt: %s", tool.Key)
		return nil, p.Err()
	}
	was, err := members(now)
	if err != nil {
		return nil, err
	}
	given, err := members(in.edited.Args)
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
	if in.Type == wire.ResponseAccept {
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

// fails reports whether an error is about a place, or a value within.
func fails(broken *envelope.InvalidError, pointer string) bool {
	for _, f := range broken.Fields {
		if f.Pointer == pointer || strings.HasPrefix(f.Pointer, pointer+"/") {
			return true
		}
	}
	return false
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

// kindOf returns the first character of a value, or 0 for a number.
func kindOf(value json.RawMessage) byte {
	switch value = bytes.TrimSpace(value); {
	case len(value) == 0 || value[0] == '-' || '0' <= value[0] && value[0] <= '9':
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
