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

// Edited is an edit of a call: arguments that a person wrote in place of those of a
// proposal.
type Edited struct {
	Tool Tool
	// Proposed and Now are the arguments before all edits, and after this one.
	Proposed, Now json.RawMessage
	// Own reports whether triage proposed the call. Other programs may propose calls
	// of more tools, with places and values that triage does not use; the schema of
	// the tool checks those.
	Own bool
}

// CheckEdit checks an edit. A person may write other labels, flags, folders, times,
// recipients and texts, in the form that proposals have; the account and the message
// that the call is about stay the same. The error is an *envelope.InvalidError.
func CheckEdit(e Edited) error {
	was, err := textsOf(e.Proposed, e.Own)
	if err != nil {
		return err
	}
	now, err := textsOf(e.Now, e.Own)
	if err != nil {
		return err
	}
	var p check.Problems
	for pointer, text := range now {
		// A value that the proposal has at the place passed already, by its own origin.
		if before, there := was[pointer]; there && before == text {
			continue
		}
		if fixed(pointer) {
			p.Add("/args"+pointer, "fixed", "names the message that the proposal is about, and cannot be changed")
			continue
		}
		e.checkValue(&p, pointer, text)
	}
	for pointer := range was {
		if _, there := now[pointer]; !there && fixed(pointer) {
			p.Add("/args"+pointer, "fixed", "names the message that the proposal is about, and cannot be left out")
		}
	}
	return p.Err()
}

// checkValue checks a new value at a place that may change.
func (e Edited) checkValue(p *check.Problems, pointer, text string) {
	value := Value{text: text, origin: Configured}
	f := Field{pointer, value}
	if e.Own {
		if err := checkPlace(e.Tool, f); err != nil {
			p.Add("/args"+pointer, envelope.RuleUnknownField, "%s", err)
			return
		}
	}
	if err := checkLabel(e.Tool, f); err != nil {
		p.Add("/args"+pointer, "label", "%s", err)
	}
	switch {
	case strings.HasPrefix(pointer, "/labels/") && !labelForm.MatchString(strings.TrimLeft(text, "\\")):
		p.Add("/args"+pointer, "label", "must be 1 to 64 letters, digits and . _ + - $")
	case e.Own && strings.HasPrefix(pointer, "/flags/") && !slices.Contains(Flags().words, text):
		p.Add("/args"+pointer, envelope.RuleEnum, "must be a flag that triage may set: %s", strings.Join(Flags().words, ", "))
	case pointer != "/text":
		if _, err := line(value); err != nil {
			p.Add("/args"+pointer, "line", "%s", err)
		}
	}
}

// fixed reports whether a place names the account or the message, with its states.
func fixed(pointer string) bool {
	for _, place := range []string{"/account", "/message", "/expected", "/in_reply_to", "/references", "/before", "/after", "/key"} {
		if pointer == place || strings.HasPrefix(pointer, place+"/") {
			return true
		}
	}
	return false
}

// textsOf returns the texts of arguments by their pointers. Triage proposes nothing
// but texts; other values of others are their JSON.
func textsOf(args json.RawMessage, own bool) (map[string]string, error) {
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
			if own {
				p.Add("/args"+pointer, envelope.RuleType, "must be a text")
			}
			found[pointer] = fmt.Sprint(v)
		}
	}
	walk("", root)
	return found, p.Err()
}
