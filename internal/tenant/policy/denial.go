package policy

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// Denying are the steps of a trace that said deny. A trace that cannot be read
// has none.
func Denying(trace json.RawMessage) []Step {
	var steps, found []Step
	if json.Unmarshal(trace, &steps) != nil {
		return nil
	}
	for _, s := range steps {
		if s.Said == envelope.ModeDeny {
			found = append(found, s)
		}
	}
	return found
}

// Denial says in one line, to whoever was denied, what decided: the source of
// the decision, and each step that said deny with the rule's reason. It names
// no identifier that only the code knows.
func Denial(source string, denying []Step) string {
	var b strings.Builder
	b.WriteString(source)
	for _, s := range denying {
		b.WriteString("; layer " + s.Layer)
		if s.Rule != "" {
			b.WriteString(" (rule " + s.Rule + ")")
		}
		b.WriteString(" says deny")
		if why := cmp.Or(s.Detail, s.Key); why != "" {
			b.WriteString(": " + why)
		}
	}
	return strings.ReplaceAll(b.String(), LayerInferred, "default by risk")
}
