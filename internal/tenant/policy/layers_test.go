package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// rank orders modes by their strictness.
func rank(m envelope.Mode) int {
	switch m {
	case envelope.ModeAllow:
		return 0
	case envelope.ModeRequireApproval:
		return 1
	case envelope.ModeDeny:
		return 2
	}
	return 3
}

// TestDangerMode checks that danger is denied unless its mode is exactly
// require_approval, and that other risks are not affected.
func TestDangerMode(t *testing.T) {
	t.Parallel()
	modes := map[policy.ToolRisk]envelope.Mode{"read": envelope.ModeAllow, "write": envelope.ModeRequireApproval, "danger": envelope.ModeDeny, "odd": envelope.ModeDeny}
	for _, danger := range []envelope.Mode{"", "deny", "require_approval", "allow", "odd"} {
		for risk, want := range modes {
			if risk == policy.RiskDanger && danger == envelope.ModeRequireApproval {
				want = envelope.ModeRequireApproval
			}
			if got := policy.Decide(policy.Input{Key: policy.Key{Source: "a", Action: "b"}, Risk: risk, Danger: danger}).Mode; got != want {
				t.Errorf("risk %q where danger is %q = %s, want %s", risk, danger, got, want)
			}
		}
	}
}

func TestNarrowingLayers(t *testing.T) {
	t.Parallel()
	off := func(key string) policy.Rules {
		return policy.Compile([]policy.Rule{{Key: key, Mode: "deny", Version: "4"}})
	}
	many := []string{"a:*", "b:*", "c:*", "d:*", "e:*", "f:*", "g:*"}
	for name, tt := range map[string]struct {
		change func(in *policy.Input)
		mode   envelope.Mode
		source string
		step   policy.Step
	}{
		"a session that may": {func(in *policy.Input) { in.Session = rules("allow") }, envelope.ModeAllow, "org_default",
			policy.Step{Layer: "session_capability", Said: "allow", Tool: "*"}},
		"a session that must ask": {func(in *policy.Input) { in.Session = rules("require_approval") }, envelope.ModeRequireApproval, "org_default+session_capability",
			policy.Step{Layer: "session_capability", Said: "require_approval", Tool: "*"}},
		"a session that may not": {func(in *policy.Input) {
			in.Session = policy.Compile([]policy.Rule{{Key: "*", Mode: "allow"}, {Key: "slack:send", Mode: "deny", Version: "9"}})
		}, envelope.ModeDeny, "org_default+session_capability", policy.Step{Layer: "session_capability", Said: "deny", Tool: "slack:send", Version: "9"}},
		"a session's unknown mode": {func(in *policy.Input) { in.Session = rules("odd") }, envelope.ModeDeny, "org_default+unknown_mode:odd",
			policy.Step{Layer: "session_capability", Said: "deny", Tool: "*", Detail: "unknown_mode:odd"}},
		"a session's unknown key": {func(in *policy.Input) { in.Session = policy.Compile([]policy.Rule{{Key: "x", Mode: "allow"}}) }, envelope.ModeDeny, "org_default+unknown_key:x",
			policy.Step{Layer: "session_capability", Said: "deny", Tool: "x", Detail: "rule key cannot be read"}},
		"switched off for all": {func(in *policy.Input) { in.Everybody, in.Personal = off("slack:*"), off("*") }, envelope.ModeDeny, "org_default+user_preference",
			policy.Step{Layer: "user_preference", Said: "deny", Tool: "slack:*", Version: "4", Detail: "switched off for everybody"}},
		"switched off for one": {func(in *policy.Input) { in.Everybody, in.Personal = off("mail:*"), off("*:send") }, envelope.ModeDeny, "org_default+user_preference",
			policy.Step{Layer: "user_preference", Said: "deny", Tool: "*:send", Version: "4", Detail: "switched off for this employee"}},
		"a token for the tool": {func(in *policy.Input) { in.Tools = []string{"mail:*", "*:send"} }, envelope.ModeAllow, "org_default", policy.Step{Layer: "token_scope"}},
		"a token for others": {func(in *policy.Input) { in.Tools = []string{"mail:*", "slack:read"} }, envelope.ModeDeny, "org_default+token_scope",
			policy.Step{Layer: "token_scope", Said: "deny", Detail: "the token is for mail:*, slack:read"}},
		"a token for many": {func(in *policy.Input) { in.Tools = many }, envelope.ModeDeny, "org_default+token_scope",
			policy.Step{Layer: "token_scope", Said: "deny", Detail: "the token is for a:*, b:*, c:*, d:*, e:* and 2 more"}},
		"a token for nothing": {func(in *policy.Input) { in.Tools = []string{} }, envelope.ModeDeny, "org_default+token_scope",
			policy.Step{Layer: "token_scope", Said: "deny", Detail: "the token is for no tool"}},
		"a token nobody can read": {func(in *policy.Input) { in.Tools = []string{"sl*ck:send", "slack"} }, envelope.ModeDeny, "org_default+token_scope",
			policy.Step{Layer: "token_scope", Said: "deny", Detail: "the token is for sl*ck:send, slack"}},
		"quarantine": {func(in *policy.Input) { in.Quarantined = true }, envelope.ModeDeny, "org_default+quarantine",
			policy.Step{Layer: "quarantine", Said: "deny", Detail: "nobody has accepted the tool, or its source"}},
	} {
		in := policy.Input{Key: send(), Organisation: rules("allow"), Risk: policy.RiskWrite}
		tt.change(&in)

		got := policy.Decide(in)

		if got.Mode != tt.mode || got.Source != tt.source {
			t.Errorf("%s: Decide = %s from %s, want %s from %s", name, got.Mode, got.Source, tt.mode, tt.source)
		}
		var step policy.Step
		for _, s := range got.Trace {
			if s.Layer == tt.step.Layer {
				step = s
			}
		}
		if diff := cmp.Diff(tt.step, step); diff != "" {
			t.Errorf("%s: step (-want +got):\n%s", name, diff)
		}
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	const detail = "not asked, since "
	for name, tt := range map[string]struct {
		change func(in *policy.Input)
		mode   envelope.Mode
		source string
		detail string
	}{
		"what waits for a person": {func(*policy.Input) {}, envelope.ModeAllow, "inferred_default+grant:g-1", "let through beforehand"},
		"what a rule asks for": {func(in *policy.Input) {
			in.Organisation, in.Session = rules("allow"), rules("require_approval")
			in.Matches = []policy.Match{{Rule: "r", Key: "*", Mode: "require_approval"}}
		}, envelope.ModeAllow, "org_default+arguments:r+session_capability+grant:g-1", "let through beforehand"},
		"what is above the trust":    {func(in *policy.Input) { in.Trust = policy.TrustNone }, envelope.ModeAllow, "inferred_default+grant:g-1", "let through beforehand"},
		"what is allowed":            {func(in *policy.Input) { in.Organisation = rules("allow") }, envelope.ModeAllow, "org_default", "holds, and changes nothing"},
		"what is denied":             {func(in *policy.Input) { in.Organisation = rules("deny") }, envelope.ModeDeny, "org_default", "holds, and changes nothing"},
		"what a rule denies":         {func(in *policy.Input) { in.Matches = []policy.Match{{Rule: "r", Key: "*", Mode: "deny"}} }, envelope.ModeDeny, "inferred_default+arguments:r", "holds, and changes nothing"},
		"who must not be written to": {func(in *policy.Input) { in.Listed = true }, envelope.ModeDeny, "inferred_default+do_not_contact", "holds, and changes nothing"},
		"what the agent asked for":   {func(in *policy.Input) { in.AskedApproval = true }, envelope.ModeRequireApproval, "inferred_default", detail + "the agent asked for a person"},
		"what has drifted":           {func(in *policy.Input) { in.Drifted = true }, envelope.ModeRequireApproval, "inferred_default", detail + "the definition is not the accepted one"},
		"what two must approve":      {func(in *policy.Input) { in.Quorum = 2 }, envelope.ModeRequireApproval, "inferred_default", detail + "2 people must approve"},
		"what one must approve":      {func(in *policy.Input) { in.Quorum = 1 }, envelope.ModeAllow, "inferred_default+grant:g-1", "let through beforehand"},
		"a key that names no tool":   {func(in *policy.Input) { in.Key.Action = "" }, envelope.ModeDeny, "invalid_key", "holds, and changes nothing"},
	} {
		in := policy.Input{Key: send(), Risk: policy.RiskWrite, Grant: policy.GrantFound{ID: "g-1", Version: "5"}}
		tt.change(&in)

		got := policy.Decide(in)

		if got.Mode != tt.mode || got.Source != tt.source {
			t.Errorf("%s: Decide = %s from %s, want %s from %s", name, got.Mode, got.Source, tt.mode, tt.source)
		}
		want := policy.Step{Layer: policy.LayerGrant, Rule: "g-1", Version: "5", Detail: tt.detail}
		if strings.HasSuffix(tt.source, "+grant:g-1") {
			want.Said = envelope.ModeAllow
		}
		if diff := cmp.Diff(want, got.Trace[len(got.Trace)-1]); diff != "" {
			t.Errorf("%s: step (-want +got):\n%s", name, diff)
		}
	}
}

// anyInput generates an input in which every layer may answer, with any stored
// text.
func anyInput(t *rapid.T) policy.Input {
	mode := rapid.SampledFrom([]string{"allow", "require_approval", "deny", "odd", ""})
	set := func(name string) policy.Rules {
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) policy.Rule {
			return policy.Rule{
				Key:     rapid.SampledFrom([]string{"*", "slack:*", "*:send", "slack:send", "mail:*", "sl*ck", ""}).Draw(t, "key"),
				Mode:    mode.Draw(t, "mode"),
				Version: rapid.SampledFrom([]string{"", "1"}).Draw(t, "version"),
			}
		}), 0, 2).Draw(t, name)
		return policy.Compile(rows)
	}
	in := policy.Input{
		Key: send(), Automation: set("automation"), Organisation: set("organisation"),
		Risk:          rapid.SampledFrom([]policy.ToolRisk{policy.RiskRead, policy.RiskWrite, policy.RiskDanger, "odd"}).Draw(t, "risk"),
		AskedApproval: rapid.Bool().Draw(t, "asked"), Drifted: rapid.Bool().Draw(t, "drifted"), Listed: rapid.Bool().Draw(t, "listed"),
		Trust:        rapid.SampledFrom([]policy.Trust{"", policy.TrustNone, policy.TrustHigh, "odd"}).Draw(t, "trust"),
		EnvelopeRisk: rapid.SampledFrom([]envelope.Risk{envelope.RiskLow, envelope.RiskHigh, ""}).Draw(t, "envelope risk"),
		Session:      set("session"), Everybody: set("everybody"), Personal: set("personal"),
		Tools:       rapid.SampledFrom([][]string{nil, {}, {"slack:*"}, {"mail:*"}, {"odd"}}).Draw(t, "tools"),
		Quarantined: rapid.Bool().Draw(t, "quarantined"), Quorum: rapid.IntRange(0, 3).Draw(t, "quorum"),
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "matches") {
		in.Matches = append(in.Matches, policy.Match{
			Rule: fmt.Sprint("r", i), Key: rapid.SampledFrom([]string{"*", "odd"}).Draw(t, "key"), Mode: mode.Draw(t, "mode"),
			Broken: rapid.Bool().Draw(t, "broken"), Failure: rapid.SampledFrom([]policy.Failure{"", policy.FailureCost}).Draw(t, "failure"),
		})
	}
	return in
}

// TestNoLayerLoosens removes the layers one by one: a decision is then never
// stricter.
func TestNoLayerLoosens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		got := policy.Decide(in).Mode
		for name, without := range map[string]func(in *policy.Input){
			"asked":      func(in *policy.Input) { in.AskedApproval = false },
			"drift":      func(in *policy.Input) { in.Drifted = false },
			"listed":     func(in *policy.Input) { in.Listed = false },
			"trust":      func(in *policy.Input) { in.Trust = "" },
			"arguments":  func(in *policy.Input) { in.Matches = nil },
			"a match":    func(in *policy.Input) { in.Matches = in.Matches[:len(in.Matches)/2] },
			"session":    func(in *policy.Input) { in.Session = policy.Rules{} },
			"everybody":  func(in *policy.Input) { in.Everybody = policy.Rules{} },
			"personal":   func(in *policy.Input) { in.Personal = policy.Rules{} },
			"token":      func(in *policy.Input) { in.Tools = nil },
			"quarantine": func(in *policy.Input) { in.Quarantined = false },
			"all of them": func(in *policy.Input) {
				*in = policy.Input{Key: in.Key, Automation: in.Automation, Organisation: in.Organisation, Risk: in.Risk}
			},
		} {
			less := in
			without(&less)
			if loose := policy.Decide(less).Mode; rank(loose) > rank(got) {
				t.Fatalf("without %s the decision is %s, and with it %s", name, loose, got)
			}
		}
	})
}

// TestOnlyGrantsLoosen compares decisions with and without a grant: a grant only
// turns require_approval into allow, unless a person must review this very call.
func TestOnlyGrantsLoosen(t *testing.T) {
	t.Parallel()
	decider := policy.NewDecider()
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		without := policy.Decide(in)
		in.Grant = policy.GrantFound{ID: "g", Version: "1"}
		with := policy.Decide(in)

		loosened := without.Mode == envelope.ModeRequireApproval && !in.AskedApproval && !in.Drifted && in.Quorum <= 1
		if loosened != (with.Mode != without.Mode) || loosened && with.Mode != envelope.ModeAllow {
			t.Fatalf("%s from %s becomes %s from %s with a grant; asked: %t, drifted: %t, quorum: %d",
				without.Mode, without.Source, with.Mode, with.Source, in.AskedApproval, in.Drifted, in.Quorum)
		}
		if without.Mode == envelope.ModeDeny && with.Mode != envelope.ModeDeny {
			t.Fatal("a grant lets through what is denied")
		}
		if diff := cmp.Diff(with, decider.Decide(in)); diff != "" {
			t.Fatalf("a Decider differs (-Decide +Decider):\n%s", diff)
		}
		if !json.Valid(with.TraceJSON) {
			t.Fatalf("the trace is no JSON: %s", with.TraceJSON)
		}
	})
}

// TestRulesNeverLoosen generates arguments that match a rule and arguments that
// do not.
func TestRulesNeverLoosen(t *testing.T) {
	t.Parallel()
	expressions := []string{
		`args.n > 100`, `args.to.exists(t, !t.endsWith("@acme.com"))`, `args.flag`, `has(args.n) && args.n == 1`, `"x" in args`,
		`args.to.all(t, t.contains("@")) || args.n / args.m > 2`, `type(args.n) != int`, `employee.known`, `no.such`, ``,
	}
	value := rapid.SampledFrom([]any{nil, true, 0, 1, 101, -1.5, 1e308, json.Number("1e400"), json.Number("99999999999999999999"), "", "x", "NaN", "a@acme.com",
		[]any{}, []any{"a@acme.com"}, []any{"b@evil.com", 7}, map[string]any{"a@acme.com": 1}})
	rapid.Check(t, func(t *rapid.T) {
		args := map[string]any{}
		for _, name := range []string{"n", "m", "to", "flag", "x"} {
			if rapid.Bool().Draw(t, "has") {
				args[name] = value.Draw(t, name)
			}
		}
		text, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		in := policy.Input{Key: send(), Organisation: rules(rapid.SampledFrom([]string{"allow", "require_approval", "deny"}).Draw(t, "organisation"))}
		before := policy.Decide(in).Mode
		a := policy.CompileArguments(policy.NewLanguage, []policy.ArgumentRule{{
			ID: "r", Key: "*", Expression: rapid.SampledFrom(expressions).Draw(t, "expression"),
			Mode: rapid.SampledFrom([]string{"allow", "require_approval", "deny", "odd"}).Draw(t, "mode"),
		}})
		in.Matches = a.Match("", send(), func() *policy.Subject { return asker(string(text)) })

		if after := policy.Decide(in).Mode; rank(after) < rank(before) {
			t.Fatalf("a rule made %s of %s", after, before)
		}
	})
}
