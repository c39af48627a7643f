package catalog_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

func TestArgumentsAreValidated(t *testing.T) {
	t.Parallel()
	const tree = `{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}},"n":{"type":"integer"}},"additionalProperties":false}`
	for name, test := range map[string]struct {
		schema, args string
		want         []envelope.FieldError
	}{
		"an open schema takes anything":   {`{"type":"object","title":"t"}`, `{"a":{"b":[1]}}`, nil},
		"a recursive schema":              {tree, `{"kids":[{"kids":[{"n":1}]}]}`, nil},
		"a recursive schema is broken":    {tree, `{"kids":[{"kids":[{"n":"marker"}]}]}`, at("/args/kids/0/kids/0/n", "type")},
		"a format is asserted":            {`{"properties":{"m":{"type":"string","format":"email"}}}`, `{"m":"marker"}`, at("/args/m", "format")},
		"an unknown keyword says nothing": {`{"x-order":["a"],"properties":{"a":{"x-hint":"marker","type":"string"}}}`, `{"a":"b"}`, nil},
		"an enum":                         {`{"properties":{"a":{"enum":["x","y"]}}}`, `{"a":"marker"}`, at("/args/a", "enum")},
		"a pattern":                       {`{"properties":{"a":{"pattern":"^[0-9]+$"}}}`, `{"a":"marker"}`, at("/args/a", "pattern")},
		"a branch":                        {`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, append(at("/args/a", "required"), at("/args/b", "required")...)},
		"a field that is forbidden":       {`{"properties":{"a":false}}`, `{"a":"marker"}`, at("/args/a", "unknown_field")},
		"a large number stays itself":     {`{"properties":{"a":{"const":9007199254740993}}}`, `{"a":9007199254740993}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			s.List("src", source.Tool{Name: "act", InputSchema: json.RawMessage(test.schema)})

			err := s.act().Check(t.Context(), json.RawMessage(test.args))

			if test.want == nil {
				if err != nil {
					t.Errorf("Check(%s) = %v, want nil", test.args, err)
				}
				return
			}
			invalid, ok := errors.AsType[*envelope.InvalidError](err)
			if !ok {
				t.Fatalf("Check(%s) = %v, want *envelope.InvalidError", test.args, err)
			}
			if diff := cmp.Diff(test.want, invalid.Fields, cmpopts.IgnoreFields(envelope.FieldError{}, "Message")); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			for _, f := range invalid.Fields {
				if f.Message == "" || strings.Contains(f.Message, "marker") {
					t.Errorf("message %q is empty or repeats a value", f.Message)
				}
			}
		})
	}
}

func at(pointer string, rule envelope.Rule) []envelope.FieldError {
	return []envelope.FieldError{{Pointer: pointer, Rule: rule}}
}

// TestToolWithUnusableSchemaIsLeftOut checks that schemas, which come from
// outside, cannot make Countersign fetch or open anything, or work without end.
func TestToolWithUnusableSchemaIsLeftOut(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	bad := map[string]string{
		`{"$ref":"https://elsewhere.example/schema.json"}`:                      `refers to another document, "https://elsewhere.example/schema.json"`,
		`{"$ref":"file:///etc/passwd"}`:                                         "refers to another document",
		`{"$ref":"other.json#/a"}`:                                              "refers to another document",
		`{"properties":{"a":{"$ref":"http://127.0.0.1:1/a"}}}`:                  "refers to another document",
		`{"$schema":"https://elsewhere.example/dialect","properties":{"a":{}}}`: "declares the dialect",
		`{"type":12,"properties":{"a":{}}}`:                                     "is not a JSON Schema",
		`{"$ref":"#/nowhere"}`:                                                  `refers to "#/nowhere"`,
		`{"$ref":"#"}`:                                                          "refers to itself",
	}
	tools := []source.Tool{{Name: "act", InputSchema: json.RawMessage(`{"properties":{"a":{"type":"string"}}}`)}}
	want := make(map[string]string)
	for text, why := range bad {
		name := "bad" + strconv.Itoa(len(want))
		want[name] = why
		tools = append(tools, source.Tool{Name: name, InputSchema: json.RawMessage(text)})
	}

	s.List("src", tools...)
	src, _ := s.fresh("src")

	if src.LeftOut != len(bad) || len(src.LeftOutTools) != len(bad) {
		t.Errorf("left out %d tools, %d of them with reasons, want %d", src.LeftOut, len(src.LeftOutTools), len(bad))
	}
	for _, left := range src.LeftOutTools {
		if !strings.Contains(left.Reason, want[left.Name]) {
			t.Errorf("%s is left out since %q, want a reason with %q", left.Name, left.Reason, want[left.Name])
		}
	}
	if s.act().Key.Action != "act" {
		t.Error("a tool beside them is left out too")
	}
}

// TestUnusableSchemaRefusesArguments has a schema stored by another version that
// does not compile in this one.
func TestUnusableSchemaRefusesArguments(t *testing.T) {
	t.Parallel()

	err := catalog.NewSchema(json.RawMessage(`{"$ref":"#/nowhere"}`)).Check(t.Context(), json.RawMessage(`{}`))

	if !errors.Is(err, fault.Conflict) {
		t.Errorf("Check() = %v, want fault.Conflict", err)
	}
}

func TestCostlyArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	const twice = `{"patternProperties":{"a":{"$ref":"#"},"^a":{"$ref":"#"}}}`
	deep := strings.Repeat(`{"a":`, 60) + "{}" + strings.Repeat("}", 60)

	err := catalog.NewSchema(json.RawMessage(twice)).Check(t.Context(), json.RawMessage(deep))

	invalid, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok || len(invalid.Fields) != 1 || invalid.Fields[0].Pointer != "/args" || invalid.Fields[0].Rule != catalog.RuleCost {
		t.Errorf("Check() = %v, want %s at /args", err, catalog.RuleCost)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.Put(tenanttest.Builtin("gmail"))
	s.List("gmail", tenanttest.Tool("send"), tenanttest.Tool("act"))
	off := tenanttest.Builtin("off")
	off.Enabled = false
	s.Put(off)
	s.List("off", tenanttest.Tool("send"), tenanttest.Tool("only"))
	snap := s.snapshot()

	for name, test := range map[string]struct {
		tool    envelope.Tool
		source  string
		pointer string
		rule    envelope.Rule
	}{
		"by source":             {envelope.Tool{Name: "act", Source: "src"}, "src", "", ""},
		"by app":                {envelope.Tool{Name: "act", ComposioApp: "gmail"}, "gmail", "", ""},
		"by name alone":         {envelope.Tool{Name: "send"}, "gmail", "", ""},
		"ambiguous":             {envelope.Tool{Name: "act"}, "", "/tool/source", "required"},
		"only where it is off":  {envelope.Tool{Name: "only"}, "", "/tool/name", "unknown_tool"},
		"a source that is off":  {envelope.Tool{Name: "send", Source: "off"}, "", "/tool/source", "unknown_source"},
		"no such source":        {envelope.Tool{Name: "send", Source: "nowhere"}, "", "/tool/source", "unknown_source"},
		"no such tool of it":    {envelope.Tool{Name: "send", Source: "src"}, "", "/tool/name", "unknown_tool"},
		"no such tool anywhere": {envelope.Tool{Name: "nothing"}, "", "/tool/name", "unknown_tool"},
	} {
		got, err := snap.Resolve(test.tool, nil)

		if test.source != "" {
			if err != nil || got.Key.Source != test.source {
				t.Errorf("%s: Resolve = %v, %v, want that of %s", name, got, err, test.source)
			}
			continue
		}
		invalid, ok := errors.AsType[*envelope.InvalidError](err)
		if !ok || invalid.Fields[0].Pointer != test.pointer || invalid.Fields[0].Rule != test.rule {
			t.Errorf("%s: Resolve = %v, want %s at %s", name, err, test.rule, test.pointer)
		}
	}
}
