package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/tag"
)

// TestDefaultArguments checks the kinds of default arguments, and that the arguments of a
// call are the same.
func TestDefaultArguments(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		`"Home"`: true, `12`: true, `-0.50`: true, `true`: true, `["a","b"]`: true, `[1,true,"x"]`: true, `{"a":{"b":[1,{"c":"д"}]}}`: true,
		`9007199254740993`: true, `1e400`: true,
		`null`: false, `[]`: false, `{}`: false, `{"a":null}`: false, `[[[[["deep"]]]]]`: false, `""`: false, `"two\nlines"`: false, `"\u0000"`: false,
		`{"a/b":1}`: false, `{"д":1}`: false, `{"0":1}`: false, `{"":1}`: false, `x`: false, ``: false,
		`[` + strings.Repeat("1,", maxDefaults) + `1]`: false, `"` + strings.Repeat("x", 2000) + `"`: false,
	} {
		fields, err := defaults("act", tag.Action{DefaultArgs: map[string]json.RawMessage{"arg": json.RawMessage(text)}})
		if (err == nil) != ok {
			t.Errorf("defaults(%.40s) = %v, want it to be accepted: %t", text, err, ok)
			continue
		}
		if !ok {
			continue
		}
		args, err := Args(RowsOf(fields))
		if want := `{"arg":` + text + `}`; err != nil || string(args) != want {
			t.Errorf("arguments of %s = %s, %v, want %s", text, args, err, want)
		}
	}
	for _, name := range []string{"", "a/b", "a~0", "ä", strings.Repeat("x", 101)} {
		if _, err := defaults("act", tag.Action{DefaultArgs: map[string]json.RawMessage{name: json.RawMessage("1")}}); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	for _, literal := range []string{"", "x", `"x"`, "null", "[1]", "{}", "1 2", "tru"} {
		if args, err := Args([]Row{{Pointer: "/a", Value: literal, Origin: Literal}}); err == nil {
			t.Errorf("the literal %q is accepted: %s", literal, args)
		}
	}
}
