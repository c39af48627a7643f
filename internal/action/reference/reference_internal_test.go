package reference

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/redact"
)

// The result is JSON, for any text and any answer.
func FuzzFill(f *testing.F) {
	for _, text := range []string{"$0.id", `$1["a.b"][3]`, "$$", "$0[", "$steps.0/id/1", `$0["\u0000"]`} {
		f.Add(text, `{"id":[1,{"a.b":"x"}]}`)
	}
	f.Fuzz(func(t *testing.T, text, answered string) {
		inputs, err := json.Marshal(map[string]string{"a": text})
		if err != nil {
			t.Fatal(err)
		}
		filled, err := Fill(jsonref.Scope{Roots: []jsonref.Root{jsonref.Steps}, LooseText: true}, inputs, func(jsonref.Ref) Value { return Answered(json.RawMessage(answered)) })
		if err == nil && (!json.Valid(filled) || filled[0] != '{') {
			t.Errorf("filled in it is %s", filled)
		}
	})
}

// The marks are those that redact.JSONTruncated writes.
func TestTheMarksAreThoseOfTheStore(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 4000) + `"`
	keys := ""
	for i := range 30 {
		keys += fmt.Sprintf(`"k%02d%s":1,`, i, strings.Repeat("y", 90))
	}
	for name, raw := range map[string]string{
		"a text":            long,
		"an object":         `{"a":` + long + `,"b":` + long + `}`,
		"an array":          `[` + strings.Repeat(long+",", 20) + `1]`,
		"something in deep": `{"a":{"b":[` + long + `]}}`,
		"many keys":         `{"a":{` + keys + `"z":1}}`,
		"a name twice":      `{"a":` + long + `,"a":1}`,
		"deep":              strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
	} {
		stored := redact.JSONTruncated(json.RawMessage(raw), 1000)
		doc, err := jsonref.Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		if !isTruncated(stored) || !holdsTruncation(doc) {
			t.Errorf("%s: it is not seen that %s was cut", name, stored)
		}
	}
	stored := redact.JSONTruncated(json.RawMessage(`{"token":"abc","text":"Bearer abcdefghijkl0123"}`), 1000)
	doc, err := jsonref.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range doc.(map[string]any) {
		if !holdsRedaction(value) {
			t.Errorf("%s: it is not seen that %v was redacted", name, value)
		}
	}
}
