package catalog

import (
	"encoding/json"

	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Shot is a read that shows how things stand, made right before and right
// after every call of a tool.
type Shot struct {
	// Tool is the read's name at the tool's own source.
	Tool string `json:"tool"`
	// Args is the template of its arguments, in the language of verifying
	// reads; empty stands for {}.
	Args json.RawMessage `json:"args,omitempty"`
	// Required says that a call is not made unless the read before it worked.
	Required bool `json:"required,omitzero"`
}

// Shot returns the read that belongs to a tool. Few tools have one.
func (s *Snapshot) Shot(key policy.Key) (Shot, bool) {
	shot, ok := s.shots[key]
	return shot, ok
}
