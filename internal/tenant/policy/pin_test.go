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

// TestPinsFix checks which arguments a grant sets.
func TestPinsFix(t *testing.T) {
	t.Parallel()
	values := map[string]json.RawMessage{"/account": json.RawMessage(`"work"`), "/text": json.RawMessage(`""`), "/in/a": json.RawMessage(`1`)}
	for name, test := range map[string]struct {
		loose    []string
		pointers []string
		want     bool
	}{
		"nothing asked":            {want: true},
		"held":                     {pointers: []string{"/account", "/text"}, want: true},
		"held, others loose":       {loose: []string{"/to"}, pointers: []string{"/account", "/text", "/in/a"}, want: true},
		"held, all others loose":   {loose: []string{policy.Everything}, pointers: []string{"/account", "/text"}, want: true},
		"absent":                   {pointers: []string{"/account", "/subject"}},
		"absent, all others loose": {loose: []string{policy.Everything}, pointers: []string{"/subject"}},
		"loose":                    {loose: []string{"/text"}, pointers: []string{"/text"}},
		"inside of a loose one":    {loose: []string{"/in"}, pointers: []string{"/in/a"}},
		"no pointer":               {pointers: []string{"account"}},
	} {
		held, loose, err := policy.Only(values, test.loose...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		pins, err := policy.ParsePins(held, loose)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := pins.Fix(test.pointers...); got != test.want {
			t.Errorf("%s: Fix(%q) = %t, want %t", name, test.pointers, got, test.want)
		}
	}
}

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
		var loose []string
		if _, whole := values[policy.Everything]; !whole {
			loose = []string{policy.Everything}
		}
		pins, err := policy.ParsePins(values, loose)
		if err != nil {
			t.Errorf("ParsePins(%s) = %v", tt.pins, err)
			continue
		}
		if got := pins.Hold(json.RawMessage(tt.args)); got != tt.want {
			t.Errorf("Hold(%s) of %s = %t, want %t", tt.pins, tt.args, got, tt.want)
		}
	}
}

func TestInvalidPins(t *testing.T) {
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
		if _, err := policy.ParsePins(values, []string{policy.Everything}); !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: ParsePins = %v, want fault.Invalid", name, err)
		}
	}
}

// TestPinsAreStrictUnlessLoose checks that pins that leave arguments open need a
// loose pointer.
func TestPinsAreStrictUnlessLoose(t *testing.T) {
	t.Parallel()
	for _, values := range []map[string]json.RawMessage{nil, {"/to": json.RawMessage(`"a"`)}} {
		for _, loose := range [][]string{nil, {"/cc"}, {"", "/cc"}} {
			if _, err := policy.ParsePins(values, loose); !errors.Is(err, fault.Invalid) {
				t.Errorf("ParsePins(%s, %q) = %v, want fault.Invalid", values, loose, err)
			}
		}
	}
}

func TestExactly(t *testing.T) {
	t.Parallel()
	const args = `{"to": ["a", "b"], "n": 1.0, "o": {"x": 1, "y": {"z": null}}}`
	for _, tt := range []struct {
		loose     []string
		holds     []string
		holdsNot  []string
		emptyPins bool
	}{
		{nil, []string{args, `{"n":1,"o":{"y":{"z":null},"x":1.0},"to":["a","b"]}`},
			[]string{`{}`, ``, `null`, `[]`, `{"n":1}`, `{"to":["a","b"],"n":1,"o":{"x":1,"y":{"z":null}},"cc":"c"}`,
				`{"to":["a"],"n":1,"o":{"x":1,"y":{"z":null}}}`, `{"to":["a","b","c"],"n":1,"o":{"x":1,"y":{"z":null}}}`,
				`{"to":["a","b"],"n":1,"o":{"x":1,"y":{}}}`, `{"to":["a","b"],"n":1,"o":{"x":1,"y":{"z":null,"w":null}}}`}, false},
		{[]string{"/o/x"}, []string{args, `{"to":["a","b"],"n":1,"o":{"x":[9],"y":{"z":null}}}`, `{"to":["a","b"],"n":1,"o":{"y":{"z":null}}}`},
			[]string{`{"to":["a","b"],"n":1,"o":{"x":1,"w":1,"y":{"z":null}}}`, `{"to":["a","b"],"n":1,"o":[]}`, `{"to":["a","b"],"n":1}`}, false},
		{[]string{"/to", "/o"}, []string{args, `{"n":1}`, `{"n":1,"o":7,"to":{"0":"x"}}`}, []string{`{"n":2}`, `{"n":1,"cc":1}`, `{}`}, false},
		{[]string{"/to", "/o", "/n"}, []string{args, `{}`}, []string{`{"cc":1}`}, true},
		{[]string{""}, []string{args, `{}`, `{"cc":1}`}, nil, true},
	} {
		values, loose, err := policy.Exactly(json.RawMessage(args), tt.loose...)
		if err != nil {
			t.Fatalf("Exactly(%q) = %v", tt.loose, err)
		}
		pins, err := policy.ParsePins(values, loose)
		if err != nil || pins.Empty() != tt.emptyPins {
			t.Fatalf("ParsePins(%s, %q) is empty: %t, %v", values, loose, pins.Empty(), err)
		}
		for _, other := range tt.holds {
			if !pins.Hold(json.RawMessage(other)) {
				t.Errorf("loose %q: %s is not let through", tt.loose, other)
			}
		}
		for _, other := range tt.holdsNot {
			if pins.Hold(json.RawMessage(other)) {
				t.Errorf("loose %q: %s is let through", tt.loose, other)
			}
		}
	}
	for _, loose := range []string{"/cc", "to", "/to/0", "/to/2", "/n/0", "/o/y/w"} {
		if _, _, err := policy.Exactly(json.RawMessage(args), loose); !errors.Is(err, fault.Invalid) {
			t.Errorf("Exactly(%q) = %v, want fault.Invalid", loose, err)
		}
	}
}

func TestLooseBut(t *testing.T) {
	t.Parallel()
	args := json.RawMessage(`{"to": ["a", "b"], "n": 1, "o": {"x": 1, "y": {"z": null, "w": 2}}}`)
	for _, tt := range []struct{ pins, want []string }{
		{[]string{""}, nil},
		{nil, []string{"/n", "/o", "/to"}},
		{[]string{"/to"}, []string{"/n", "/o"}},
		{[]string{"/to/0", "/n"}, []string{"/o"}},
		{[]string{"/o/y/z"}, []string{"/n", "/o/x", "/o/y/w", "/to"}},
		{[]string{"/o/y", "/o/y/z"}, []string{"/n", "/o/x", "/to"}},
	} {
		got, err := policy.LooseBut(args, tt.pins...)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("LooseBut(%q) = %v (-want +got):\n%s", tt.pins, err, diff)
		}
	}
	for _, pin := range []string{"/cc", "to", "/to/2", "/n/0"} {
		if _, err := policy.LooseBut(args, pin); !errors.Is(err, fault.Invalid) {
			t.Errorf("LooseBut(%s) = %v, want fault.Invalid", pin, err)
		}
	}
}

func TestOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pins     string
		loose    []string
		holds    []string
		holdsNot []string
	}{
		{`{}`, nil, []string{`{}`, ``}, []string{`{"a":1}`}},
		{`{"/a":1,"/o/b":[2]}`, nil, []string{`{"a":1,"o":{"b":[2]}}`}, []string{`{"a":1}`, `{"a":1,"o":{"b":[2],"c":1}}`, `{"a":1,"o":{"b":[2]},"c":1}`}},
		{`{"/a":1}`, []string{"/c", "/o/d"}, []string{`{"a":1}`, `{"a":1,"c":2}`}, []string{`{"a":1,"o":{}}`, `{"c":2}`, `{"a":1,"d":2}`}},
		{`{"":{"a":1}}`, []string{"/a"}, []string{`{"a":7}`, `{}`}, []string{`{"b":1}`}},
		{`{"/a":1}`, []string{""}, []string{`{"a":1}`, `{"a":1,"c":2}`}, []string{`{"a":2}`, `{"c":2}`}},
		{`{}`, []string{""}, []string{`{"a":1}`, `{}`}, nil},
		{`{"/a":1}`, []string{"", "/c"}, []string{`{"a":1,"d":2}`}, []string{`{"a":2}`}},
	} {
		var values map[string]json.RawMessage
		if err := json.Unmarshal([]byte(tt.pins), &values); err != nil {
			t.Fatal(err)
		}
		held, loose, err := policy.Only(values, tt.loose...)
		if err != nil {
			t.Fatalf("Only(%s, %q) = %v", tt.pins, tt.loose, err)
		}
		pins, err := policy.ParsePins(held, loose)
		if err != nil {
			t.Fatalf("ParsePins(%s, %q) = %v", held, loose, err)
		}
		for _, other := range tt.holds {
			if !pins.Hold(json.RawMessage(other)) {
				t.Errorf("%s, loose %q: %s is not let through", tt.pins, tt.loose, other)
			}
		}
		for _, other := range tt.holdsNot {
			if pins.Hold(json.RawMessage(other)) {
				t.Errorf("%s, loose %q: %s is let through", tt.pins, tt.loose, other)
			}
		}
	}
	for pins, loose := range map[string]string{
		`{"/to/0":"a"}`: "/x", `{"/a":1,"/a/b":2}`: "/x", `{"":{"a":1},"/b":2}`: "/x", `{"":[1]}`: "/x", `{"":{}}`: "", `{"to":1}`: "/x", `{"/a":1}`: "x", `{"/a":[1]}`: "/a/0",
	} {
		var values map[string]json.RawMessage
		if err := json.Unmarshal([]byte(pins), &values); err != nil {
			t.Fatal(err)
		}
		if held, _, err := policy.Only(values, loose); !errors.Is(err, fault.Invalid) {
			t.Errorf("Only(%s, %q) = %s, %v, want fault.Invalid", pins, loose, held, err)
		}
	}
}
