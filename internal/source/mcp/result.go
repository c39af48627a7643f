package mcp

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/countersign-dev/countersign/internal/source"
)

// maxProviderID bounds the id taken from a result.
const maxProviderID = 256

// answer is a tool's result, ready to be handed on.
type answer struct {
	result        json.RawMessage
	providerID    string
	isError       bool
	conflict      bool
	inputRequired bool
}

// errNoResult means that an answer has not the shape of a tool's result.
var errNoResult = errors.New("not the result of a tool call")

// parse reads the result of a tools/call as it came over the wire and keeps
// its parts as they are: content of any type, numbers of any size.
func parse(raw json.RawMessage) (answer, error) {
	var wire struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
		ResultType string            `json:"resultType"`
		Meta       json.RawMessage   `json:"_meta"`
	}
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || trimmed[0] != '{' {
		return answer{}, errNoResult
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return answer{}, errNoResult
	}
	for _, part := range wire.Content {
		if part = bytes.TrimSpace(part); part[0] != '{' {
			return answer{}, errNoResult
		}
	}
	if wire.Content == nil {
		wire.Content = []json.RawMessage{}
	}
	out, err := json.Marshal(struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structured,omitempty"`
	}{wire.Content, wire.Structured})
	if err != nil {
		return answer{}, errNoResult
	}
	return answer{
		result:        out,
		providerID:    providerID(wire.Structured),
		isError:       wire.IsError,
		conflict:      isConflict(wire.Meta),
		inputRequired: wire.ResultType == "input_required",
	}, nil
}

// isConflict reports whether a result's _meta says that the effect was there
// already.
func isConflict(meta json.RawMessage) bool {
	var m map[string]any
	return json.Unmarshal(meta, &m) == nil && m[MetaOutcome] == source.CodeConflict
}

// providerID returns the structured result's "id" if it is a string of
// sensible length.
func providerID(structured json.RawMessage) string {
	var named struct {
		ID any `json:"id"`
	}
	if err := json.Unmarshal(structured, &named); err != nil {
		return ""
	}
	id, _ := named.ID.(string)
	if len(id) > maxProviderID {
		return ""
	}
	return id
}

// errorResult keeps a JSON-RPC error in the place of a result, without its
// data if that is too large.
func errorResult(rpcError *jsonrpc.Error, limit int) json.RawMessage {
	type wire struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	w := wire{Code: rpcError.Code, Message: rpcError.Message, Data: rpcError.Data}
	if len(w.Message)+len(w.Data) > limit {
		w.Message, w.Data = "", nil
	}
	out, err := json.Marshal(map[string]wire{"error": w})
	if err != nil {
		return nil
	}
	return out
}
