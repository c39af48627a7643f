package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]answer{
		`{"content":[{"type":"text","text":"x"}]}`:                        {result: json.RawMessage(`{"content":[{"type":"text","text":"x"}]}`)},
		`{"content":[{"type":"of the future","x":1}]}`:                    {result: json.RawMessage(`{"content":[{"type":"of the future","x":1}]}`)},
		`{"structuredContent":{"id":"a"},"_meta":{}}`:                     {result: json.RawMessage(`{"content":[],"structured":{"id":"a"}}`), providerID: "a"},
		`{"content":[],"structuredContent":{"id":7}}`:                     {result: json.RawMessage(`{"content":[],"structured":{"id":7}}`)},
		`{"content":[],"structuredContent":[1]}`:                          {result: json.RawMessage(`{"content":[],"structured":[1]}`)},
		`{"content":[],"isError":true}`:                                   {result: json.RawMessage(`{"content":[]}`), isError: true},
		`{"isError":true,"_meta":{"countersign.dev/outcome":"conflict"}}`: {result: json.RawMessage(`{"content":[]}`), isError: true, outcome: "conflict"},
		`{"_meta":{"countersign.dev/outcome":7}}`:                         {result: json.RawMessage(`{"content":[]}`)},
		`{"isError":true,"_meta":{"countersign.dev/outcome":"rate_limited","countersign.dev/retry-after":1e30}}`: {
			result: json.RawMessage(`{"content":[]}`), isError: true, outcome: "rate_limited", retryAfter: source.MaxRetryAfter,
		},
		`{"_meta":7}`: {result: json.RawMessage(`{"content":[]}`)},
		`{"resultType":"input_required","inputRequests":{}}`: {result: json.RawMessage(`{"content":[]}`), inputRequired: true},
		`{}`: {result: json.RawMessage(`{"content":[]}`)},
	} {
		got, err := parse(json.RawMessage(in))

		if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); err != nil || diff != "" {
			t.Errorf("parse(%s) = %v (-want +got):\n%s", in, err, diff)
		}
	}
	for _, in := range []string{``, `null`, `7`, `[]`, `"x"`, `{"content":7}`, `{"content":[7]}`, `{"content":[],"isError":"yes"}`} {
		if got, err := parse(json.RawMessage(in)); err == nil {
			t.Errorf("parse(%s) = %+v, want an error", in, got)
		}
	}
}

func TestProviderIDIsBounded(t *testing.T) {
	t.Parallel()

	if got := providerID(json.RawMessage(`{"id":"` + strings.Repeat("x", maxProviderID+1) + `"}`)); got != "" {
		t.Errorf("providerID() has %d bytes, want none", len(got))
	}
}

func TestErrorResult(t *testing.T) {
	t.Parallel()
	e := &jsonrpc.Error{Code: -32603, Message: "boom", Data: json.RawMessage(`{"a":1}`)}

	if got, want := string(errorResult(e, 100)), `{"error":{"code":-32603,"message":"boom","data":{"a":1}}}`; got != want {
		t.Errorf("errorResult() = %s, want %s", got, want)
	}
	if got, want := string(errorResult(e, 5)), `{"error":{"code":-32603,"message":""}}`; got != want {
		t.Errorf("errorResult() beyond its limit = %s, want %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"x"}],"structuredContent":{"id":"a"},"isError":true}`))
	f.Add([]byte(`{"content":[null]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		a, err := parse(in)
		if err == nil && !json.Valid(a.result) {
			t.Errorf("parse(%s) = %s, which is not JSON", in, a.result)
		}
	})
}
