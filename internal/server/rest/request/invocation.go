package request

import (
	"bytes"
	"encoding/json"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Invocation is the part of an envelope that calls over REST and MCP share.
type Invocation struct {
	Type       string          `json:"type"`
	ExternalID string          `json:"external_id,omitempty"`
	Tool       envelope.Tool   `json:"tool"`
	Args       json.RawMessage `json:"args"`
}

// ParseCall writes a call, which has an Invocation, as an envelope, and parses it
// as any other.
func ParseCall(call any) (*envelope.Proposal, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(call); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "the call cannot be written as an envelope")
	}
	return envelope.Parse(text.Bytes())
}
