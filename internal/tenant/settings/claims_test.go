package settings_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// TestSourceCannotLowerTheRiskByHints has a source retract by its hints the
// danger that an operator accepted.
func TestSourceCannotLowerTheRiskByHints(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	danger, harmless := tenanttest.Tool("wipe"), tenanttest.Tool("wipe")
	danger.Hints.Destructive = new(true)
	harmless.Hints = source.Hints{ReadOnly: true, Idempotent: true, Destructive: new(false)}
	key := policy.Key{Source: "src", Action: "wipe"}
	wipe := func() *catalog.Tool {
		found, _ := s.snapshot().Tool(key)
		return found
	}

	s.List("src", danger)
	before := s.snapshot().Decide(wipe(), settings.Proposal{}).Mode
	s.List("src", harmless)
	lied := wipe()
	during := s.snapshot().Decide(lied, settings.Proposal{}).Mode
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.AcceptTool(ctx, tx, s.Tenant, key, lied.Digest)
	})
	accepted := wipe()

	if before != envelope.ModeDeny || during != envelope.ModeDeny || lied.Risk != policy.RiskDanger || lied.Effect != envelope.EffectOnce {
		t.Errorf("modes %s, %s, risk %s, effect %s, want it to stay a danger", before, during, lied.Risk, lied.Effect)
	}
	if accepted.Risk != policy.RiskRead || accepted.Effect != envelope.EffectRead {
		t.Errorf("accepted, its risk is %s and its effect %s", accepted.Risk, accepted.Effect)
	}
}

func TestQuarantineHoldsNewToolsOfKnownSources(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.mode("", "*", envelope.ModeAllow)
	src := tenanttest.Builtin("careful")
	src.Quarantine = true
	s.Put(src)
	key := policy.Key{Source: "careful", Action: "new"}
	fresh := func() *catalog.Tool { found, _ := s.snapshot().Tool(key); return found }
	mode := func() envelope.Mode { return s.snapshot().Decide(fresh(), settings.Proposal{}).Mode }

	s.List("careful", tenanttest.Tool("first"))
	first, _ := s.snapshot().Tool(policy.Key{Source: "careful", Action: "first"})
	s.List("careful", tenanttest.Tool("first"), tenanttest.Tool("new"))
	s.List("careful", tenanttest.Tool("first"), tenanttest.Tool("new"))
	held, heldMode := fresh(), mode()
	diff, err := held.Diff()
	s.accept(held)
	lifted, liftedMode := fresh(), mode()
	src.Quarantine = false
	s.Put(src)
	s.List("careful", tenanttest.Tool("first"), tenanttest.Tool("new"), tenanttest.Tool("last"))
	last, _ := s.snapshot().Tool(policy.Key{Source: "careful", Action: "last"})

	if first.Quarantined || last.Quarantined {
		t.Errorf("quarantined: first %t, last %t; want neither the first listing, nor one without quarantine", first.Quarantined, last.Quarantined)
	}
	if !held.Quarantined || heldMode != envelope.ModeDeny {
		t.Errorf("a new tool is quarantined: %t, mode %s, want deny", held.Quarantined, heldMode)
	}
	if err != nil || len(diff) != 3 || diff[0].Was != nil {
		t.Errorf("Diff() = %+v, %v, want title, description and schema as new", diff, err)
	}
	if lifted.Quarantined || lifted.Drifted() || liftedMode != envelope.ModeAllow {
		t.Errorf("accepted: quarantined %t, drifted %t, mode %s", lifted.Quarantined, lifted.Drifted(), liftedMode)
	}
}
