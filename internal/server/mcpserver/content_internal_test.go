package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/redact"
)

func TestToolResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stored, want string }{
		"content and structure": {
			`{"content":[{"type":"text","text":"a"}],"structured":{"n":12345678901234567890}}`,
			`{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":12345678901234567890}}`,
		},
		"a link and a resource": {
			`{"content":[{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"resource","resource":{"uri":"file:///a","text":"x"}}]}`,
			`{"content":[{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"resource","resource":{"uri":"file:///a","text":"x"}}]}`,
		},
		"a text that is noted": {
			`{"content":[{"type":"text","text":"a","annotations":{"priority":1}},{"type":"text","text":null},{"type":"text","TEXT":"b"}]}`,
			`{"content":[{"type":"text","text":"a","annotations":{"priority":1}},{"type":"text","text":""},{"type":"text","text":""}]}`,
		},
		"no content":           {`{"content":[]}`, `{"content":[]}`},
		"content of no kind":   {`{"content":[{"type":"smell","of":"roses"}]}`, `{"content":[{"type":"text","text":"{\"type\":\"smell\",\"of\":\"roses\"}"}]}`},
		"an image that is cut": {`{"content":[{"type":"image","data":"aGVs… (12 bytes)","mimeType":"image/png"}]}`, `{"content":[{"type":"text","text":"{\"type\":\"image\",\"data\":\"aGVs… (12 bytes)\",\"mimeType\":\"image/png\"}"}]}`},
		"marks of a cut":       {`{"content":[{"type":"text","text":"a"},{"_omitted_items":3}]}`, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"{\"_omitted_items\":3}"}]}`},
		"no form of MCP":       {`{"ok":true}`, `{"content":[{"type":"text","text":"{\"ok\":true}"}],"structuredContent":{"ok":true}}`},
		"a list":               {`[1,2]`, `{"content":[{"type":"text","text":"[1,2]"}]}`},
		"content of its own":   {`{"content":"a string"}`, `{"content":[{"type":"text","text":"{\"content\":\"a string\"}"}],"structuredContent":{"content":"a string"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			res, ok := toolResult(json.RawMessage(c.stored))

			if !ok {
				t.Fatal("toolResult() finds nothing")
			}
			got, err := json.Marshal(res)
			if err != nil || string(got) != c.want {
				t.Errorf("toolResult(%s) = %s, %v, want %s", c.stored, got, err, c.want)
			}
		})
	}
}

func TestRPCErrorsAreReadable(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]string{
		`{"error":{"code":-32602,"message":"no such path"}}`:                    "The server answered with the error -32602: no such path.",
		`{"error":{"code":-32000,"message":"Down.","data":"since 9"}}`:          "The server answered with the error -32000: Down. It added: since 9",
		`{"error":{"code":7,"message":"","data":{"path":["a"]}}}`:               `The server answered with the error 7: it said no more. It added: {"path":["a"]}`,
		`{"error":{"code":-32000,"message":"x","data":null},"_truncated":true}`: "The server answered with the error -32000: x.",
		`{"error":"text"}`:                    "",
		`{"error":{"message":"of the tool"}}`: "",
		`{"content":[{"type":"text"}]}`:       "",
		`null`:                                "",
	} {
		if got, ok := rpcErrorText(json.RawMessage(stored)); got != want || ok != (want != "") {
			t.Errorf("rpcErrorText(%s) = %q, %v, want %q", stored, got, ok, want)
		}
	}
}

func TestToolResultOfNothing(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{"", "null", " "} {
		if _, ok := toolResult(json.RawMessage(stored)); ok {
			t.Errorf("toolResult(%q) finds something", stored)
		}
	}
}

func FuzzToolResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"}],"structured":{"n":1}}`), 300)
	f.Add([]byte(`{"content":[null,{"type":"audio","data":"!"},7]}`), 256)
	f.Add([]byte(`{"content":[{"type":"text","text":"`+strings.Repeat("a", 600)+`"}]}`), 256)
	f.Fuzz(func(t *testing.T, raw []byte, limit int) {
		if !json.Valid(raw) {
			return // only JSON is stored
		}
		res, ok := toolResult(redact.Truncate(raw, limit%4096))
		if !ok {
			return
		}
		if text, err := json.Marshal(res); err != nil || !json.Valid(text) {
			t.Errorf("toolResult(%s) is not written: %v", raw, err)
		}
	})
}
