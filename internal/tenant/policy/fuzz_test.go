package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// FuzzExpression compiles any text and, if it compiles, evaluates it for any
// arguments: it ends, and the text of a failure does not contain the arguments.
func FuzzExpression(f *testing.F) {
	for _, seed := range [][2]string{
		{`args.amount > 100`, `{"amount":101}`},
		{`args.to.exists(t, !t.endsWith("@acme.com"))`, `{"to":["a@acme.com",1,{"b":[2.5]}]}`},
		{`has(args.a) && args.a.b[0] == {"c": [1, 2.0, null]}`, `{"a":{"b":[{"c":[1,2,null]}]}}`},
		{`args.s.matches("^(a|b)+$") || "x" in args ? tool.name == "send" : employee.known`, `{"s":"abab"}`},
		{`double(args.n) < 1e308 * 10.0`, `{"n":"-Infinity"}`},
		{`args.t.filter(x, x > timestamp("2026-01-01T00:00:00Z")).size() == 0`, `{"t":[]}`},
		{`{"a": args}["a"].b == b"\xff"`, `{"b":1e400}`},
	} {
		f.Add(seed[0], seed[1])
	}
	l := language(f)
	f.Fuzz(func(t *testing.T, text, args string) {
		e, err := l.Compile(text, policy.ShapeOf(json.RawMessage(args)))
		if err != nil {
			if invalid, ok := errors.AsType[*envelope.InvalidError](err); !ok || invalid.Fields[0].Pointer != "/expression" {
				t.Fatalf("Compile = %v, want an *envelope.InvalidError at /expression", err)
			}
			return
		}
		applies, failure := e.Eval(asker(args))
		again, sameFailure := e.Eval(asker(args))
		if applies != again || failure != sameFailure {
			t.Fatalf("Eval = %t, %q and then %t, %q", applies, failure, again, sameFailure)
		}
		switch failure {
		case "":
		case policy.FailureArgs, policy.FailureCost, policy.FailureType, policy.FailureValues:
			if applies {
				t.Fatal("Eval fails and is true")
			}
		default:
			t.Fatalf("Eval = %q, which is none of the failures", failure)
		}
	})
}

// FuzzPins loosens a member of arguments: they are covered, and other arguments
// are if and only if they differ only in that member.
func FuzzPins(f *testing.F) {
	f.Add(`{"to":["a",{"b/c":1.0}],"n":1}`, "/n", `{"to":["a",{"b/c":1}]}`)
	f.Add(`{"":{"~":null}}`, "//~0", `{"":{}}`)
	f.Add(`{"a":{"b":1,"c":[]}}`, "/a/b", `{"a":{"c":[]}}`)
	f.Fuzz(func(t *testing.T, args, pointer, other string) {
		if _, err := jsonref.DecodeObject([]byte(args)); err != nil || pointer == policy.Everything {
			return
		}
		values, loose, err := policy.Exactly([]byte(args), pointer)
		if err != nil {
			return
		}
		pins, err := policy.ParsePins(values, loose)
		if err != nil {
			if len(args) > policy.MaxPinBytes/2 {
				return
			}
			t.Fatalf("ParsePins of %s = %v", values, err)
		}
		if !pins.Hold(json.RawMessage(args)) {
			t.Fatalf("%s does not hold %s", args, values)
		}
		if !pins.Hold(json.RawMessage(other)) || strings.TrimSpace(other) == "" {
			return
		}
		same, _, err := policy.Exactly([]byte(other), pointer)
		if err != nil { // it lacks the member
			same, _, err = policy.Exactly([]byte(other))
		}
		if err != nil || string(same[policy.Everything]) != string(values[policy.Everything]) {
			t.Fatalf("%s holds %s, and is %s without %s, %v", other, values, same, pointer, err)
		}
	})
}
