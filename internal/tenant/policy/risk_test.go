package policy_test

import (
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestRiskDefaults(t *testing.T) {
	t.Parallel()

	// This table is a promise to operators: it changes only with a new version
	// of the policy.
	for _, test := range []struct {
		risk  policy.ToolRisk
		valid bool
		mode  envelope.Mode
		env   envelope.Risk
	}{
		{policy.RiskRead, true, envelope.ModeAllow, envelope.RiskLow},
		{policy.RiskWrite, true, envelope.ModeRequireApproval, envelope.RiskMedium},
		{policy.RiskDanger, true, envelope.ModeDeny, envelope.RiskHigh},
		{"", false, envelope.ModeDeny, envelope.RiskHigh},
		{"READ", false, envelope.ModeDeny, envelope.RiskHigh},
	} {
		if got := test.risk.Valid(); got != test.valid {
			t.Errorf("%q.Valid() = %t, want %t", test.risk, got, test.valid)
		}
		if got := test.risk.Mode(); got != test.mode {
			t.Errorf("%q.Mode() = %s, want %s", test.risk, got, test.mode)
		}
		if got := test.risk.Envelope(); got != test.env {
			t.Errorf("%q.Envelope() = %s, want %s", test.risk, got, test.env)
		}
	}
}

func TestInferRisk(t *testing.T) {
	t.Parallel()

	readOnly, destructive := policy.Hints{ReadOnly: true}, policy.Hints{Destructive: true}
	both := policy.Hints{ReadOnly: true, Destructive: true}
	for name, test := range map[string]struct {
		override policy.ToolRisk
		hints    policy.Hints
		source   policy.ToolRisk
		want     policy.ToolRisk
	}{
		"nothing is known":                  {"", policy.Hints{}, "", policy.RiskWrite},
		"override beats hints":              {policy.RiskRead, destructive, policy.RiskDanger, policy.RiskRead},
		"override that is no risk":          {"safe", readOnly, policy.RiskRead, policy.RiskDanger},
		"destructive beats read-only":       {"", both, policy.RiskRead, policy.RiskDanger},
		"destructive":                       {"", destructive, "", policy.RiskDanger},
		"read-only beats the default":       {"", readOnly, policy.RiskDanger, policy.RiskRead},
		"the source's default":              {"", policy.Hints{}, policy.RiskRead, policy.RiskRead},
		"the source's default is no risk":   {"", policy.Hints{}, "low", policy.RiskDanger},
		"a bad default that nobody asks is": {policy.RiskWrite, policy.Hints{}, "low", policy.RiskWrite},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := policy.InferRisk(test.override, test.hints, test.source); got != test.want {
				t.Errorf("InferRisk(%q, %+v, %q) = %q, want %q", test.override, test.hints, test.source, got, test.want)
			}
		})
	}
}

func TestRaiseRisk(t *testing.T) {
	t.Parallel()

	low, medium, high := envelope.RiskLow, envelope.RiskMedium, envelope.RiskHigh
	for _, test := range []struct{ asked, tool, want envelope.Risk }{
		{"", low, low}, {"", medium, medium}, {"", high, high},
		{low, low, low}, {low, medium, medium}, {low, high, high},
		{medium, low, medium}, {medium, medium, medium}, {medium, high, high},
		{high, low, high}, {high, medium, high}, {high, high, high},
		{"none", low, high}, {low, "none", high}, {"none", "none", high}, {"", "", high},
	} {
		if got := policy.RaiseRisk(test.asked, test.tool); got != test.want {
			t.Errorf("RaiseRisk(%q, %q) = %q, want %q", test.asked, test.tool, got, test.want)
		}
	}
}

func TestInferEffect(t *testing.T) {
	t.Parallel()

	readOnly := policy.Hints{ReadOnly: true}
	for name, test := range map[string]struct {
		override envelope.Effect
		risk     policy.ToolRisk
		hints    policy.Hints
		want     envelope.Effect
	}{
		"override":                           {envelope.EffectKeyed, policy.RiskDanger, readOnly, envelope.EffectKeyed},
		"override that is no class":          {"twice", policy.RiskRead, readOnly, envelope.EffectOnce},
		"read-only":                          {"", policy.RiskRead, readOnly, envelope.EffectRead},
		"read-only, but an operator doubted": {"", policy.RiskWrite, readOnly, envelope.EffectOnce},
		"a read by default only":             {"", policy.RiskRead, policy.Hints{}, envelope.EffectOnce},
		"a write":                            {"", policy.RiskWrite, policy.Hints{}, envelope.EffectOnce},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := policy.InferEffect(test.override, test.risk, test.hints); got != test.want {
				t.Errorf("InferEffect(%q, %q, %+v) = %q, want %q", test.override, test.risk, test.hints, got, test.want)
			}
		})
	}
}
