package source

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// Outputs is what a stored result says to a program: the structured part of an
// answer in MCP's form; without one, its only part if that is a text which is
// a JSON object or list by the rules of every body (no name twice in an object,
// bounded depth); else the result as it is. A text that holds a bare
// number or word stays a text inside the result, so that what reads "42" one
// day and "n/a" the next keeps its type. Numbers keep their digits. It is nil
// where nothing is stored.
//
// Whoever shows a result by its outputs and whoever refers into one go by this
// function, so that both see the same.
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
