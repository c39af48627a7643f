package source

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// Outputs returns the machine-readable part of a stored result: the structured
// content of an answer in MCP's form; without one, its only part if that is a
// text with a JSON object or list by the rules of all bodies (unique names,
// bounded depth); else the result itself. A text that contains a bare number or
// word stays a text, so that the type does not vary between "42" and "n/a".
// Numbers keep their digits. Outputs returns nil if nothing is stored.
//
// Display of a result by its outputs and references into it both use this
// function, so that they agree.
func Outputs(result json.RawMessage) json.RawMessage {
	result = bytes.TrimSpace(result)
	if len(result) == 0 || string(result) == "null" {
		return nil
	}
	var wire struct {
		Structured json.RawMessage `json:"structured"`
		Content    []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(result, &wire) != nil || wire.Content == nil {
		return result
	}
	if len(wire.Structured) > 0 && string(wire.Structured) != "null" {
		return wire.Structured
	}
	if len(wire.Content) == 1 && wire.Content[0].Type == "text" {
		text := strings.TrimSpace(wire.Content[0].Text)
		if text != "" && (text[0] == '{' || text[0] == '[') && envelope.CheckJSON([]byte(text), math.MaxInt) == nil {
			return json.RawMessage(text)
		}
	}
	return result
}
