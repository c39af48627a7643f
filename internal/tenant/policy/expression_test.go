package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func language(t testing.TB) *policy.Language {
	t.Helper()
	l, err := policy.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func compile(t testing.TB, l *policy.Language, text string) *policy.Expression {
	t.Helper()
	e, err := l.Compile(text, policy.Shape{})
	if err != nil {
		t.Fatalf("Compile(%s) = %v", text, err)
	}
	return e
}

// asker returns a proposal without empty fields.
func asker(args string) *policy.Subject {
	return &policy.Subject{
		Args: json.RawMessage(args), Key: send(), Risk: policy.RiskWrite, Effect: envelope.EffectOnce, EnvelopeRisk: envelope.RiskHigh,
		Automation: "nightly", Session: "s-1", Employee: "e-1", Known: true, Trust: policy.TrustLow, Scopes: []string{"chat:write"},
	}
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	l := language(t)
	for _, tt := range []struct {
		expression, args string
		want             bool
		failure          policy.Failure
	}{
		// Numbers are compared as numbers, in any notation.
		{`args.amount > 100`, `{"amount":101}`, true, ""},
		{`args.amount > 100`, `{"amount":100.0}`, false, ""},
		{`args.amount > 100`, `{"amount":100.5}`, true, ""},
		{`args.amount > 100`, `{"amount":1e3}`, true, ""},
		{`args.amount > 99.5 && args.amount < 100.5`, `{"amount":100}`, true, ""},
		{`args.amount == 1`, `{"amount":1.0}`, true, ""},
		{`args.amount == 1.0`, `{"amount":1}`, true, ""},
		{`args.amount >= 0`, `{"amount":-0.0}`, true, ""},
		// Whole numbers are exact up to 64 bits.
		{`args.n == 9007199254740993`, `{"n":9007199254740993}`, true, ""},
		{`args.n == 9007199254740993`, `{"n":9007199254740992}`, false, ""},
		{`args.n == 9007199254740993`, `{"n":9007199254740993.000}`, true, ""},
		{`args.n > 9223372036854775807`, `{"n":9223372036854775808}`, true, ""},
		{`args.n == 18446744073709551615u`, `{"n":18446744073709551615}`, true, ""},
		{`args.n > 0`, `{"n":123456789012345678901234567890}`, true, ""},
		// Other types fail.
		{`args.amount > 100`, `{"amount":"500"}`, false, policy.FailureValues},
		{`args.amount > 100`, `{"amount":"5"}`, false, policy.FailureValues},
		{`args.amount > 100`, `{"amount":[500]}`, false, policy.FailureValues},
		{`args.amount > 100`, `{"amount":null}`, false, policy.FailureValues},
		{`args.amount > 100`, `{"amount":true}`, false, policy.FailureValues},
		{`args.amount > 100`, `{}`, false, policy.FailureValues},
		{`args.amount > 100`, ``, false, policy.FailureValues},
		{`args.amount > 100`, `{"Amount":500}`, false, policy.FailureValues},
		{`args.amount > 100`, `{"amount":1e400}`, false, policy.FailureArgs},
		{`args.amount > 100`, `{"amount":1,"other":[{"a":-1e400}]}`, false, policy.FailureArgs},
		{`double(args.amount) > 100.0`, `{"amount":"NaN"}`, false, policy.FailureCost},
		{`!(double(args.amount) <= 100.0)`, `{"amount":"NaN"}`, false, policy.FailureCost},
		{`double(args.amount) < 100.0`, `{"amount":"Infinity"}`, false, policy.FailureCost},
		{`args.a * 1e10 - args.b * 1e10 > 1.0`, `{"a":1e308,"b":1e308}`, false, policy.FailureCost},
		{`args.n + 1 > 0`, `{"n":9223372036854775807}`, false, policy.FailureValues},
		{`args.a / args.b > 1`, `{"a":1,"b":0}`, false, policy.FailureValues},
		{`args.n * 2 > 3`, `{"n":1.6}`, false, policy.FailureValues},
		// The presence of an argument can be tested, and an irrelevant error is
		// ignored.
		{`has(args.amount) && args.amount > 100`, `{}`, false, ""},
		{`has(args.amount) && args.amount > 100`, `{"amount":101}`, true, ""},
		{`args.amount > 100 || tool.source == "slack"`, `{}`, true, ""},
		{`"cc" in args`, `{"cc":null}`, true, ""},
		{`args.a.b[1].c == "x"`, `{"a":{"b":[0,{"c":"x"}]}}`, true, ""},
		{`args["odd key"] == 1`, `{"odd key":1}`, true, ""},
		{`args.flag`, `{"flag":true}`, true, ""},
		{`args.flag`, `{"flag":false}`, false, ""},
		{`args.flag`, `{"flag":1}`, false, policy.FailureType},
		{`args.flag`, `{"flag":"true"}`, false, policy.FailureType},
		// Loops accept only lists.
		{`args.to.exists(t, !t.endsWith("@acme.com"))`, `{"to":["a@acme.com"]}`, false, ""},
		{`args.to.exists(t, !t.endsWith("@acme.com"))`, `{"to":["a@acme.com","b@evil.com"]}`, true, ""},
		{`args.to.exists(t, !t.endsWith("@acme.com"))`, `{"to":[]}`, false, ""},
		{`args.to.exists(t, !t.endsWith("@acme.com"))`, `{"to":{"a@acme.com":"b@evil.com"}}`, false, policy.FailureValues},
		{`args.to.exists(t, !t.endsWith("@acme.com"))`, `{"to":"b@evil.com"}`, false, policy.FailureValues},
		{`args.to.exists(t, !t.endsWith("@acme.com"))`, `{"to":["a@acme.com",7]}`, false, policy.FailureValues},
		{`args.to.all(t, t in ["a", "b"])`, `{"to":["a","b"]}`, true, ""},
		{`args.to.filter(t, t.contains("@")).size() > 1`, `{"to":["a@b","c@d","e"]}`, true, ""},
		{`args.to.exists(t, t == 1 || t == "a")`, `{"to":["a"]}`, true, ""},
		{`args.to.exists(t, args.cc.exists(c, t + c == "ab"))`, `{"to":["a"],"cc":["b"]}`, true, ""},
		{`args.to.exists_one(t, t == "a")`, `{"to":["a","b"]}`, true, ""},
		// An argument's name is never that of a variable.
		{`tool.source == "slack"`, `{"tool":{"source":"evil"},"tool.source":"evil"}`, true, ""},
		{`args.tool.source == "evil"`, `{"tool":{"source":"evil"}}`, true, ""},
		{`envelope.risk == "high" && envelope.automation == "nightly" && envelope.session == "s-1"`, `{"envelope":{"risk":"low"}}`, true, ""},
		{`employee.id == "e-1" && employee.known && employee.trust == "low" && "chat:write" in employee.scopes`, `{"employee":{"known":false}}`, true, ""},
		{`tool.name == "send" && tool.risk == "write" && tool.effect == "once"`, `{}`, true, ""},
		// Texts.
		{`args.s.lowerAscii() == "ceo@acme.com"`, `{"s":"CEO@acme.com"}`, true, ""},
		{`args.s.split("@")[1] == "acme.com"`, `{"s":"a@acme.com"}`, true, ""},
		{`args.s.matches("^[a-z]+@acme[.]com$")`, `{"s":"a@acme.com"}`, true, ""},
		{`size(args.s) > 3`, `{"s":"éé日本"}`, true, ""},
		{`args.s == "é"`, `{"s":"e\u0301"}`, false, ""},
		{`args.s == "\u202e"`, `{"s":"\u202e"}`, true, ""},
		{`type(args.s) == string`, `{"s":"x"}`, true, ""},
		{`timestamp(args.t) > timestamp("2026-01-01T00:00:00Z")`, `{"t":"2026-02-01T00:00:00Z"}`, true, ""},
		{`timestamp(args.t) > timestamp("2026-01-01T00:00:00Z")`, `{"t":"soon"}`, false, policy.FailureValues},
		// Arguments other than objects.
		{`true`, `[1]`, false, policy.FailureArgs},
		{`true`, `null`, false, policy.FailureArgs},
		{`true`, `{} {}`, false, policy.FailureArgs},
	} {
		got, failure := compile(t, l, tt.expression).Eval(asker(tt.args))

		if got != tt.want || failure != tt.failure {
			t.Errorf("Eval(%s) of %s = %t, %q; want %t, %q", tt.expression, tt.args, got, failure, tt.want, tt.failure)
		}
	}
}

// TestExpensiveExpressions evaluates expressions that read arguments of the
// maximum size repeatedly.
func TestExpensiveExpressions(t *testing.T) {
	t.Parallel()
	l := language(t)
	many, deep := strings.Repeat("1,", 60_000)+"1", strings.Repeat("[", 30)+strings.Repeat("1,", 20_000)+"1"+strings.Repeat("]", 30)
	args := `{"a":[` + many + `],"d":` + deep + `,"s":"` + strings.Repeat("ab", 20_000) + `"}`
	for _, text := range []string{
		`args.a.exists(x, args.a.exists(y, x + y == -1))`,
		`args.a.exists(x, x in args.a && x == 2)`,
		`args.a.exists(x, args.d != args.d)`,
		`args.a.exists(x, args.d == [x])`,
		`args.a.exists(x, args.s.contains("zzz"))`,
		`args.a.exists(x, args.s.lowerAscii() == "")`,
		`args.a.exists(x, args.s.split("b").size() == x + 1)`,
		`args.a.exists(x, args.s.matches("(a+b+)+$") && x == 2)`,
		`args.s.matches("(a?b?){150}c$")`,
		`args.a.exists(x, (args.s + args.s).size() == x)`,
		`args.a.exists(x, args.s < args.s)`,
		`args.a.exists(x, args.s.charAt(x) == "")`,
		`args.a.exists(x, int(args.s) == 1)`,
		`args.a.exists(x, {"a": args.a} == {"a": args.a} && x == 5)`,
		`args.a.all(x, args.a.filter(y, y == x).size() > 0)`,
	} {
		got, failure := compile(t, l, text).Eval(asker(args))

		if got || failure != policy.FailureCost {
			t.Errorf("Eval(%s) = %t, %q; want it stopped", text, got, failure)
		}
	}

	// Together they are limited to the cost of a few.
	s, e := asker(args), compile(t, l, `args.a.exists(x, args.a.exists(y, x + y == -1))`)
	for range 5 {
		e.Eval(s)
	}
	if got, failure := compile(t, l, `true`).Eval(s); got || failure != policy.FailureCost {
		t.Errorf("Eval(true) after all that = %t, %q; want it stopped", got, failure)
	}
}

func TestInvalidExpressions(t *testing.T) {
	t.Parallel()
	l := language(t)
	closed := policy.ShapeOf(json.RawMessage(`{"type":"object","properties":{"to":{},"amount":{}},"additionalProperties":false}`))
	for _, tt := range []struct{ name, expression, want string }{
		{"nothing", "", "is empty"},
		{"white space", " \n", "is empty"},
		{"too long", `"` + strings.Repeat("x", policy.MaxExpressionBytes) + `" == ""`, "has more than 4096 bytes"},
		{"not UTF-8", "args.a == \"\xff\"", "is not UTF-8"},
		{"hidden characters", "args.to == \"\u202ea\"", "contains the invisible character U+202E at byte 12; write it as an escape"},
		{"zero width", "args.to\u200b == 1", "contains the invisible character U+200B at byte 7; write it as an escape"},
		{"no truth", "1 + 1", "must return true or false, not int"},
		{"syntax", "args.to ==", "line 1, column 11: Syntax error: mismatched input '<EOF>'"},
		{"second line", "args.amount > 1 &&\n\tfoo > 2", "line 2, column 2: undeclared reference to 'foo'"},
		{"caret", "args.amount > 1 &&\n\tfoo > 2", "\n   foo > 2\n   ^"},
		{"a long line", "args.amount > 1 " + strings.Repeat(" ", 200) + "&& foo > 2" + strings.Repeat(" ", 200), "\n  " + strings.Repeat(" ", 57) + "&& foo > 2" + strings.Repeat(" ", 53) + "\n  " + strings.Repeat(" ", 60) + "^"},
		{"bare variable", `tool == "x"`, "line 1, column 1: undeclared reference to 'tool'; the names are tool.effect, tool.name, tool.risk, tool.source"},
		{"unknown field", `tool.bogus == "x"`, "; the names are tool.effect, tool.name, tool.risk, tool.source"},
		{"unknown variable", `amount > 3`, "undeclared reference to 'amount'; the names are args, employee.id, employee.known, employee.scopes, "},
		{"misspelt variable", `tool.sourc == "x"`, "undeclared reference to 'tool.sourc'"},
		{"types", `tool.source > 1`, "found no matching overload for '_>_' applied to '(string, int)'"},
		{"shadowing a variable", `args.to.exists(tool, tool == "x")`, "line 1, column 16: the name tool is taken"},
		{"shadowing the arguments", `args.to.exists(args, args.amount > 1)`, "the name args is taken"},
		{"a loop over an object", `args.exists(k, k == "x")`, "found no matching overload"},
		{"loops too deep", `args.to.exists(a, args.to.exists(b, args.to.exists(c, a == b && b == c)))`, "nesting"},
		{"map", `args.to.map(x, x) == []`, "undeclared reference"},
		{"replace", `args.to.replace("a", "b") == ""`, "replace is not a function of rules"},
		{"join", `["a"].join() == ""`, "join is not a function of rules"},
		{"format", `"%s".format([args.to]) == ""`, "format is not a function of rules"},
		{"index of", `args.to.indexOf("a") == 1`, "indexOf is not a function of rules"},
		{"time zones", `timestamp(args.to).getHours("Europe/Berlin") == 1`, "getHours is not a function of rules"},
		{"protocol buffers", `google.protobuf.Int64Value{value: 1} == 1`, "rules cannot create values of a named type"},
		{"the agent's pattern", `args.to.matches(args.amount)`, "line 1, column 16: matches requires a literal regular expression"},
		{"no pattern", `args.to.matches("(")`, "the regular expression cannot be read"},
		{"a large pattern", `args.to.matches("(a{1,1000}){1,1}(b{1,1000})")`, "the regular expression is too large"},
		{"an argument that is not there", `args.ammount > 1`, `line 1, column 5: the tool has no argument "ammount"; it has amount, to`},
		{"the same by index", `args["ammount"] > 1`, `the tool has no argument "ammount"; it has amount, to`},
		{"the same asked for", `has(args.ammount)`, `the tool has no argument "ammount"; it has amount, to`},
	} {
		_, err := l.Compile(tt.expression, closed)

		invalid, ok := errors.AsType[*envelope.InvalidError](err)
		if !ok || !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: Compile = %v, want an *envelope.InvalidError", tt.name, err)
			continue
		}
		f := invalid.Fields[0]
		if f.Pointer != "/expression" || f.Rule != policy.RuleExpression || !strings.Contains(f.Message, tt.want) {
			t.Errorf("%s: Compile = %s %s %s, want it to say %q", tt.name, f.Pointer, f.Rule, f.Message, tt.want)
		}
	}
	for _, good := range []string{`args.to == args["amount"]`, `args.to.exists(t, t.ammount == 1)`, `{"ammount": 1}.ammount == args.amount`} {
		if _, err := l.Compile(good, closed); err != nil {
			t.Errorf("Compile(%s) = %v, want no error", good, err)
		}
	}
}

func TestShapeOf(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]policy.Shape{
		`{"properties":{"b":{},"a":{}},"additionalProperties":false}`:      {Closed: true, Names: []string{"a", "b"}},
		`{"additionalProperties":false}`:                                   {Closed: true},
		`{"properties":{"a":{}}}`:                                          {},
		`{"properties":{"a":{}},"additionalProperties":true}`:              {},
		`{"properties":{"a":{}},"additionalProperties":{"type":"string"}}`: {},
		`{"patternProperties":{"^x":{}},"additionalProperties":false}`:     {},
		`true`: {},
		`{`:    {},
	} {
		if diff := cmp.Diff(want, policy.ShapeOf(json.RawMessage(schema))); diff != "" {
			t.Errorf("ShapeOf(%s) (-want +got):\n%s", schema, diff)
		}
	}
}
