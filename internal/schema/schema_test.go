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
// level refers to the next one in several branches.
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

func TestCompileErrorNamesTheReason(t *testing.T) {
	t.Parallel()
	many := `{"properties":{"a":0` + strings.Repeat(`,"b%":{}`, 2100) + `}}`
	for i := range 2100 {
		many = strings.Replace(many, "%", fmt.Sprint(i), 1)
	}
	for name, test := range map[string]struct{ text, want string }{
		"references multiply":         {nested(6, 8), "multiply"},
		"an endless reference":        {`{"$ref":"#"}`, "without end"},
		"a long chain":                {nested(70, 1), "within each other"},
		"too large":                   {`{"description":"` + strings.Repeat("x", schema.MaxBytes) + `"}`, "longer than"},
		"too many objects":            {many, "objects"},
		"another document":            {`{"$ref":"https://elsewhere.example/s.json"}`, `"https://elsewhere.example/s.json"`},
		"a file":                      {`{"$ref":"file:///etc/passwd"}`, "file:///etc/passwd"},
		"an unknown dialect":          {`{"$schema":"https://elsewhere.example/d"}`, "dialect"},
		"a dialect as a schema":       {`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, "not supported"},
		"a dynamic reference":         {`{"$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a"}}}`, "$dynamic"},
		"a missing part":              {`{"$ref":"#/nowhere"}`, `"#/nowhere"`},
		"a number that is a bomb":     {`{"maximum":1e999999}`, "not valid JSON"},
		"a name twice":                {`{"type":"string","type":"object"}`, "not valid JSON"},
		"no schema":                   {`{"type":"nonsense"}`, "is not a JSON Schema"},
		"no JSON":                     {`{`, "not valid JSON"},
		"characters that hide others": {`{"$ref":"https://elsewhere.example/\u202e"}`, `%E2%80%AE`},
	} {
		_, err := schema.Compile([]byte(test.text))

		if f, ok := errors.AsType[*fault.Error](err); !ok || !strings.Contains(f.Text, test.want) {
			t.Errorf("%s: Compile() = %v, want an error with %q", name, err, test.want)
		}
	}
}

// TestCheckIsBounded checks values for which the library takes seconds or does
// not end.
func TestCheckIsBounded(t *testing.T) {
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

// zodEmail and zodDuration are the patterns of zod for z.email() and
// z.iso.duration().
const (
	zodEmail    = `^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`
	zodDuration = `^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$`
)

func TestPatternsUnsupportedByRE2(t *testing.T) {
	t.Parallel()
	for pattern, test := range map[string]struct {
		fit, bad  []string
		unchecked bool
	}{
		zodEmail:                    {[]string{"ada@example.org"}, []string{".ada@example.org", "a..b@example.org", "ada"}, false},
		zodDuration:                 {[]string{"P1W", "P1DT2H", "PT0,5S"}, []string{"P", "P1DT", "P1W2D"}, false},
		`^(?<year>\d{4})-\k<year>$`: {[]string{"2026-2026"}, []string{"2026-2027", "٢٠٢٦-٢٠٢٦"}, false},
		`^(?=\w+$).`:                {[]string{"a"}, []string{"é", "a\n"}, false},
		`^\u{1F600}\u0041$`:         {[]string{"😀A"}, []string{"A"}, false},
		`^\p{Script=Greek}+$`:       {[]string{"αβγ"}, []string{"abc"}, false},
		`^\p{gc=Lu}(?!x)`:           {[]string{"Ä"}, []string{"ä", "Äx"}, false},
		`^.{1,4000}$`:               {[]string{"a"}, []string{""}, false},
		`^\pL{900}\pL{900}\pL{900}`: {[]string{strings.Repeat("é", 2700)}, []string{"é"}, false},
		`(`:                         {[]string{"a"}, nil, true},
		`\p{Emoji}`:                 {[]string{"a"}, nil, true},
		strings.Repeat("a", 5000):   {[]string{"a"}, nil, true},
	} {
		raw, err := json.Marshal(map[string]string{"pattern": pattern})
		if err != nil {
			t.Fatal(err)
		}
		s, err := schema.Compile(raw)
		if err != nil {
			t.Errorf("Compile(%.40q) = %v, want nil", pattern, err)
			continue
		}
		if got := len(s.Unchecked()) > 0; got != test.unchecked {
			t.Errorf("Unchecked(%.40q) = %q, want any: %t", pattern, s.Unchecked(), test.unchecked)
		}
		for _, text := range test.fit {
			if failures, err := s.Check(t.Context(), text); err != nil || len(failures) > 0 {
				t.Errorf("Check(%q) by %.40q = %v, %v, want it to fit", text, pattern, failures, err)
			}
		}
		for _, text := range test.bad {
			if failures, err := s.Check(t.Context(), text); err != nil || len(failures) == 0 {
				t.Errorf("Check(%q) by %.40q = %v, %v, want a failure", text, pattern, failures, err)
			}
		}
	}
}

// TestUncheckedPatternRejectsNothing checks that an expression that no engine
// supports matches every text, while the rest of the schema is checked.
func TestUncheckedPatternRejectsNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		value string
		fits  bool
	}{
		`{"properties":{"a":{"pattern":"("}},"required":["b"]}`:                                                               {`{"a":"x"}`, false},
		`{"properties":{"a":{"pattern":"(","maxLength":1}}}`:                                                                  {`{"a":"xy"}`, false},
		`{"not":{"pattern":"("}}`:                                                                                             {`"x"`, true},
		`{"not":{"not":{"pattern":"("}}}`:                                                                                     {`"x"`, true},
		`{"not":{"pattern":"(","minLength":2}}`:                                                                               {`"x"`, true},
		`{"oneOf":[{"pattern":"("},{"pattern":"x"}]}`:                                                                         {`"x"`, true},
		`{"oneOf":[{"pattern":"("},{"pattern":")"}]}`:                                                                         {`"x"`, true},
		`{"oneOf":[{"pattern":"("},{"pattern":"x"},{"minLength":1}]}`:                                                         {`"x"`, false},
		`{"if":{"pattern":"("},"then":{"minLength":2},"else":{"minLength":3}}`:                                                {`"x"`, true},
		`{"patternProperties":{"(":{"type":"null"}},"additionalProperties":false}`:                                            {`{"a":1}`, true},
		`{"patternProperties":{"(":{"type":"null"},"^b":{"type":"null"}},"additionalProperties":false}`:                       {`{"b":1}`, false},
		`{"propertyNames":{"pattern":"("}}`:                                                                                   {`{"a":1}`, true},
		`{"contains":{"pattern":"("},"maxContains":1}`:                                                                        {`["a","b"]`, true},
		`{"contains":{"pattern":"("}}`:                                                                                        {`[1]`, true},
		`{"if":{"properties":{"a":{"pattern":"("}}},"then":{"properties":{"a":true,"b":true}},"unevaluatedProperties":false}`: {`{"a":"x","b":1}`, true},
		`{"format":"regex"}`: {`"("`, false},
	} {
		s, err := schema.Compile([]byte(text))
		if err != nil {
			t.Errorf("Compile(%s) = %v, want nil", text, err)
			continue
		}
		value, err := schema.Decode([]byte(want.value))
		if err != nil {
			t.Fatal(err)
		}
		if failures, err := s.Check(t.Context(), value); err != nil || (len(failures) == 0) != want.fits {
			t.Errorf("Check(%s) by %s = %v, %v, want it to fit: %t", want.value, text, failures, err, want.fits)
		}
	}
}

func TestSlowPatternEndsTheCheck(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(`{"items":{"pattern":"^(a+)+(?!x)$"}}`))
	if err != nil {
		t.Fatal(err)
	}
	endless := strings.Repeat("a", 40) + "c"

	_, err = s.Check(t.Context(), []any{endless, endless, endless, endless})

	if !errors.Is(err, schema.ErrCost) {
		t.Errorf("Check() = %v, want ErrCost", err)
	}
	if _, err = s.Check(t.Context(), []any{strings.Repeat("b", 70<<10)}); !errors.Is(err, schema.ErrCost) {
		t.Errorf("Check() of a long text = %v, want ErrCost", err)
	}
}

func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"n%d":0`, i)
	}
	return b.String()
}

func TestCheckEndsWithItsContext(t *testing.T) {
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

func TestChecksOfARequestShareABudget(t *testing.T) {
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
