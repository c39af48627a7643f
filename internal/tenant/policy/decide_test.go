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

func send() policy.Key { return policy.Key{Source: "slack", Action: "send"} }

// rules returns a set with one rule for everything, or none.
func rules(mode string) policy.Rules {
	if mode == "none" {
		return policy.Rules{}
	}
	return policy.Compile([]policy.Rule{{Key: "*", Mode: mode}})
}

// TestEveryCombination specifies the precedence a second time, as briefly as
// possible, and compares it with the cascade over the whole cross product.
func TestEveryCombination(t *testing.T) {
	t.Parallel()

	stored := []string{"none", "allow", "require_approval", "deny", "bogus"}
	base := func(automation, organisation string, risk policy.ToolRisk) (envelope.Mode, string) {
		for _, rule := range []struct{ mode, layer string }{
			{automation, "automation_override"}, {organisation, "org_default"},
		} {
			switch rule.mode {
			case "none":
			case "bogus":
				return envelope.ModeDeny, "unknown_mode:bogus"
			default:
				return envelope.Mode(rule.mode), rule.layer
			}
		}
		switch risk {
		case policy.RiskRead:
			return envelope.ModeAllow, "inferred_default"
		case policy.RiskWrite:
			return envelope.ModeRequireApproval, "inferred_default"
		case policy.RiskDanger:
			return envelope.ModeDeny, "inferred_default"
		}
		return envelope.ModeDeny, "unknown_risk:" + string(risk)
	}

	decider := policy.NewDecider()
	for _, automation := range stored {
		for _, organisation := range stored {
			for _, risk := range []policy.ToolRisk{policy.RiskRead, policy.RiskWrite, policy.RiskDanger, "", "odd"} {
				for _, asked := range []bool{false, true} {
					for _, drifted := range []bool{false, true} {
						mode, source := base(automation, organisation, risk)
						if mode == envelope.ModeAllow && asked {
							source += "+asked_approval"
						}
						if mode == envelope.ModeAllow && drifted {
							source += "+drift"
						}
						if mode == envelope.ModeAllow && (asked || drifted) {
							mode = envelope.ModeRequireApproval
						}
						in := policy.Input{
							Key: send(), Automation: rules(automation), Organisation: rules(organisation),
							Risk: risk, AskedApproval: asked, Drifted: drifted,
						}
						name := fmt.Sprintf("%s/%s/%q/asked=%t/drifted=%t", automation, organisation, risk, asked, drifted)

						got := policy.Decide(in)

						if got.Mode != mode || got.Source != source {
							t.Errorf("%s: Decide = %s from %s, want %s from %s", name, got.Mode, got.Source, mode, source)
						}
						for range 2 {
							if diff := cmp.Diff(got, decider.Decide(in)); diff != "" {
								t.Errorf("%s: a Decider differs (-Decide +Decider):\n%s", name, diff)
							}
						}
					}
				}
			}
		}
	}
}

func TestTraceNamesEveryLayer(t *testing.T) {
	t.Parallel()

	got := policy.Decide(policy.Input{
		Key:          send(),
		Organisation: policy.Compile([]policy.Rule{{Key: "slack:*", Mode: "allow", Version: "7"}}),
		Risk:         policy.RiskWrite,
		Drifted:      true,
		Trust:        policy.TrustLow, EnvelopeRisk: envelope.RiskLow,
		MissingScopes: []string{"chat:write", "chat:read"}, Listed: true,
	})

	want := []policy.Step{
		{Layer: "automation_override"},
		{Layer: "org_default", Said: envelope.ModeAllow, Tool: "slack:*", Version: "7"},
		{Layer: "inferred_default", Said: envelope.ModeRequireApproval, Detail: "risk write"},
		{Layer: "asked_approval"},
		{Layer: "drift", Said: envelope.ModeRequireApproval, Detail: "definition is not the accepted one"},
		{Layer: "trust", Detail: "trusted with low"},
		{Layer: "scopes", Said: envelope.ModeDeny, Detail: "missing chat:write, chat:read"},
		{Layer: "do_not_contact", Said: envelope.ModeDeny, Detail: "a recipient is on the list"},
		{Layer: "arguments"},
		{Layer: "session_capability"},
		{Layer: "user_preference"},
		{Layer: "token_scope"},
		{Layer: "quarantine"},
		{Layer: "always_person"},
		{Layer: "grant"},
	}
	if diff := cmp.Diff(want, got.Trace); diff != "" {
		t.Errorf("Trace differs (-want +got):\n%s", diff)
	}
	const text = `[{"layer":"automation_override"},` +
		`{"layer":"org_default","said":"allow","tool":"slack:*","version":"7"},` +
		`{"layer":"inferred_default","said":"require_approval","detail":"risk write"},` +
		`{"layer":"asked_approval"},` +
		`{"layer":"drift","said":"require_approval","detail":"definition is not the accepted one"},` +
		`{"layer":"trust","detail":"trusted with low"},` +
		`{"layer":"scopes","said":"deny","detail":"missing chat:write, chat:read"},` +
		`{"layer":"do_not_contact","said":"deny","detail":"a recipient is on the list"},` +
		`{"layer":"arguments"},{"layer":"session_capability"},{"layer":"user_preference"},{"layer":"token_scope"},{"layer":"quarantine"},{"layer":"always_person"},{"layer":"grant"}]`
	if string(got.TraceJSON) != text {
		t.Errorf("TraceJSON = %s, want %s", got.TraceJSON, text)
	}
	if got.Source != "org_default+drift+scopes+do_not_contact" {
		t.Errorf("Source = %s, want org_default+drift", got.Source)
	}
}

func TestOverruledLayersAreStillTraced(t *testing.T) {
	t.Parallel()

	got := policy.Decide(policy.Input{
		Key: send(), Automation: rules("allow"), Organisation: rules("deny"), Risk: policy.RiskDanger,
	})

	if got.Mode != envelope.ModeAllow || got.Source != policy.LayerAutomation {
		t.Errorf("Decide = %s from %s, want the automation's allow", got.Mode, got.Source)
	}
	for i, want := range []envelope.Mode{envelope.ModeAllow, envelope.ModeDeny, envelope.ModeDeny} {
		if said := got.Trace[i].Said; said != want {
			t.Errorf("layer %s said %q, want %q", got.Trace[i].Layer, said, want)
		}
	}
}

// TestNothingReplacesThePerson checks that neither modes nor a grant allow a call
// of a tool that a person always approves, and that denials stay.
func TestNothingReplacesThePerson(t *testing.T) {
	t.Parallel()
	for _, automation := range []string{"none", "allow", "require_approval", "deny"} {
		for _, organisation := range []string{"none", "allow", "require_approval", "deny"} {
			in := policy.Input{
				Key: send(), Automation: rules(automation), Organisation: rules(organisation), Risk: policy.RiskRead, Grant: policy.GrantFound{ID: "g-1"},
			}
			without := policy.Decide(in).Mode
			want := without
			if want == envelope.ModeAllow {
				want = envelope.ModeRequireApproval
			}
			in.Person = true

			if got := policy.Decide(in); got.Mode != want || got.Trace[len(got.Trace)-1].Said != "" {
				t.Errorf("%s, %s: Decide = %s (%s), want %s", automation, organisation, got.Mode, got.TraceJSON, want)
			}
		}
	}
}

func TestInvalidValuesAreDenied(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("é", 50)
	for name, test := range map[string]struct {
		in     policy.Input
		source string
	}{
		"nothing at all":        {policy.Input{}, "invalid_key"},
		"no action":             {policy.Input{Key: policy.Key{Source: "s"}, Automation: rules("allow"), Risk: policy.RiskRead}, "invalid_key"},
		"a wildcard for a tool": {policy.Input{Key: policy.Key{Source: "s", Action: "*"}, Automation: rules("allow"), Risk: policy.RiskRead}, "invalid_key"},
		"no risk":               {policy.Input{Key: send()}, "unknown_risk:"},
		"an empty mode":         {policy.Input{Key: send(), Risk: policy.RiskRead, Automation: rules("")}, "unknown_mode:"},
		"a long mode":           {policy.Input{Key: send(), Risk: policy.RiskRead, Automation: rules(long)}, "unknown_mode:" + long[:2*40]},
		"an unprintable mode":   {policy.Input{Key: send(), Risk: policy.RiskRead, Organisation: rules("a\x00\n\xff\u202eb c")}, "unknown_mode:ab c"},
		"a rule key beside a good rule": {
			policy.Input{Key: send(), Risk: policy.RiskRead, Organisation: policy.Compile([]policy.Rule{
				{Key: "slack:send", Mode: "allow"}, {Key: "sl*ck\n:send", Mode: "allow"},
			})},
			"unknown_key:sl*ck:send",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := policy.Decide(test.in)

			if got.Mode != envelope.ModeDeny || got.Source != test.source {
				t.Errorf("Decide = %s from %q, want deny from %q", got.Mode, got.Source, test.source)
			}
			if !json.Valid(got.TraceJSON) || len(got.Trace) != 15 {
				t.Errorf("Trace = %s, want fifteen steps", got.TraceJSON)
			}
		})
	}
}

func TestStricter(t *testing.T) {
	t.Parallel()

	allow, ask, deny := envelope.ModeAllow, envelope.ModeRequireApproval, envelope.ModeDeny
	for _, test := range []struct{ a, b, want envelope.Mode }{
		{allow, allow, allow}, {allow, ask, ask}, {allow, deny, deny}, {ask, ask, ask}, {ask, deny, deny},
		{deny, deny, deny}, {allow, "", deny}, {ask, "bogus", deny},
	} {
		if got := policy.Stricter(test.a, test.b); got != test.want {
			t.Errorf("Stricter(%q, %q) = %q, want %q", test.a, test.b, got, test.want)
		}
		if got := policy.Stricter(test.b, test.a); got != test.want {
			t.Errorf("Stricter(%q, %q) = %q, want %q", test.b, test.a, got, test.want)
		}
	}
}

// TestNarrowingNeverLoosens generates stored rows, valid and invalid, and adds
// the narrowing layers one after the other.
func TestNarrowingNeverLoosens(t *testing.T) {
	t.Parallel()

	row := rapid.Custom(func(t *rapid.T) policy.Rule {
		return policy.Rule{
			Key:     rapid.SampledFrom([]string{"*", "*:*", "slack:*", "*:send", "slack:send", "mail:send", "sl*:x", ""}).Draw(t, "key"),
			Mode:    rapid.OneOf(rapid.SampledFrom([]string{"allow", "require_approval", "deny"}), rapid.String()).Draw(t, "mode"),
			Version: rapid.String().Draw(t, "version"),
		}
	})
	decider := policy.NewDecider()
	rapid.Check(t, func(t *rapid.T) {
		in := policy.Input{
			Key:          send(),
			Automation:   policy.Compile(rapid.SliceOfN(row, 0, 3).Draw(t, "automation")),
			Organisation: policy.Compile(rapid.SliceOfN(row, 0, 3).Draw(t, "organisation")),
			Risk:         rapid.SampledFrom([]policy.ToolRisk{policy.RiskRead, policy.RiskWrite, policy.RiskDanger, ""}).Draw(t, "risk"),
		}
		before := policy.Decide(in)
		for _, narrow := range []func(*policy.Input){
			func(in *policy.Input) { in.Drifted = true },
			func(in *policy.Input) { in.AskedApproval = true },
		} {
			narrow(&in)

			after := policy.Decide(in)

			if policy.Stricter(before.Mode, after.Mode) != after.Mode {
				t.Fatalf("a layer turned %s into %s: %s", before.Mode, after.Mode, after.TraceJSON)
			}
			if before.Mode == envelope.ModeDeny && after.Source != before.Source {
				t.Fatalf("deny from %s became deny from %s", before.Source, after.Source)
			}
			if diff := cmp.Diff(after, decider.Decide(in)); diff != "" {
				t.Fatalf("a Decider differs (-Decide +Decider):\n%s", diff)
			}
			before = after
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	in := policy.Input{
		Key: send(), Risk: policy.RiskWrite,
		Organisation: policy.Compile([]policy.Rule{{Key: "slack:*", Mode: "allow", Version: "7"}}),
	}
	b.Run("afresh", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			policy.Decide(in)
		}
	})
	b.Run("remembered", func(b *testing.B) {
		decider := policy.NewDecider()
		b.ReportAllocs()
		for b.Loop() {
			decider.Decide(in)
		}
	})
}

func TestTrustBoundsTheRisk(t *testing.T) {
	t.Parallel()
	risks := []envelope.Risk{envelope.RiskLow, envelope.RiskMedium, envelope.RiskHigh, "", "odd"}
	alone := map[policy.Trust]int{policy.TrustNone: 0, policy.TrustLow: 1, policy.TrustMedium: 2, policy.TrustHigh: 5, "": 5, "odd": 0}

	for trust, covered := range alone {
		for i, risk := range risks {
			for _, mode := range []envelope.Mode{envelope.ModeAllow, envelope.ModeRequireApproval, envelope.ModeDeny} {
				want := mode
				if mode == envelope.ModeAllow && i >= covered {
					want = envelope.ModeRequireApproval
				}

				got := policy.Decide(policy.Input{Key: send(), Organisation: rules(string(mode)), Risk: policy.RiskRead, Trust: trust, EnvelopeRisk: risk})

				if got.Mode != want {
					t.Errorf("Decide(%s, trust %q, risk %q) = %s, want %s", mode, trust, risk, got.Mode, want)
				}
			}
		}
	}
}

func TestMissingScopeIsDenied(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"allow", "require_approval", "deny", "none"} {
		in := policy.Input{Key: send(), Organisation: rules(mode), Risk: policy.RiskRead, MissingScopes: []string{"a:b"}}

		if got := policy.Decide(in).Mode; got != envelope.ModeDeny {
			t.Errorf("Decide(%s, a scope missing) = %s, want deny", mode, got)
		}
	}
}
