package command

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestAssign(t *testing.T) {
	t.Parallel()
	const args = `{"to":"ana","n":12345678901234567890,"list":[{"a":1},2],"deep":{"x":true}}`
	for set, want := range map[string]string{
		"to=bo":            `{"deep":{"x":true},"list":[{"a":1},2],"n":12345678901234567890,"to":"bo"}`,
		"to=":              `{"deep":{"x":true},"list":[{"a":1},2],"n":12345678901234567890,"to":""}`,
		"to=a=b":           `{"deep":{"x":true},"list":[{"a":1},2],"n":12345678901234567890,"to":"a=b"}`,
		`to="1"`:           `{"deep":{"x":true},"list":[{"a":1},2],"n":12345678901234567890,"to":"1"}`,
		"n=1.50":           `{"deep":{"x":true},"list":[{"a":1},2],"n":1.50,"to":"ana"}`,
		"list.0.a=null":    `{"deep":{"x":true},"list":[{"a":null},2],"n":12345678901234567890,"to":"ana"}`,
		"list=[]":          `{"deep":{"x":true},"list":[],"n":12345678901234567890,"to":"ana"}`,
		"deep.y.z=1":       `{"deep":{"x":true,"y":{"z":1}},"list":[{"a":1},2],"n":12345678901234567890,"to":"ana"}`,
		`deep={"a":"b c"}`: `{"deep":{"a":"b c"},"list":[{"a":1},2],"n":12345678901234567890,"to":"ana"}`,
	} {
		got, err := Assign(json.RawMessage(args), nil, set)
		if err != nil || string(got) != want {
			t.Errorf("assign(%q) = %s, %v, want %s", set, got, err, want)
		}
	}
	for _, set := range []string{"", "to", "=x", "to.x=1", "list.2=1", "list.-1=1", "list.a=1"} {
		if got, err := Assign(json.RawMessage(args), nil, set); !isMisuse(err) {
			t.Errorf("assign(%q) = %s, %v, want a misuse", set, got, err)
		}
	}
}

func TestAssignFollowsTheSchema(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"properties":{"id":{"type":"string"},"n":{"type":"integer"},"maybe":{"type":["string","null"]},
		"either":{"type":["string","integer"]},"to":{"items":{"type":"string"}},"deep":{"properties":{"id":{"type":"string"}}}}}`)
	args := json.RawMessage(`{"to":["a"],"old":"x"}`)
	for set, want := range map[string]string{
		"id=9": `"id":"9"`, `id="9"`: `"id":"9"`, "id=true": `"id":"true"`, "n=9": `"n":9`, "maybe=9": `"maybe":"9"`, "either=9": `"either":9`,
		"to.0=9": `"to":["9"]`, "deep.id=9": `"deep":{"id":"9"}`, "old=9": `"old":"9"`, "other=9": `"other":9`,
	} {
		got, err := Assign(args, schema, set)
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("Assign(%q) = %s, %v, want %s in it", set, got, err, want)
		}
	}
}

func FuzzAssign(f *testing.F) {
	f.Add(`{"a":[1]}`, "a.0=2")
	f.Add(`{}`, "a.b.c=x")
	f.Fuzz(func(t *testing.T, args, set string) {
		got, err := Assign(json.RawMessage(args), nil, set)
		if err == nil && !json.Valid(got) {
			t.Errorf("assign(%q, %q) = %s, which is no JSON", args, set, got)
		}
	})
}

func isMisuse(err error) bool {
	_, ok := errors.AsType[*UsageError](err)
	return ok
}
