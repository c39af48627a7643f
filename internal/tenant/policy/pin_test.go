package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestPins(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pins, args string
		want       bool
	}{
		{`{}`, `{"anything":1}`, true},
		{`{"/to":"a"}`, `{"to":"a","cc":"b"}`, true},
		{`{"/to":"a"}`, `{"to":"A"}`, false},
		{`{"/to":"a"}`, `{"to":["a"]}`, false},
		{`{"/to":"a"}`, `{}`, false},
		{`{"/to":"a"}`, ``, false},
		{`{"/to":null}`, `{"to":null}`, true},
		{`{"/to":null}`, `{}`, false},
		{`{"/n":1}`, `{"n":1.0}`, true},
		{`{"/n":1.0}`, `{"n":10e-1}`, true},
		{`{"/n":1}`, `{"n":"1"}`, false},
		{`{"/n":12345678901234567890}`, `{"n":12345678901234567891}`, false},
		{`{"/n":12345678901234567890}`, `{"n":12345678901234567890}`, true},
		{`{"/s":"é"}`, `{"s":"\u00e9"}`, true},
		{`{"/s":"é"}`, `{"s":"e\u0301"}`, false},
		{`{"/o":{"a":1,"b":2}}`, `{"o":{"b":2.0,"a":1}}`, true},
		{`{"/o":{"a":1}}`, `{"o":{"a":1,"b":2}}`, false},
		{`{"/l/1":"b"}`, `{"l":["a","b"]}`, true},
		{`{"/l/01":"b"}`, `{"l":["a","b"]}`, false},
		{`{"/l/-":"b"}`, `{"l":["a","b"]}`, false},
		{`{"/l/2":"b"}`, `{"l":["a","b"]}`, false},
		{`{"/a~1b/~0":1}`, `{"a/b":{"~":1}}`, true},
		{`{"/":1}`, `{"":1}`, true},
		{`{"":{"to":"a"}}`, `{"to":"a"}`, true},
		{`{"":{"to":"a"}}`, `{"to":"a","cc":"b"}`, false},
		{`{"/to":"a","/n":2}`, `{"to":"a","n":3}`, false},
		{`{"/to":"a"}`, `{"to":"b","to":"a"}`, false},
		{`{"/to/x":"a"}`, `{"to":"a"}`, false},
	} {
		var values map[string]json.RawMessage
		if err := json.Unmarshal([]byte(tt.pins), &values); err != nil {
			t.Fatal(err)
		}
		pins, err := policy.ParsePins(values)
		if err != nil {
			t.Errorf("ParsePins(%s) = %v", tt.pins, err)
			continue
		}
		if got := pins.Hold(json.RawMessage(tt.args)); got != tt.want {
			t.Errorf("Hold(%s) of %s = %t, want %t", tt.pins, tt.args, got, tt.want)
		}
	}
}

func TestPinsThatAreRefused(t *testing.T) {
	t.Parallel()
	many := make(map[string]json.RawMessage)
	for i := range policy.MaxPins + 1 {
		many["/"+strings.Repeat("a", i)] = json.RawMessage("1")
	}
	for name, values := range map[string]map[string]json.RawMessage{
		"no pointer":  {"to": json.RawMessage("1")},
		"bad escape":  {"/a~2": json.RawMessage("1")},
		"cut escape":  {"/a~": json.RawMessage("1")},
		"no value":    {"/a": json.RawMessage("")},
		"no JSON":     {"/a": json.RawMessage("{")},
		"a key twice": {"/a": json.RawMessage(`{"b":1,"b":2}`)},
		"too many":    many,
		"too large":   {"/a": json.RawMessage(`"` + strings.Repeat("x", policy.MaxPinBytes) + `"`)},
	} {
		if _, err := policy.ParsePins(values); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: ParsePins = %v, want fault.Invalid", name, err)
		}
	}
}

func TestPinsOf(t *testing.T) {
	t.Parallel()
	args := json.RawMessage(`{"to": ["a", "b"], "n": 1.0}`)

	got, err := policy.PinsOf(args, "/to/1", "/n", "")

	want := map[string]json.RawMessage{"/to/1": json.RawMessage(`"b"`), "/n": json.RawMessage("1"), "": json.RawMessage(`{"n":1,"to":["a","b"]}`)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("PinsOf = %v (-want +got):\n%s", err, diff)
	}
	for _, pointer := range []string{"/cc", "to", "/to/2", "/n/0"} {
		if _, err := policy.PinsOf(args, pointer); !errors.Is(err, fault.Invalid) {
			t.Errorf("PinsOf(%s) = %v, want fault.Invalid", pointer, err)
		}
	}
}
