package reconcile_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/fault"
)

func TestRuleNamesTheInvalidField(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rule reconcile.Rule
		want []string
	}{
		"without arguments":     {reconcile.Rule{Tool: "find", Happened: "/found"}, nil},
		"with every place":      {reconcile.Rule{Tool: "find", Args: json.RawMessage(`{"a":["$key","$inputs","$inputs/to/0","$$9","free"],"n":1}`)}, nil},
		"no tool":               {reconcile.Rule{}, []string{"/tool"}},
		"no pointer":            {reconcile.Rule{Tool: "find", Happened: "found"}, []string{"/happened"}},
		"a pointer half":        {reconcile.Rule{Tool: "find", Happened: "/a~2"}, []string{"/happened"}},
		"arguments of no JSON":  {reconcile.Rule{Tool: "find", Args: json.RawMessage(`{`)}, []string{"/args"}},
		"arguments of a list":   {reconcile.Rule{Tool: "find", Args: json.RawMessage(`[]`)}, []string{"/args"}},
		"an unknown place":      {reconcile.Rule{Tool: "find", Args: json.RawMessage(`{"a/b":["$arg"]}`)}, []string{"/args/a~1b/0"}},
		"a place of no pointer": {reconcile.Rule{Tool: "find", Args: json.RawMessage(`{"a":"$inputsx"}`)}, []string{"/args/a"}},
		"too many arguments":    {reconcile.Rule{Tool: "find", Args: json.RawMessage(`{"a":"` + strings.Repeat("x", 16<<10) + `"}`)}, []string{"/args"}},
	} {
		err := test.rule.Validate()
		var got []string
		if broken, ok := errors.AsType[*envelope.InvalidError](err); ok {
			for _, f := range broken.Fields {
				got = append(got, f.Pointer)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.want == nil) {
			t.Errorf("Validate of a rule %s = %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	const args = `{"to":["a@example.org","b"],"n":12345678901234567890,"deep":{"a/b":true}}`
	for name, test := range map[string]struct{ template, want string }{
		"nothing":              {``, `{}`},
		"the key":              {`{"k":"$key"}`, `{"k":"key-1"}`},
		"an argument":          {`{"q":"$inputs/to/1"}`, `{"q":"b"}`},
		"an argument as it is": {`{"n":"$inputs/n","l":"$inputs/to"}`, `{"l":["a@example.org","b"],"n":12345678901234567890}`},
		"a name with a slash":  {`{"q":"$inputs/deep/a~1b"}`, `{"q":true}`},
		"all arguments":        {`{"q":"$inputs"}`, `{"q":` + `{"deep":{"a/b":true},"n":12345678901234567890,"to":["a@example.org","b"]}` + `}`},
		"text, and a dollar":   {`{"a":"key","b":"$$key","c":[null,1.50]}`, `{"a":"key","b":"$key","c":[null,1.50]}`},
		"what is not there":    {`{"q":"$inputs/cc"}`, ``},
		"beyond the end":       {`{"q":"$inputs/to/2"}`, ``},
		"no index":             {`{"q":"$inputs/to/01"}`, ``},
		"below a text":         {`{"q":"$inputs/to/0/x"}`, ``},
	} {
		got, err := reconcile.Rule{Tool: "find", Args: json.RawMessage(test.template)}.Fill("key-1", json.RawMessage(args))
		if string(got) != test.want || errors.Is(err, fault.Invalid) != (test.want == "") {
			t.Errorf("Fill with %s = %s, %v, want %s", name, got, err, test.want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]reconcile.Result{
		`{"structured":{"found":true}}`:                           reconcile.Happened,
		`{"structured":{"found":false}}`:                          reconcile.NotFound,
		`{"structured":{"found":null}}`:                           reconcile.NotFound,
		`{"structured":{"found":[]}}`:                             reconcile.NotFound,
		`{"structured":{"found":[0]}}`:                            reconcile.Happened,
		`{"structured":{"found":{}}}`:                             reconcile.NotFound,
		`{"structured":{"found":{"id":1}}}`:                       reconcile.Happened,
		`{"structured":{"found":""}}`:                             reconcile.NotFound,
		`{"structured":{"found":"false"}}`:                        reconcile.Happened,
		`{"structured":{"found":0.0}}`:                            reconcile.NotFound,
		`{"structured":{"found":1e999}}`:                          reconcile.Happened,
		`{"structured":{"Found":true}}`:                           reconcile.Unclear,
		`{"structured":[true]}`:                                   reconcile.Unclear,
		`{"content":[{"type":"text","text":"{\"found\":true}"}]}`: reconcile.Happened,
		`{"content":[{"type":"text","text":"{\"found\":true}"}],"structured":{"found":false}}`:    reconcile.NotFound,
		`{"content":[{"type":"text","text":"it is there"}]}`:                                      reconcile.Unclear,
		`{"content":[{"type":"text","text":"{\"found\":true}"},{"type":"text","text":"second"}]}`: reconcile.Unclear,
		`{"content":[{"type":"image","data":"x"}]}`:                                               reconcile.Unclear,
		`{"found":true}`: reconcile.Happened,
		`{}`:             reconcile.Unclear,
		`null`:           reconcile.Unclear,
		``:               reconcile.Unclear,
		`{`:              reconcile.Unclear,
	} {
		if got := (reconcile.Rule{Tool: "find", Happened: "/found"}).Interpret(json.RawMessage(answer)); got != want {
			t.Errorf("Read(%s) = %s, want %s", answer, got, want)
		}
	}
	whole := reconcile.Rule{Tool: "find"}
	if got := whole.Interpret(json.RawMessage(`{"structured":{"found":false}}`)); got != reconcile.Happened {
		t.Errorf("Read of the whole = %s, want %s: it is not empty", got, reconcile.Happened)
	}
	if got := whole.Interpret(json.RawMessage(`{"content":[{"type":"text","text":"true story"}]}`)); got != reconcile.Unclear {
		t.Errorf("Read of prose = %s, want %s", got, reconcile.Unclear)
	}
}

// Any answer has one of the three results, and a filled template is JSON.
func FuzzRule(f *testing.F) {
	f.Add(`{"k":"$key","q":"$inputs/to"}`, `{"to":"a"}`, "/found", `{"structured":{"found":true}}`)
	f.Add(`{"k":["$$",{"a":"$inputs"}]}`, `{}`, "", `{"content":[{"type":"text","text":"[]"}]}`)
	f.Add(`{"a":"$inputs/0/~01"}`, `[{"~1":1}]`, "/a~0b/1", `null`)
	f.Fuzz(func(t *testing.T, template, args, happened, answer string) {
		r := reconcile.Rule{Tool: "find", Args: json.RawMessage(template), Happened: happened}
		if r.Validate() != nil {
			return
		}
		filled, err := r.Fill("key-1", json.RawMessage(args))
		if err == nil && (!json.Valid(filled) || filled[0] != '{') {
			t.Errorf("Fill = %s, which is no JSON object", filled)
		}
		switch got := r.Interpret(json.RawMessage(answer)); got {
		case reconcile.Happened, reconcile.NotFound, reconcile.Unclear:
		default:
			t.Errorf("Read = %q", got)
		}
	})
}
