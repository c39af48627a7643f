package catalog_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// TestWithTriesWhatIsStoredWouldDo tries modes that would speak for what only
// subscriptions may, and reviews that keep a grant from holding.
func TestWithTriesWhatIsStoredWouldDo(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.mode("", "*", envelope.ModeRequireApproval)
	id := s.grant(catalog.Grant{Tool: policy.Key{Source: "src", Action: "act"}, Digest: s.act().Digest, For: time.Hour})
	snap, now := s.snapshot(), s.now()
	reserved := catalog.SubscriptionAutomation(uuid.New())

	changed := snap.With(catalog.PolicyChange{
		Modes:   []catalog.Mode{{Pattern: "*", Mode: "require_approval"}, {Automation: "nightly", Pattern: "*", Mode: "deny"}},
		Reviews: []catalog.ReviewRule{{Pattern: "*", Risk: envelope.RiskLow, Needed: 2}},
	})

	for name, tt := range map[string]struct {
		snap       *catalog.Snapshot
		automation string
		want       envelope.Mode
	}{
		"a grant":                     {snap, "", envelope.ModeAllow},
		"a grant where two must look": {changed, "", envelope.ModeRequireApproval},
		"an automation of the change": {changed, "nightly", envelope.ModeDeny},
		"a subscription that is gone": {changed, reserved, envelope.ModeDeny},
		"the snapshot itself":         {snap, "nightly", envelope.ModeAllow},
	} {
		if d := tt.snap.Decide(s.act(), catalog.Proposed{Automation: tt.automation, Now: now}); d.Mode != tt.want {
			t.Errorf("%s: %s from %s, want %s (grant %s)", name, d.Mode, d.Source, tt.want, id)
		}
	}
}
