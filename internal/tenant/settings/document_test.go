package settings_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

func TestWithAppliesTheDangerMode(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	danger := tenanttest.Tool("wipe")
	danger.Hints.Destructive = new(true)
	s.List("src", danger)
	snap := s.snapshot()
	tool, _ := snap.Tool(policy.Key{Source: "src", Action: "wipe"})

	asked := snap.With(settings.Document{Danger: envelope.ModeRequireApproval})

	for name, tt := range map[string]struct {
		snap *settings.Settings
		want envelope.Mode
	}{"as it is": {snap, envelope.ModeDeny}, "with the change": {asked, envelope.ModeRequireApproval}, "with another": {asked.With(settings.Document{}), envelope.ModeRequireApproval}} {
		d := tt.snap.Decide(tool, settings.Proposal{})
		if d.Mode != tt.want || tt.snap.DeniedAsDanger(tool, d) != (tt.want == envelope.ModeDeny) {
			t.Errorf("%s: %s from %s, want %s", name, d.Mode, d.Source, tt.want)
		}
	}
}

// TestWithMatchesStoredPolicy tries modes for automations that are reserved for
// subscriptions, and reviews that prevent a grant.
func TestWithMatchesStoredPolicy(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.mode("", "*", envelope.ModeRequireApproval)
	id := s.grant(settings.Grant{Tool: policy.Key{Source: "src", Action: "act"}, Digest: s.act().Binding, Loose: []string{""}, For: time.Hour})
	snap, now := s.snapshot(), s.now()
	reserved := settings.SubscriptionAutomation(uuid.New())

	changed := snap.With(settings.Document{
		Modes:   []settings.Mode{{Pattern: "*", Mode: "require_approval"}, {Automation: "nightly", Pattern: "*", Mode: "deny"}},
		Reviews: []settings.ReviewRule{{Pattern: "*", Risk: envelope.RiskLow, Approvals: 2}},
	})

	for name, tt := range map[string]struct {
		snap       *settings.Settings
		automation string
		want       envelope.Mode
	}{
		"a grant":                     {snap, "", envelope.ModeAllow},
		"a grant where two must look": {changed, "", envelope.ModeRequireApproval},
		"an automation of the change": {changed, "nightly", envelope.ModeDeny},
		"a subscription that is gone": {changed, reserved, envelope.ModeDeny},
		"the snapshot itself":         {snap, "nightly", envelope.ModeAllow},
	} {
		if d := tt.snap.Decide(s.act(), settings.Proposal{Automation: tt.automation, Now: now}); d.Mode != tt.want {
			t.Errorf("%s: %s from %s, want %s (grant %s)", name, d.Mode, d.Source, tt.want, id)
		}
	}
}
