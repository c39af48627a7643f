package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestMistakesHavePlaces(t *testing.T) {
	t.Parallel()
	l := language(t)
	shape := policy.Shape{Closed: true, Names: []string{"to"}}
	for text, want := range map[string]string{
		"args.ammount > 1":                        "1:5+8",
		"true &&\n\tfoo > 2":                      "2:2+3",
		"true &&\r\n  foo > 2":                    "2:3+3",
		`args.to == "żółć 🙂" && foo`:              "1:24+3",
		`args.to == "e` + "\u0301" + `" && foo`:   "1:20+3",
		"args.to ==":                              "1:11+0",
		"args.to == 'x' ! 'y'":                    "1:16+1",
		"args.to\u200b == 1":                      "1:8+1",
		"true &&\n'🙂\u202e' == args.to":           "2:3+1",
		`args.to.matches("(")`:                    "1:16+1",
		"1 + 1":                                   "0:0+0",
		"":                                        "0:0+0",
		strings.Repeat("ą", 4096):                 "0:0+0",
		"a + b + c + d":                           "1:1+1 1:5+1 1:9+1",
		strings.Repeat("(", 4096):                 "",
		strings.Repeat("!", 4095) + "x":           "",
		strings.Repeat("args.to == '' || ", 240):  "",
		"args.to.exists(a, a.exists(b, b.all(c,1": "",
	} {
		e, found := l.Check(text, shape)
		var places []string
		for _, m := range found {
			places = append(places, fmt.Sprintf("%d:%d+%d", m.Line, m.Column, m.Length))
			if m.Message == "" {
				t.Errorf("Check(%.40q) has a mistake without a message", text)
			}
		}
		if got := strings.Join(places, " "); e != nil || got == "" || want != "" && got != want {
			t.Errorf("Check(%.40q) = %v at %s, want %s; %+v", text, e, got, want, found)
		}
	}
}

// TestArgumentNamesAreExpressions compiles every name.
func TestArgumentNamesAreExpressions(t *testing.T) {
	t.Parallel()
	l := language(t)
	schema := `{"type":"object","additionalProperties":false,"properties":{"to":{"type":"array","items":{"type":"string"}},"n":{"type":["integer","null"]},
		"any":true,"in":{},"a b":{"type":"string"},"\u202e\"]":{"type":"string"},"żółw":{"type":"number"},
		"at":{"type":"object","properties":{"city":{"type":"string"},"to":{"type":"object","properties":{"x":{"type":"object","properties":{"deep":{}}}}}}}}}`

	got := policy.ArgumentNames(json.RawMessage(schema))

	want := []policy.Name{
		{Name: `args["a b"]`, Type: "string"}, {Name: "args.any", Type: "any"}, {Name: "args.at", Type: "object"}, {Name: "args.at.city", Type: "string"},
		{Name: "args.at.to", Type: "object"}, {Name: "args.at.to.x", Type: "object"}, {Name: "args.at.to.x.deep", Type: "any"}, {Name: `args["in"]`, Type: "any"},
		{Name: "args.n", Type: "integer or null"}, {Name: "args.to", Type: "array of string"}, {Name: `args["\u017c\u00f3\u0142w"]`, Type: "number"},
		{Name: `args["\u202e\"]"]`, Type: "string"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ArgumentNames (-want +got):\n%s", diff)
	}
	for _, name := range append(policy.Names(), got...) {
		if _, err := l.Compile(name.Name+" == "+name.Name, policy.ShapeOf(json.RawMessage(schema))); err != nil {
			t.Errorf("%s is no expression: %v", name.Name, err)
		}
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `"p%d":{},`, i)
	}
	if n := len(policy.ArgumentNames(json.RawMessage(`{"properties":{` + many.String() + `"z":{}}}`))); n != 200 {
		t.Errorf("%d names, want 200", n)
	}
	if found := policy.ArgumentNames(json.RawMessage(`{"properties":[]}`)); found != nil {
		t.Errorf("names of no schema = %v", found)
	}
}
