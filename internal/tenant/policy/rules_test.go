package policy_test

import (
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestParseKey(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]policy.Key{
		"slack:chat.postMessage": {Source: "slack", Action: "chat.postMessage"},
		"git:ns:push":            {Source: "git", Action: "ns:push"},
	} {
		got, err := policy.ParseKey(text)

		if err != nil || got != want || got.String() != text {
			t.Errorf("ParseKey(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", ":", "slack", "slack:", ":send", "*:send", "slack:*", "*"} {
		if _, err := policy.ParseKey(text); !errors.Is(err, fault.Invalid) {
			t.Errorf("ParseKey(%q) = %v, want it invalid", text, err)
		}
	}
}

func TestParsePattern(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]policy.Key{
		"slack:send": {Source: "slack", Action: "send"},
		"slack:*":    {Source: "slack", Action: "*"},
		"*:send":     {Source: "*", Action: "send"},
		"*":          {Source: "*", Action: "*"},
		"*:*":        {Source: "*", Action: "*"},
	} {
		if got, err := policy.ParsePattern(text); err != nil || got != want {
			t.Errorf("ParsePattern(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "slack", "sl*:send", "slack:send*", "**", "**:*", ":*", "*:"} {
		if _, err := policy.ParsePattern(text); !errors.Is(err, fault.Invalid) {
			t.Errorf("ParsePattern(%q) = %v, want it invalid", text, err)
		}
	}
}

func TestParseMode(t *testing.T) {
	t.Parallel()

	for _, mode := range []envelope.Mode{envelope.ModeAllow, envelope.ModeRequireApproval, envelope.ModeDeny} {
		if got, err := policy.ParseMode(string(mode)); err != nil || got != mode {
			t.Errorf("ParseMode(%q) = %q, %v", mode, got, err)
		}
	}
	for _, text := range []string{"", "Allow", " deny", "ask"} {
		if _, err := policy.ParseMode(text); !errors.Is(err, fault.Invalid) {
			t.Errorf("ParseMode(%q) = %v, want it invalid", text, err)
		}
	}
}

func TestMostSpecificRuleWins(t *testing.T) {
	t.Parallel()

	// Each row adds a rule that takes precedence over all previous ones.
	var rows []policy.Rule
	for _, test := range []struct {
		key  string
		mode envelope.Mode
	}{
		{"*", envelope.ModeDeny},
		{"*:send", envelope.ModeRequireApproval},
		{"slack:*", envelope.ModeAllow},
		{"slack:send", envelope.ModeDeny},
	} {
		rows = append(rows, policy.Rule{Key: test.key, Mode: string(test.mode), Version: "v-" + test.key})
		other := []policy.Rule{{Key: "slack:list", Mode: "allow"}, {Key: "mail:*", Mode: "allow"}, {Key: "*:list", Mode: "allow"}}

		got := policy.Decide(policy.Input{
			Key: policy.Key{Source: "slack", Action: "send"}, Risk: policy.RiskWrite,
			Organisation: policy.Compile(append(other, rows...)),
		})

		if step := got.Trace[1]; got.Mode != test.mode || step.Tool != test.key || step.Version != "v-"+test.key {
			t.Errorf("with %q Decide = %s by %+v, want %s by that rule", test.key, got.Mode, step, test.mode)
		}
	}
}

func TestStricterOfTwoRulesForOneKeyWins(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		first, second string
		want          envelope.Mode
	}{
		{"allow", "deny", envelope.ModeDeny},
		{"deny", "allow", envelope.ModeDeny},
		{"require_approval", "allow", envelope.ModeRequireApproval},
		{"allow", "bogus", envelope.ModeDeny},
		{"bogus", "deny", envelope.ModeDeny},
	} {
		rules := policy.Compile([]policy.Rule{{Key: "*", Mode: test.first}, {Key: "*:*", Mode: test.second}})

		got := policy.Decide(policy.Input{
			Key: policy.Key{Source: "s", Action: "a"}, Risk: policy.RiskRead, Automation: rules,
		})

		if got.Mode != test.want {
			t.Errorf("rules %s and %s give %s, want %s", test.first, test.second, got.Mode, test.want)
		}
	}
}
