package mcpserver

import (
	"bytes"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// stored is what is kept of a tool's answer: redacted, and cut if it was
// large. A source of kind mcp leaves content and structured; others any JSON.
type stored struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structured"`
	Truncated  bool              `json:"_truncated"`
}

// toolResult is what is kept of a tool's answer as the result of a call, its
// parts as they came. It reports false if nothing is kept.
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

// plainResult is an answer in no form of MCP.
func plainResult(output json.RawMessage) *sdk.CallToolResult {
	res := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(output)}}}
	if isObject(output) {
		res.StructuredContent = output
	}
	return res
}

// contentOf reads a part of a tool's answer. One that was cut until it is no
// content any more is shown as the text that is left.
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

// truncated says that more was answered than is kept.
func truncated(output json.RawMessage) bool {
	var s stored
	return json.Unmarshal(output, &s) == nil && s.Truncated
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}
