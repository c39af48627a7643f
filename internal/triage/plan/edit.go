package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

// CheckEdit checks arguments that a person wrote in place of those of a proposal.
// A person may write other labels, flags, folders, recipients and texts, at the
// places and in the form that proposals have; the message that the call is about
// stays the same. The error is an *envelope.InvalidError.
func CheckEdit(tool Tool, proposed, edited json.RawMessage) error {
	was, err := textsOf(proposed)
	if err != nil {
		return err
	}
	now, err := textsOf(edited)
	if err != nil {
		return err
	}
	var p check.Problems
	for pointer, text := range now {
		value := Value{text: text, origin: Configured}
		if fixed(pointer) {
			if was[pointer] != text {
				p.Add("/args"+pointer, "fixed", "names the message that the proposal is about, and cannot be changed")
			}
			continue
		}
		// What the proposal has at the place passed already, by its own origin.
		if was[pointer] == text {
			continue
		}
		f := Field{pointer, value}
		if err := checkPlace(tool, f); err != nil {
			p.Add("/args"+pointer, envelope.RuleUnknownField, "%s", err)
			continue
		}
		if err := checkLabel(tool, f); err != nil {
			p.Add("/args"+pointer, "label", "%s", err)
		}
		switch {
		case strings.HasPrefix(pointer, "/labels/") && !labelForm.MatchString(strings.TrimLeft(text, "\\")):
			p.Add("/args"+pointer, "label", "must be 1 to 64 letters, digits and . _ + - $")
		case strings.HasPrefix(pointer, "/flags/") && !slices.Contains(Flags().words, text):
			p.Add("/args"+pointer, envelope.RuleEnum, "must be a flag that triage may set: %s", strings.Join(Flags().words, ", "))
		case pointer != "/text":
			if _, err := line(value); err != nil {
				p.Add("/args"+pointer, "line", "%s", err)
			}
		}
	}
	for pointer := range was {
		if _, there := now[pointer]; !there && fixed(pointer) {
			p.Add("/args"+pointer, "fixed", "names the message that the proposal is about, and cannot be left out")
		}
	}
	return p.Err()
}

// fixed reports whether a place names the message, or the account.
func fixed(pointer string) bool {
	for _, place := range []string{"/account", "/message", "/expected", "/in_reply_to", "/references"} {
		if pointer == place || strings.HasPrefix(pointer, place+"/") {
			return true
		}
	}
	return false
}

// textsOf returns the texts of arguments by their pointers.
func textsOf(args json.RawMessage) (map[string]string, error) {
	var root any
	if err := json.Unmarshal(args, &root); err != nil {
		return nil, fmt.Errorf("arguments of a proposal: %w", err)
	}
	found := make(map[string]string)
	var p check.Problems
	var walk func(pointer string, value any)
	walk = func(pointer string, value any) {
		switch v := value.(type) {
		case string:
			found[pointer] = v
		case map[string]any:
			for name, member := range v {
				walk(pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), member)
			}
		case []any:
			for i, member := range v {
				walk(pointer+"/"+strconv.Itoa(i), member)
			}
		default:
			p.Add("/args"+pointer, envelope.RuleType, "must be a text")
		}
	}
	walk("", root)
	return found, p.Err()
}
