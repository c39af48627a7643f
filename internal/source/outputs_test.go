package source_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-dev/countersign/internal/source"
)

func TestOutputs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ result, want string }{
		"nothing":                   {``, ``},
		"null":                      {` null `, ``},
		"the structured part":       {`{"content":[{"type":"text","text":"{\"n\":2}"}],"structured":{"n":1}}`, `{"n":1}`},
		"a structured list":         {`{"content":[],"structured":[1,2]}`, `[1,2]`},
		"digits stay":               {`{"content":[],"structured":{"n":12345678901234567890,"f":1.50}}`, `{"n":12345678901234567890,"f":1.50}`},
		"an object as text":         {`{"content":[{"type":"text","text":" {\"n\":12345678901234567890}\n"}]}`, `{"n":12345678901234567890}`},
		"a list as text":            {`{"content":[{"type":"text","text":"[1]"}],"structured":null}`, `[1]`},
		"prose":                     {`{"content":[{"type":"text","text":"done"}]}`, `{"content":[{"type":"text","text":"done"}]}`},
		"a number as text":          {`{"content":[{"type":"text","text":"42"}]}`, `{"content":[{"type":"text","text":"42"}]}`},
		"a name twice as text":      {`{"content":[{"type":"text","text":"{\"ok\":false,\"ok\":true}"}]}`, `{"content":[{"type":"text","text":"{\"ok\":false,\"ok\":true}"}]}`},
		"half of an object":         {`{"content":[{"type":"text","text":"{\"n\":"}]}`, `{"content":[{"type":"text","text":"{\"n\":"}]}`},
		"two texts":                 {`{"content":[{"type":"text","text":"{}"},{"type":"text","text":"{}"}]}`, `{"content":[{"type":"text","text":"{}"},{"type":"text","text":"{}"}]}`},
		"an image":                  {`{"content":[{"type":"image","data":"eA=="}]}`, `{"content":[{"type":"image","data":"eA=="}]}`},
		"no form of MCP":            {`{"ok":true}`, `{"ok":true}`},
		"structured of its own":     {`{"structured":1}`, `{"structured":1}`},
		"content of its own":        {`{"content":"a string","structured":1}`, `{"content":"a string","structured":1}`},
		"a list":                    {`[1,2]`, `[1,2]`},
		"a text":                    {`"done"`, `"done"`},
		"what is no JSON, as it is": {`done`, `done`},
	} {
		if got := source.Outputs(json.RawMessage(test.result)); string(got) != test.want {
			t.Errorf("Outputs of %s = %s, want %s", name, got, test.want)
		}
	}
}

// FuzzOutputs checks that the outputs of JSON are JSON or nil.
func FuzzOutputs(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"{\"n\":1}"}]}`))
	f.Add([]byte(`{"content":[],"structured":[1]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		if got := source.Outputs(raw); got != nil && !json.Valid(got) {
			t.Errorf("Outputs(%q) = %q", raw, got)
		}
	})
}
