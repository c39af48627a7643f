package workflow

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/redact"
)

func TestParseText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"$0.id":                       "ref $0.id",
		"$12[3].a[0]":                 "ref $12[3].a[0]",
		`$0["a.b"]["x"]`:              `ref $0["a.b"].x`,
		`$0[""]`:                      `ref $0[""]`,
		"$0.ä ö":                      "ref $0.ä ö",
		"$0.00":                       "ref $0.00",
		"plain":                       "text plain",
		"":                            "text ",
		"$":                           "text $",
		"$x.y":                        "text $x.y",
		"$0":                          "text $0",
		"$100":                        "text $100",
		"$5 each":                     "text $5 each",
		"$$0.id":                      "text $0.id",
		"$$$":                         "text $$",
		"a $0.id":                     "text a $0.id",
		"$0.":                         "none",
		"$0..a":                       "none",
		"$0.a.":                       "none",
		"$0.a]":                       "none",
		"$0[":                         "none",
		"$0[01]":                      "none",
		"$0[-1]":                      "none",
		"$0[a]":                       "none",
		`$0["a]`:                      "none",
		`$0["a"`:                      "none",
		`$0["a"]b`:                    "none",
		"$99999999999999999.a":        "ref $99999999999999999.a",
		"$999999999999999999999999.a": "none",
	} {
		ref, plain, err := parseText(text)
		got := "text " + plain
		if err != nil {
			got = "none"
		} else if ref != nil {
			got = "ref " + ref.String()
		}
		if got != want {
			t.Errorf("parseText(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestParseTemplate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"$.inputs":         "ref $.inputs",
		"$.inputs.to[0]":   "ref $.inputs.to[0]",
		`$.outputs["a.b"]`: `ref $.outputs["a.b"]`,
		"$$.inputs":        "text $.inputs",
		"$5":               "text $5",
		"plain":            "text plain",
		"$.input":          "none",
		"$.inputsx":        "none",
		"$.outputs..a":     "none",
		"$.":               "none",
	} {
		ref, plain, err := parseTemplate(text)
		got := "text " + plain
		if err != nil {
			got = "none"
		} else if ref != nil {
			got = "ref " + ref.String()
		}
		if got != want {
			t.Errorf("parseTemplate(%q) = %s, want %s", text, got, want)
		}
	}
}

// What is written reads back as the same reference, whatever a text holds; and
// what is filled in is JSON.
func FuzzReference(f *testing.F) {
	for _, text := range []string{"$0.id", `$1["a.b"][3]`, "$$", "$0[", "$.outputs.x[0]", `$0["\u0000"]`} {
		f.Add(text, `{"id":[1,{"a.b":"x"}]}`)
	}
	f.Fuzz(func(t *testing.T, text, answered string) {
		for _, parse := range []func(string) (*reference, string, error){parseText, parseTemplate} {
			ref, _, err := parse(text)
			if err != nil || ref == nil {
				continue
			}
			again, _, err := parse(ref.String())
			if err != nil || again == nil || again.String() != ref.String() || len(again.path) != len(ref.path) {
				t.Fatalf("%q is %s, which reads back as %v, %v", text, ref, again, err)
			}
		}
		inputs, err := json.Marshal(map[string]string{"a": text})
		if err != nil {
			t.Fatal(err)
		}
		filled, err := fillInputs(inputs, func(int) answer { return read(json.RawMessage(answered)) })
		if err == nil && (!json.Valid(filled) || filled[0] != '{') {
			t.Errorf("filled in it is %s", filled)
		}
	})
}

// The marks that are looked for are those that the store leaves.
func TestTheMarksAreThoseOfTheStore(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 4000) + `"`
	for name, raw := range map[string]string{
		"a text":            long,
		"an object":         `{"a":` + long + `,"b":` + long + `}`,
		"an array":          `[` + strings.Repeat(long+",", 20) + `1]`,
		"something in deep": `{"a":{"b":[` + long + `]}}`,
		"many keys":         `{"a":{` + strings.Repeat(`"k`+strings.Repeat("y", 90)+`":1,`, 30) + `"z":1}}`,
	} {
		stored := redact.JSONTruncated(json.RawMessage(raw), 1000)
		doc, err := decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		if !wasCut(stored) || !marked(doc) {
			t.Errorf("%s: it is not seen that %s was cut", name, stored)
		}
	}
	stored := redact.JSONTruncated(json.RawMessage(`{"token":"abc","text":"Bearer abcdefghijkl0123"}`), 1000)
	doc, err := decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range doc.(map[string]any) {
		if !hidden(value) {
			t.Errorf("%s: it is not seen that %v was redacted", name, value)
		}
	}
}
