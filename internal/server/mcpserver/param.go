package mcpserver

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// paramHeader begins the headers that repeat arguments of a call, as its tool's
// schema requires, so that proxies can route by them.
const paramHeader = "Mcp-Param-"

// callMethod is the method of a call of a tool.
const callMethod = "tools/call"

// message is as much of a call as is read before the SDK's server reads it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Params struct {
		Name      string                     `json:"name"`
		Arguments map[string]json.RawMessage `json:"arguments"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
}

// asksProgress reports whether the client of a call wants to be notified of its progress.
func (m *message) asksProgress() bool { return m.Params.Meta.ProgressToken != nil }

// parseCall returns the call of a request of a version without sessions; nil for any
// other request. Messages other than JSON-RPC are rejected later.
func parseCall(r *http.Request, body []byte) *message {
	if r.Header.Get(sessionHeader) != "" || r.Header.Get(versionHeader) < firstStateless || r.Header.Get(methodHeader) != callMethod {
		return nil
	}
	var m message
	if json.Unmarshal(body, &m) != nil {
		return nil
	}
	return &m
}

// checkParams compares the headers that repeat arguments with the arguments,
// and rejects a request in which they differ; ok is false then. The protocol
// requires it from 2026-07-28 on. The SDK's server checks the other headers,
// and has no access to the catalog.
func (ts *tokenServer) checkParams(w http.ResponseWriter, r *http.Request, m *message) (ok bool) {
	if isBuiltin(m.Params.Name) {
		return true
	}
	wrong := ""
	if known := ts.Catalog.Known(ts.by.Tenant); known != nil {
		if wrong = mismatch(known, ts.by.Tools, r.Header, m); wrong == "" {
			return true
		}
	}
	// Nothing is known yet, or the tool has perhaps changed since.
	snap, _, err := ts.settings(r.Context())
	if err != nil {
		request.WriteProblem(ts.Log, w, r, err)
		return false
	}
	if wrong = mismatch(snap, ts.by.Tools, r.Header, m); wrong == "" {
		return true
	}
	answer, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": json.RawMessage(cmp.Or(string(m.ID), "null")), "error": map[string]any{"code": sdk.CodeHeaderMismatch, "message": wrong},
	})
	if err != nil {
		request.WriteProblem(ts.Log, w, r, err)
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(answer) // the client has left if this fails
	return false
}

// mismatch returns the header that differs from its argument; empty if all
// do. It repeats no value.
func mismatch(snap *settings.Settings, within []string, header http.Header, m *message) string {
	tool, ok := findTool(snap, m.Params.Name, within)
	if !ok || !bytes.Contains(tool.InputSchema, []byte("x-mcp-header")) {
		return ""
	}
	var schema paramSchema
	if json.Unmarshal(tool.InputSchema, &schema) != nil {
		return ""
	}
	return schema.mismatch(header, m.Params.Arguments)
}

// paramSchema is the part of a schema that lists the arguments which headers repeat.
type paramSchema struct {
	Header     json.RawMessage        `json:"x-mcp-header"`
	Properties map[string]paramSchema `json:"properties"`
}

func (s paramSchema) mismatch(header http.Header, args map[string]json.RawMessage) string {
	for name, property := range s.Properties {
		var key string
		if json.Unmarshal(property.Header, &key) == nil && key != "" {
			want, given := headerText(args[name])
			values := header.Values(paramHeader + key)
			switch {
			case !given && len(values) > 0:
				return fmt.Sprintf("the header %s%s repeats a missing argument", paramHeader, key)
			case given && len(values) == 0:
				return fmt.Sprintf("the header %s%s is missing", paramHeader, key)
			case given && (len(values) > 1 || !sameParam(values[0], want, args[name])):
				return fmt.Sprintf("the header %s%s differs from the argument that it repeats", paramHeader, key)
			}
		}
		var inner map[string]json.RawMessage
		if len(property.Properties) > 0 && (args[name] == nil || json.Unmarshal(args[name], &inner) == nil) {
			if wrong := property.mismatch(header, inner); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// maxParam is the largest whole number that a header can repeat.
const maxParam = 1<<53 - 1

// headerText returns the text of an argument in a header. given is false where
// there is no such argument, or none that a header can repeat.
func headerText(arg json.RawMessage) (text string, given bool) {
	var value any
	if json.Unmarshal(arg, &value) != nil {
		return "", false
	}
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), v == math.Trunc(v) && math.Abs(v) <= maxParam
	}
	return "", false
}

// sameParam reports whether a header's value equals the text of an argument.
// Numbers are compared by value.
func sameParam(value, want string, arg json.RawMessage) bool {
	if encoded, ok := strings.CutPrefix(value, "=?base64?"); ok {
		if encoded, ok = strings.CutSuffix(encoded, "?="); ok {
			plain, err := base64.StdEncoding.DecodeString(encoded)
			return err == nil && string(plain) == want
		}
	}
	if arg = bytes.TrimSpace(arg); len(arg) > 0 && (arg[0] == '-' || '0' <= arg[0] && arg[0] <= '9') {
		got, err := strconv.ParseFloat(value, 64)
		number, wrong := strconv.ParseFloat(want, 64)
		return err == nil && wrong == nil && got == number
	}
	return value == want
}
