package catalog

import (
	"encoding/json"

	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// SnapshotRule is a read that shows how things stand, made right before and right
// after every call of a tool.
type SnapshotRule struct {
	// Tool is the read's name at the tool's own source.
	Tool string `json:"tool"`
	// Args is the template of its arguments, in the language of verifying
	// reads; empty stands for {}.
	Args json.RawMessage `json:"args,omitempty"`
	// Required says that a call is not made unless the read before it worked.
	Required bool `json:"required,omitzero"`
}

// SnapshotRule returns the read that belongs to a tool. Few tools have one.
func (c *Catalog) SnapshotRule(key policy.Key) (SnapshotRule, bool) {
	read, ok := c.snapshotRules[key]
	return read, ok
}
