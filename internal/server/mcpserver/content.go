package mcpserver

import (
	"bytes"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// stored is the stored part of a tool's answer: redacted, and truncated if it
// was large. A source of kind mcp stores content and structured; others any
// JSON.
type stored struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structured"`
	Truncated  bool              `json:"_truncated"`
}

// toolResult returns a stored answer as the result of a call, with its parts as
// the tool sent them. ok is false if nothing is stored.
func toolResult(output json.RawMessage) (*sdk.CallToolResult, bool) {
	output = bytes.TrimSpace(output)
	if len(output) == 0 || string(output) == "null" {
		return nil, false
	}
	var s stored
	if json.Unmarshal(output, &s) != nil || s.Content == nil {
		return plainResult(output), true
	}
	res := &sdk.CallToolResult{Content: make([]sdk.Content, len(s.Content))}
	for i, part := range s.Content {
		res.Content[i] = contentOf(part)
	}
	if isObject(s.Structured) {
		res.StructuredContent = s.Structured
	}
	return res, true
}

// plainResult returns an answer that is not in MCP's form.
func plainResult(output json.RawMessage) *sdk.CallToolResult {
	res := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(output)}}}
	if isObject(output) {
		res.StructuredContent = output
	}
	return res
}

// contentOf decodes a part of a tool's answer. A part that was truncated until
// it is no content any more becomes text.
func contentOf(part json.RawMessage) sdk.Content {
	var one sdk.CallToolResult
	wrapped, err := json.Marshal(struct {
		Content []json.RawMessage `json:"content"`
	}{[]json.RawMessage{part}})
	if err == nil && isObject(part) && json.Unmarshal(wrapped, &one) == nil && len(one.Content) == 1 && one.Content[0] != nil {
		return one.Content[0]
	}
	return &sdk.TextContent{Text: string(part)}
}

// truncated reports whether the tool answered more than is stored.
func truncated(output json.RawMessage) bool {
	var s stored
	return json.Unmarshal(output, &s) == nil && s.Truncated
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}
