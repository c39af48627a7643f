package schema_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/schema"
)

// nested returns a schema of about a kilobyte whose references multiply: each
// of its levels refers to the next one in as many branches.
func nested(levels, branches int) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/l0"}},"$defs":{`)
	for i := range levels {
		ref := fmt.Sprintf(`{"$ref":"#/$defs/l%d"},`, i+1)
		fmt.Fprintf(&b, `"l%d":{"anyOf":[%s]},`, i, strings.TrimSuffix(strings.Repeat(ref, branches), ","))
	}
	fmt.Fprintf(&b, `"l%d":{"minLength":9,"type":"object","properties":{"a":{"$ref":"#/$defs/l0"}}}}}`, levels)
	return b.String()
}

func TestASchemaThatCannotBeUsedSaysWhy(t *testing.T) {
	t.Parallel()
	many := `{"properties":{"a":0` + strings.Repeat(`,"b%":{}`, 2100) + `}}`
	for i := range 2100 {
		many = strings.Replace(many, "%", fmt.Sprint(i), 1)
	}
	for name, test := range map[string]struct{ text, want string }{
		"references multiply":         {nested(6, 8), "multiply"},
		"an endless reference":        {`{"$ref":"#"}`, "no end"},
		"a long chain":                {nested(70, 1), "within each other"},
		"too large":                   {`{"description":"` + strings.Repeat("x", schema.MaxBytes) + `"}`, "longer than"},
		"too many objects":            {many, "objects"},
		"another document":            {`{"$ref":"https://elsewhere.example/s.json"}`, `"https://elsewhere.example/s.json"`},
		"a file":                      {`{"$ref":"file:///etc/passwd"}`, "file:///etc/passwd"},
		"an unknown dialect":          {`{"$schema":"https://elsewhere.example/d"}`, "dialect"},
		"a dialect as a schema":       {`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, "not supported"},
		"a dynamic reference":         {`{"$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a"}}}`, "$dynamic"},
		"a missing part":              {`{"$ref":"#/nowhere"}`, `"#/nowhere"`},
		"a bad pattern":               {`{"pattern":"("}`, "regular expression"},
		"a large pattern":             {`{"pattern":"\\pL{900}\\pL{900}\\pL{900}"}`, "regular expression"},
		"a number that is a bomb":     {`{"maximum":1e999999}`, "not JSON"},
		"a name twice":                {`{"type":"string","type":"object"}`, "not JSON"},
		"no schema":                   {`{"type":"nonsense"}`, "is not a JSON Schema"},
		"no JSON":                     {`{`, "not JSON"},
		"characters that hide others": {`{"$ref":"https://elsewhere.example/\u202e"}`, `%E2%80%AE`},
	} {
		_, err := schema.Compile([]byte(test.text))

		if f, ok := errors.AsType[*fault.Error](err); !ok || !strings.Contains(f.Text, test.want) {
			t.Errorf("%s: Compile() = %v, want an error with %q", name, err, test.want)
		}
	}
}

// These answers took the library between seconds and for ever.
func TestACheckTakesABoundedNumberOfStepsAndFailures(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat(`}`, 60)
	for name, test := range map[string]struct{ schema, value string }{
		"branches at every level":    {strings.ReplaceAll(nested(2, 8), "anyOf", "allOf"), deep},
		"patterns at every level":    {`{"patternProperties":{"a":{"$ref":"#"},"^a":{"$ref":"#"},"a$":{"$ref":"#"}},"required":["b"]}`, deep},
		"patterns within not":        {`{"not":{"not":{"$ref":"#/$defs/x"}},"$defs":{"x":{"patternProperties":{"a":{"$ref":"#/$defs/x"},"^a":{"$ref":"#/$defs/x"}},"required":["b"]}}}`, deep},
		"a long text, many patterns": {`{"items":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"pattern":"(a|b|c|d|e)*(x[a-z]{40}){20}"},`, 50), ",") + `]}}`, `["` + strings.Repeat("ab", 50_000) + `"]`},
		"a large enum":               {`{"items":{"enum":[` + strings.Repeat(`1.5,`, 5000) + `1]}}`, `[` + strings.Repeat(`2,`, 5000) + `2]`},
		"equal to their ends":        {`{"items":{"enum":[` + strings.Repeat(`[`+strings.Repeat("0,", 500)+`1],`, 100) + `1]}}`, `[` + strings.Repeat(`[`+strings.Repeat("0,", 500)+`0],`, 100) + `1]`},
		"items that differ late":     {`{"items":{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"uniqueItems":true,"maxItems":0},`, 200), ",") + `]}}`, `[[` + strings.Repeat(`1,`, 20_000) + `1]]`},
		"many wrong items":           {`{"items":{"type":"object","required":["a","b","c"]}}`, `[` + strings.Repeat(`{},`, 50_000) + `{}]`},
		"many unknown names":         {`{"additionalProperties":false}`, `{"a":0` + names(20_000) + `}`},
		"many missing names":         {`{"required":["a"` + strings.ReplaceAll(names(10_000), ":0", "") + `]}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.Compile([]byte(test.schema))
			if err != nil {
				t.Fatalf("Compile() = %v, want nil", err)
			}
			doc, err := schema.Decode(json.RawMessage(test.value))
			if err != nil {
				t.Fatal(err)
			}

			steps, failures, err := schema.Measure(t.Context(), s, doc)

			if steps > schema.MaxSteps || len(failures) > check.MaxProblems {
				t.Errorf("%d steps and %d failures, want at most %d and %d", steps, len(failures), schema.MaxSteps, check.MaxProblems)
			}
			if err == nil && len(failures) == 0 {
				t.Error("the value fits, want it to break the schema or to cost too much")
			}
			for _, f := range failures {
				if len(f.At) > 70 {
					t.Errorf("a failure is at %d names", len(f.At))
				}
			}
		})
	}
}

func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"n%d":0`, i)
	}
	return b.String()
}

func TestACheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(strings.ReplaceAll(nested(2, 8), "anyOf", "allOf")))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := schema.Decode(json.RawMessage(strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat(`}`, 60)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	steps, _, err := schema.Measure(ctx, s, doc)

	if !errors.Is(err, context.Canceled) || steps > 10_000 {
		t.Errorf("Check() = %v after %d steps, want context.Canceled soon", err, steps)
	}
}

func TestChecksOfOneRequestShareABudget(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(strings.ReplaceAll(nested(2, 8), "anyOf", "allOf")))
	if err != nil {
		t.Fatal(err)
	}
	costly := json.RawMessage(strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat(`}`, 60))
	budget := schema.NewBudget(len(costly))

	_, first := s.CheckObject(t.Context(), budget, costly)
	_, second := s.CheckObject(t.Context(), budget, json.RawMessage(`{"a":{"a":{"a":{}}}}`))
	_, fresh := s.CheckObject(t.Context(), schema.NewBudget(0), json.RawMessage(`{"a":{"a":{}}}`))

	if !errors.Is(first, schema.ErrCost) || !errors.Is(second, schema.ErrCost) || fresh != nil {
		t.Errorf("CheckObject() = %v, %v and with a fresh budget %v, want ErrCost twice and nil", first, second, fresh)
	}
}
