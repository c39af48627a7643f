package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// about returns a set of rules about arguments.
func about(t testing.TB, rules ...policy.ArgumentRule) policy.Arguments {
	t.Helper()
	return policy.CompileArguments(func() (*policy.Language, error) { return policy.NewLanguage() }, rules)
}

// matched returns the rules that apply to arguments under an automation.
func matched(a policy.Arguments, automation, args string) []policy.Match {
	s := asker(args)
	s.Automation = automation
	return a.Match(automation, send(), func() *policy.Subject { return s })
}

func ids(matches []policy.Match) string {
	var all []string
	for _, m := range matches {
		all = append(all, m.Rule)
	}
	return strings.Join(all, " ")
}

func TestMatch(t *testing.T) {
	t.Parallel()
	a := about(t,
		policy.ArgumentRule{ID: "z-all", Key: "*", Expression: "args.n > 1", Mode: "deny"},
		policy.ArgumentRule{ID: "a-tool", Key: "slack:send", Expression: "args.n > 2", Mode: "require_approval"},
		policy.ArgumentRule{ID: "b-source", Key: "slack:*", Expression: "args.n > 3", Mode: "require_approval"},
		policy.ArgumentRule{ID: "c-action", Key: "*:send", Expression: "args.n > 4", Mode: "require_approval"},
		policy.ArgumentRule{ID: "d-other", Key: "slack:read", Expression: "true", Mode: "deny"},
		policy.ArgumentRule{ID: "e-nightly", Automation: "nightly", Key: "slack:send", Expression: "true", Mode: "deny"},
	)
	for _, tt := range []struct{ automation, args, want string }{
		{"", `{"n":1}`, ""},
		{"", `{"n":2}`, "z-all"},
		{"", `{"n":9}`, "a-tool b-source c-action z-all"},
		{"nightly", `{"n":1}`, "e-nightly"},
		{"weekly", `{"n":1}`, ""},
		{"", `{}`, "a-tool b-source c-action z-all"},
	} {
		if got := ids(matched(a, tt.automation, tt.args)); got != tt.want {
			t.Errorf("Match(%q, %s) = %q, want %q", tt.automation, tt.args, got, tt.want)
		}
	}
	if !(policy.Arguments{}).Empty() || a.Empty() {
		t.Error("Empty is wrong")
	}
	for _, unasked := range []policy.Arguments{{}, about(t, policy.ArgumentRule{ID: "x", Key: "mail:*", Expression: "true", Mode: "deny"})} {
		got := unasked.Match("", send(), func() *policy.Subject {
			t.Error("the subject is asked for without a rule about the tool")
			return asker("")
		})
		if got != nil {
			t.Errorf("Match = %v, want nothing", got)
		}
	}
}

// TestRulesNarrow checks the detail of decisions about an allowed tool with
// rules that apply, fail, or cannot be parsed.
func TestRulesNarrow(t *testing.T) {
	t.Parallel()
	const values = "SECRET-7"
	for name, tt := range map[string]struct {
		rule   policy.ArgumentRule
		args   string
		mode   envelope.Mode
		source string
		detail string
	}{
		"does not apply": {policy.ArgumentRule{Key: "*", Expression: "args.n > 1", Mode: "deny"}, `{"n":1}`, envelope.ModeAllow, "org_default", ""},
		"asks":           {policy.ArgumentRule{Key: "*", Expression: "args.n > 1", Mode: "require_approval", Reason: "much"}, `{"n":2}`, envelope.ModeRequireApproval, "org_default+arguments:r", "much"},
		"denies":         {policy.ArgumentRule{Key: "*", Expression: "args.n > 1", Mode: "deny"}, `{"n":2}`, envelope.ModeDeny, "org_default+arguments:r", ""},
		"fails by its own mode": {policy.ArgumentRule{Key: "*", Expression: "args.n > 1", Mode: "require_approval"}, `{"n":"SECRET-7"}`, envelope.ModeRequireApproval,
			"org_default+arguments:r", "counts as true: something that it needs is missing or of another kind"},
		"fails with a reason": {policy.ArgumentRule{Key: "*", Expression: "args.n > 1", Mode: "deny", Reason: "much"}, `{}`, envelope.ModeDeny,
			"org_default+arguments:r", "much (counts as true: something that it needs is missing or of another kind)"},
		"does not compile":    {policy.ArgumentRule{Key: "*", Expression: "no.such()", Mode: "require_approval"}, `{}`, envelope.ModeDeny, "org_default+rule_error:r", "this version cannot read the expression"},
		"too long to compile": {policy.ArgumentRule{Key: "*", Expression: strings.Repeat(" ", policy.MaxExpressionBytes) + "false", Mode: "require_approval"}, `{}`, envelope.ModeDeny, "org_default+rule_error:r", "this version cannot read the expression"},
		"an unknown mode":     {policy.ArgumentRule{Key: "*", Expression: "true", Mode: "ask_twice"}, `{}`, envelope.ModeDeny, "org_default+unknown_mode:ask_twice", "unknown_mode:ask_twice"},
		"a mode that allows":  {policy.ArgumentRule{Key: "*", Expression: "true", Mode: "allow"}, `{}`, envelope.ModeDeny, "org_default+unknown_mode:allow", "unknown_mode:allow"},
		"an unreadable key":   {policy.ArgumentRule{Key: "sl*ck", Expression: "true", Mode: "require_approval"}, `{}`, envelope.ModeDeny, "org_default+unknown_key:sl*ck", "rule key cannot be read"},
	} {
		tt.rule.ID, tt.rule.Version = "r", "7"

		got := policy.Decide(policy.Input{
			Key: send(), Risk: policy.RiskWrite, Organisation: rules("allow"), Matches: matched(about(t, tt.rule), "", tt.args),
		})

		if got.Mode != tt.mode || got.Source != tt.source {
			t.Errorf("%s: Decide = %s from %s, want %s from %s", name, got.Mode, got.Source, tt.mode, tt.source)
		}
		want := policy.Step{Layer: policy.LayerArguments}
		if tt.mode != envelope.ModeAllow {
			want = policy.Step{Layer: policy.LayerArguments, Said: tt.mode, Rule: "r", Tool: tt.rule.Key, Version: "7", Detail: tt.detail}
		}
		if diff := cmp.Diff(want, got.Trace[8]); diff != "" {
			t.Errorf("%s: step (-want +got):\n%s", name, diff)
		}
		if strings.Contains(string(got.TraceJSON), values) {
			t.Errorf("%s: the trace repeats an argument: %s", name, got.TraceJSON)
		}
	}
}

func TestEveryRuleThatAppliesHasAStep(t *testing.T) {
	t.Parallel()
	a := about(t,
		policy.ArgumentRule{ID: "b", Key: "*", Expression: "true", Mode: "require_approval", Version: "2"},
		policy.ArgumentRule{ID: "a", Key: "slack:*", Expression: "true", Mode: "deny", Version: "1"},
		policy.ArgumentRule{ID: "c", Key: "*", Expression: "false", Mode: "deny", Version: "3"},
	)
	in := policy.Input{Key: send(), Risk: policy.RiskRead, Matches: matched(a, "", "{}")}

	got := policy.Decide(in)

	want := []policy.Step{
		{Layer: policy.LayerArguments, Said: envelope.ModeDeny, Rule: "a", Tool: "slack:*", Version: "1"},
		{Layer: policy.LayerArguments, Said: envelope.ModeRequireApproval, Rule: "b", Tool: "*", Version: "2"},
		{Layer: policy.LayerSession},
	}
	if diff := cmp.Diff(want, got.Trace[8:11]); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got.Mode != envelope.ModeDeny || got.Source != "inferred_default+arguments:a+arguments:b" {
		t.Errorf("Decide = %s from %s", got.Mode, got.Source)
	}
	in.Matches = in.Matches[:1]
	if other := policy.Decide(in); other.ID == got.ID {
		t.Error("two decisions for other reasons have the same id")
	}
}

func TestCheckOfARule(t *testing.T) {
	t.Parallel()
	l := language(t)
	good := policy.ArgumentRule{ID: "r", Key: "slack:*", Expression: "args.n > 1", Mode: "deny"}
	with := func(fn func(r *policy.ArgumentRule)) policy.ArgumentRule {
		r := good
		fn(&r)
		return r
	}
	if err := good.Check(l, policy.Shape{}); err != nil {
		t.Errorf("Check = %v, want no error", err)
	}
	for name, tt := range map[string]struct {
		rule policy.ArgumentRule
		want string
	}{
		"a key":         {with(func(r *policy.ArgumentRule) { r.Key = "sl*ck:x" }), "the pattern of tools must be"},
		"a mode":        {with(func(r *policy.ArgumentRule) { r.Mode = "odd" }), "mode must be require_approval or deny"},
		"allow":         {with(func(r *policy.ArgumentRule) { r.Mode = "allow" }), "set the mode allow for the tool"},
		"an expression": {with(func(r *policy.ArgumentRule) { r.Expression = "1" }), "must return true or false"},
		"a reason":      {with(func(r *policy.ArgumentRule) { r.Reason = strings.Repeat("é", 201) }), "at most 200 characters"},
	} {
		if err := tt.rule.Check(l, policy.Shape{}); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Check = %v, want fault.Invalid with %q", name, err, tt.want)
		}
	}
}

func TestFailedLanguageDenies(t *testing.T) {
	t.Parallel()
	a := policy.CompileArguments(func() (*policy.Language, error) { return nil, errors.New("no language") },
		[]policy.ArgumentRule{{ID: "r", Key: "*", Expression: "false", Mode: "require_approval"}})

	got := policy.Decide(policy.Input{Key: send(), Risk: policy.RiskRead, Matches: matched(a, "", "{}")})

	if got.Mode != envelope.ModeDeny || got.Source != "inferred_default+rule_error:r" {
		t.Errorf("Decide = %s from %s, want deny", got.Mode, got.Source)
	}
}
