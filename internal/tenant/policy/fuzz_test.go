package policy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// FuzzExpression compiles any text and, where it compiles, holds it against
// any arguments: it answers, and what it says of a failure holds nothing of
// them.
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

// FuzzPins pins what is in arguments: they hold, and no others do.
func FuzzPins(f *testing.F) {
	f.Add(`{"to":["a",{"b/c":1.0}]}`, "/to/1/b~1c", `{"to":["a",{"b/c":1}]}`)
	f.Add(`{"":{"~":null}}`, "//~0", `{}`)
	f.Add(`[1,2]`, "/1", `[1,3]`)
	f.Fuzz(func(t *testing.T, args, pointer, other string) {
		canonical, err := envelope.Canonical([]byte(args))
		if err != nil {
			return
		}
		values, err := policy.PinsOf(canonical, pointer)
		if err != nil {
			return
		}
		pins, err := policy.ParsePins(values)
		if err != nil {
			if len(args) > policy.MaxPinBytes/2 {
				return
			}
			t.Fatalf("ParsePins of %s = %v", values, err)
		}
		if !pins.Hold(json.RawMessage(args)) {
			t.Fatalf("%s does not hold %s", args, values)
		}
		if strings.TrimSpace(other) == "" || !pins.Hold(json.RawMessage(other)) {
			return
		}
		same, err := policy.PinsOf(json.RawMessage(other), pointer)
		if err != nil || string(same[pointer]) != string(values[pointer]) {
			t.Fatalf("%s holds %s, and has %s there, %v", other, values, same[pointer], err)
		}
	})
}
