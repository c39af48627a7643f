package catalog_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

func TestArgumentsAreHeldToTheSchema(t *testing.T) {
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

			err := s.act().Check(json.RawMessage(test.args))

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

// A schema comes from outside: it must not have us fetch or open anything.
func TestASchemaMayNotReachOut(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"$ref":"https://elsewhere.example/schema.json"}`,
		`{"$ref":"file:///etc/passwd"}`,
		`{"$ref":"other.json#/a"}`,
		`{"properties":{"a":{"$ref":"http://127.0.0.1:1/a"}}}`,
		`{"$schema":"https://elsewhere.example/dialect","properties":{"a":{}}}`,
		`{"type":12,"properties":{"a":{}}}`,
		`{"properties":{"a":{"pattern":"("}}}`,
		`{"$ref":"#/nowhere"}`,
	} {
		s := newFixture(t)
		s.List("src", source.Tool{Name: "act", InputSchema: json.RawMessage(schema)})

		err := s.act().Check(json.RawMessage(`{"a":1}`))

		if !errors.Is(err, fault.Conflict) {
			t.Errorf("Check by %s = %v, want fault.Conflict", schema, err)
		}
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
		got, err := snap.Resolve(test.tool)

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
