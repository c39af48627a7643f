package schema_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/schema"
)

// seeds returns schemas and values: every keyword, and attacks on them.
func seeds() [][2]string {
	return [][2]string{
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, `{"a":1.0}`},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`, `{"a":1.5,"b":0}`},
		{`{"patternProperties":{"^x":{"type":"string"},"y$":{"minLength":2}},"additionalProperties":{"type":"null"}}`, `{"xy":"a","z":1}`},
		{`{"minProperties":2,"maxProperties":3,"propertyNames":{"pattern":"^[a-z]+$"}}`, `{"a":1,"B":2}`},
		{`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"required":["c"]}}}`, `{"a":1,"b":2}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"a":1,"c":2}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false}`, `["a",1]`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":{"type":"null"}}`, `["a",null,1]`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"s":{"type":"string"}},"items":{"$ref":"#/definitions/s","minLength":9}}`, `["a",1]`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":3,"exclusiveMinimum":true}`, `3`},
		{`{"$schema":"http://json-schema.org/draft-06/schema#","contains":{"const":2},"examples":[1]}`, `[1,3]`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{"type":"string"}],"unevaluatedItems":{"type":"null"}}`, `["a",null,1]`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","allOf":[{"items":[true],"additionalItems":true}],"unevaluatedItems":false}`, `["a",1]`},
		{`{"prefixItems":[{"type":"string"}],"items":{"type":"integer"},"uniqueItems":true,"minItems":1,"maxItems":4}`, `["a",1,1.0]`},
		{`{"contains":{"type":"string"},"minContains":2,"maxContains":3}`, `["a",1,"b","c","d"]`},
		{`{"contains":{"type":"string"},"minContains":0}`, `[]`},
		{`{"prefixItems":[true],"contains":{"type":"string"},"unevaluatedItems":false}`, `[1,"a",2]`},
		{`{"allOf":[{"properties":{"a":true}},{"properties":{"b":true}}],"unevaluatedProperties":false}`, `{"a":1,"b":2,"c":3}`},
		{`{"anyOf":[{"properties":{"a":true}},{"properties":{"b":true},"required":["b"]}],"unevaluatedProperties":{"type":"string"}}`, `{"a":1,"b":2}`},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}],"not":{"required":["c"]}}`, `{"a":1,"b":2,"c":3}`},
		{`{"oneOf":[{"properties":{"a":{"const":1}},"required":["a"]},{"properties":{"b":true},"required":["b"]}],"unevaluatedProperties":false}`, `{"a":1}`},
		{`{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]},"unevaluatedProperties":false}`, `{"a":1,"b":2}`},
		{`{"if":false,"else":{"type":"string"}}`, `1`},
		{`{"enum":[1,"a",null,{"b":[1,2]}],"const":{"b":[1.0,2]}}`, `{"b":[1,2.0]}`},
		{`{"minimum":1,"maximum":5,"exclusiveMinimum":1,"exclusiveMaximum":5,"multipleOf":0.01}`, `4.35`},
		{`{"type":["string","null"],"format":"email","minLength":3,"maxLength":5,"pattern":"@"}`, `"a@b.c"`},
		{`{"items":{"format":"regex"}}`, `["(","[a-z]+"]`},
		{`{"items":{"format":"date-time"}}`, `["2026-01-02T03:04:05Z","x"]`},
		{`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}},"additionalProperties":false}`, `{"kids":[{"kids":[{"n":1}]}]}`},
		{`{"$id":"https://a.example/b","$defs":{"x":{"$anchor":"here","type":"string"}},"$ref":"#here"}`, `1`},
		{`{"$ref":"#"}`, `1`},
		{`{"$ref":"https://elsewhere.example/"}`, `1`},
		{`{"$schema":"https://elsewhere.example/"}`, `1`},
		{`{"$dynamicRef":"#meta"}`, `{}`},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"type":"string"}`},
		{`{"$ref":"http://json-schema.org/draft-07/schema#"}`, `{"type":1}`},
		{`{"pattern":"(a{100}){100}"}`, `"aaaa"`},
		{`{"pattern":"^(a|aa)+$"}`, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaab"`},
		{`{"pattern":"("}`, `"a"`},
		{`{"pattern":"^(?!b)(?=a)\\p{sc=Latin}+$"}`, `"ab"`},
		{`{"pattern":"^(a+)+(?!x)$"}`, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"`},
		{`{"not":{"pattern":"("},"oneOf":[{"pattern":"["},{"pattern":"a"}],"if":{"pattern":"*"},"then":false}`, `"a"`},
		{`{"maximum":1e400}`, `1e-400`},
		{nested(6, 8), `{}`},
		{nested(2, 8), `{"a":{"a":{"a":{}}}}`},
		{`false`, `0`}, {`true`, `0`}, {`{}`, `0`}, {`[]`, `0`}, {`{"type":"nonsense"}`, `0`},
	}
}

// FuzzCheck checks any schema and value within bounds, and where the library can
// evaluate, compares the results.
func FuzzCheck(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		s, err := schema.Compile([]byte(text))
		if err != nil || check.JSON([]byte(value)) != nil {
			return
		}
		doc, err := schema.Decode(json.RawMessage(value))
		if err != nil {
			t.Fatalf("Decode(%s) = %v, want nil", value, err)
		}
		steps, failures, err := schema.Measure(t.Context(), s, doc)
		if steps > schema.MaxSteps || len(failures) > check.MaxProblems {
			t.Fatalf("Check(%s) by %s took %d steps and has %d failures", value, text, steps, len(failures))
		}
		if errors.Is(err, schema.ErrCost) || levels(doc) > 3 || len(text) > 400 || len(s.Unchecked()) > 0 {
			return // which the library might not answer, or not soon
		}
		if err != nil {
			t.Fatalf("Check(%s) by %s = %v, want nil", value, text, err)
		}
		if want := byLibrary(t, text, doc); (want == nil) != (len(failures) == 0) {
			t.Fatalf("Check(%s) by %s = %v, the library's answer is %v", value, text, failures, want)
		}
	})
}

// levels returns how deeply a value is nested.
func levels(v any) int {
	most := 0
	switch v := v.(type) {
	case map[string]any:
		for _, one := range v {
			most = max(most, 1+levels(one))
		}
	case []any:
		for _, one := range v {
			most = max(most, 1+levels(one))
		}
	}
	return most
}

func byLibrary(t *testing.T, text string, doc any) error {
	t.Helper()
	parsed, err := schema.Decode(json.RawMessage(text))
	if err != nil {
		t.Fatalf("Decode(%s) = %v, want nil", text, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseRegexpEngine(schema.Engine)
	if err := c.AddResource("tool:///input", parsed); err != nil {
		t.Fatalf("AddResource(%s) = %v, want nil", text, err)
	}
	compiled, err := c.Compile("tool:///input")
	if err != nil {
		t.Fatalf("Compile(%s) = %v, want nil", text, err)
	}
	return compiled.Validate(doc)
}
