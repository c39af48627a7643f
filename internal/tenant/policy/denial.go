package policy

import (
	"encoding/json"

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
