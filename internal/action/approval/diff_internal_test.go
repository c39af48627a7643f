package approval

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		was, now string
		want     []string
	}{
		"nothing":                  {`{"a":1,"b":[1,{"c":2}]}`, `{"b":[1.0,{"c":2}],"a":1e0}`, nil},
		"a value":                  {`{"a":1,"b":2}`, `{"a":1,"b":3}`, []string{"/b"}},
		"added and removed":        {`{"a":1}`, `{"b":1}`, []string{"/a", "/b"}},
		"deep down":                {`{"a":{"b":[1,{"c":2}]}}`, `{"a":{"b":[1,{"c":3}]}}`, []string{"/a/b/1/c"}},
		"a list of another length": {`{"a":[1,2]}`, `{"a":[1,2,3]}`, []string{"/a"}},
		"another type":             {`{"a":[1]}`, `{"a":{"0":1}}`, []string{"/a"}},
		"null and missing":         {`{"a":null}`, `{}`, []string{"/a"}},
		"keys to be escaped":       {`{"a/b":1,"m~n":1}`, `{"a/b":2,"m~n":2}`, []string{"/a~1b", "/m~0n"}},
	} {
		got, err := changes(json.RawMessage(test.was), json.RawMessage(test.now))
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: changes = %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func FuzzChanges(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}]}`, `{"a":[1,{"b":""}]}`)
	f.Add(`{}`, `{"":{"":0}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		was, now := json.RawMessage(a), json.RawMessage(b)
		there, err := changes(was, now)
		if err != nil {
			return
		}
		back, err := changes(now, was)
		if diff := cmp.Diff(there, back); err != nil || diff != "" {
			t.Errorf("changes are others the other way round (%v):\n%s", err, diff)
		}
		if same, err := changes(was, was); err != nil || len(same) != 0 {
			t.Errorf("changes to itself = %v, %v", same, err)
		}
	})
}

func FuzzParseArgs(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":1}`, `{"a":1},"risk":"low"`, `[]`, `{"a":1,"a":2}`, `{"a":1}}`, `{"a":1},"args":{"b":2}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		args, err := parseArgs(json.RawMessage(text))
		if err != nil {
			return
		}
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &object) != nil || json.Unmarshal(args, &object) != nil {
			t.Errorf("parseArgs(%q) = %s, want only objects", text, args)
		}
		if diff, err := changes(json.RawMessage(text), args); err != nil || len(diff) != 0 {
			t.Errorf("parseArgs(%q) = %s, which differs at %v (%v)", text, args, diff, err)
		}
	})
}
