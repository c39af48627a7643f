package settings_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// TestVersionIncreasesWithEveryChange makes every kind of change.
func TestVersionIncreasesWithEveryChange(t *testing.T) {
	t.Parallel()
	act := policy.Key{Source: "src", Action: "act"}
	changed := tenanttest.Tool("act")
	changed.Description = "Acts otherwise."
	vouched := tenanttest.Tool("act")
	vouched.Effect = envelope.EffectKeyed
	off := tenanttest.Builtin("src")
	off.Enabled = false
	riskier := tenanttest.Builtin("src")
	riskier.DefaultRisk = policy.RiskDanger
	faced, careful := tenanttest.Builtin("src"), tenanttest.Builtin("src")
	faced.DriftGuard, careful.Quarantine = catalog.GuardInterface, true
	secret := tenanttest.Builtin("src")
	secret.Secret = []byte("encrypted")
	do := func(fn func(ctx context.Context, tx pgx.Tx, s fixture) error) func(s fixture) {
		return func(s fixture) {
			s.Must(func(ctx context.Context, tx pgx.Tx) error { return fn(ctx, tx, s) })
		}
	}
	for name, test := range map[string]struct {
		change func(s fixture)
		moves  bool
	}{
		"a new source":             {func(s fixture) { s.Put(tenanttest.Builtin("other")) }, true},
		"the same source again":    {func(s fixture) { s.Put(tenanttest.Builtin("src")) }, false},
		"a source is switched off": {func(s fixture) { s.Put(off) }, true},
		"another default risk":     {func(s fixture) { s.Put(riskier) }, true},
		"another secret":           {func(s fixture) { s.Put(secret) }, true},
		"a source is deleted": {do(func(ctx context.Context, tx pgx.Tx, s fixture) error {
			return catalog.DeleteSource(ctx, tx, s.Tenant, "src")
		}), true},
		"the same listing again":      {func(s fixture) { s.List("src", tenanttest.Tool("act")) }, false},
		"a listing with another tool": {func(s fixture) { s.List("src", tenanttest.Tool("act"), tenanttest.Tool("more")) }, true},
		"a listing without the tool":  {func(s fixture) { s.List("src") }, true},
		"a changed definition":        {func(s fixture) { s.List("src", changed) }, true},
		"another effect":              {func(s fixture) { s.List("src", vouched) }, true},
		"a listing that failed": {do(func(ctx context.Context, tx pgx.Tx, s fixture) error {
			return catalog.PutListError(ctx, tx, s.Tenant, "src", "not there")
		}), true},
		"the same failure again": {func(s fixture) {
			fail := do(func(ctx context.Context, tx pgx.Tx, s fixture) error {
				return catalog.PutListError(ctx, tx, s.Tenant, "src", "not there")
			})
			fail(s)
			before := s.snapshot().Version
			if fail(s); s.snapshot().Version != before {
				s.T.Error("failing again moved the version")
			}
		}, true},
		"another drift guard": {func(s fixture) { s.Put(faced) }, true},
		"quarantine":          {func(s fixture) { s.Put(careful) }, true},
		"a full name": {do(func(ctx context.Context, tx pgx.Tx, s fixture) error {
			return catalog.DescribeTool(ctx, tx, s.Tenant, act, catalog.Description{Name: catalog.FullName{Entity: "deed"}})
		}), true},
		"side effects": {do(func(ctx context.Context, tx pgx.Tx, s fixture) error {
			return catalog.DescribeTool(ctx, tx, s.Tenant, act, catalog.Description{SideEffects: new([]string{})})
		}), true},
		"a reversal": {do(func(ctx context.Context, tx pgx.Tx, s fixture) error {
			return catalog.DescribeTool(ctx, tx, s.Tenant, act, catalog.Description{Reversal: &catalog.Reversal{Tool: act}})
		}), true},
		"a refresh that is asked for": {do(func(ctx context.Context, tx pgx.Tx, s fixture) error {
			_, err := catalog.AskRefresh(ctx, tx, s.Tenant, "src")
			return err
		}), false},
		"an override": {do(func(ctx context.Context, tx pgx.Tx, s fixture) error {
			return catalog.ConfigureTool(ctx, tx, s.Tenant, act, catalog.Overrides{Risk: policy.RiskRead})
		}), true},
		"no description": {do(func(ctx context.Context, tx pgx.Tx, s fixture) error {
			return catalog.DescribeTool(ctx, tx, s.Tenant, act, catalog.Description{})
		}), false},
		"no override": {do(func(ctx context.Context, tx pgx.Tx, s fixture) error {
			return catalog.ConfigureTool(ctx, tx, s.Tenant, act, catalog.Overrides{})
		}), false},
		"a mode": {func(s fixture) { s.mode("", "*", envelope.ModeDeny) }, true},
		"a mode is deleted": {func(s fixture) {
			s.mode("", "*", envelope.ModeDeny)
			before := s.snapshot().Version
			s.Must(func(ctx context.Context, tx pgx.Tx) error { return settings.DeleteMode(ctx, tx, s.Tenant, "", "*") })
			if s.snapshot().Version <= before {
				s.T.Error("deleting a mode left the version as it was")
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			before := s.snapshot().Version

			test.change(s)

			if after := s.snapshot().Version; (after > before) != test.moves || after < before {
				t.Errorf("the version went from %d to %d, want it to move: %t", before, after, test.moves)
			}
		})
	}
}

func TestDriftNeedsApproval(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.mode("", "*", envelope.ModeAllow)
	changed := tenanttest.Tool("act")
	changed.Title = "Another"

	before := s.snapshot().Decide(s.act(), settings.Proposal{})
	s.List("src", changed)
	after := s.snapshot().Decide(s.act(), settings.Proposal{})

	if before.Mode != envelope.ModeAllow || after.Mode != envelope.ModeRequireApproval {
		t.Errorf("Decide = %s, and %s after a drift; want allow and require_approval", before.Mode, after.Mode)
	}
}

func TestDecideEvaluatesAutomationBeforeOrganisation(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.mode("", "*", envelope.ModeDeny)
	s.mode("mailer", "src:*", envelope.ModeAllow)
	s.mode("careful", "src:act", envelope.ModeRequireApproval)
	snap, act := s.snapshot(), s.act()

	for automation, want := range map[string]envelope.Mode{
		"": envelope.ModeDeny, "unknown": envelope.ModeDeny, "mailer": envelope.ModeAllow, "careful": envelope.ModeRequireApproval,
	} {
		if got := snap.Decide(act, settings.Proposal{Automation: automation}).Mode; got != want {
			t.Errorf("Decide for automation %q = %s, want %s", automation, got, want)
		}
	}
	if got := snap.Decide(act, settings.Proposal{Automation: "mailer", AskedApproval: true}).Mode; got != envelope.ModeRequireApproval {
		t.Errorf("Decide when a person was asked for = %s", got)
	}
}

func TestInvalidModeDenies(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO policy_modes (tenant_id, key, mode) VALUES ($1, '*', 'ask_twice')", s.Tenant.String())
		return err
	})

	got := s.snapshot().Decide(s.act(), settings.Proposal{})

	if got.Mode != envelope.ModeDeny || got.Source != "unknown_mode:ask_twice" {
		t.Errorf("Decide = %s from %s, want deny from unknown_mode:ask_twice", got.Mode, got.Source)
	}
}

func TestInvalidChanges(t *testing.T) {
	t.Parallel()
	nothing := policy.Key{Source: "src", Action: "nothing"}
	for name, test := range map[string]struct {
		change func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error
		want   fault.Kind
	}{
		"a source of a bad name": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return catalog.PutSource(ctx, tx, tenant, tenanttest.Builtin("Not A Name"))
		}, fault.Invalid},
		"a source of no kind": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return catalog.PutSource(ctx, tx, tenant, catalog.Source{ID: "s", Kind: "ftp"})
		}, fault.Invalid},
		"a source that is not there is deleted": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return catalog.DeleteSource(ctx, tx, tenant, "nothing")
		}, fault.NotFound},
		"a listing of no source": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return catalog.PutListing(ctx, tx, tenant, "nothing", []source.Tool{tenanttest.Tool("act")})
		}, fault.NotFound},
		"overrides of no tool": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return catalog.ConfigureTool(ctx, tx, tenant, nothing, catalog.Overrides{})
		}, fault.NotFound},
		"no such risk": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return catalog.ConfigureTool(ctx, tx, tenant, policy.Key{Source: "src", Action: "act"}, catalog.Overrides{Risk: "mild"})
		}, fault.Invalid},
		"no such effect": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return catalog.ConfigureTool(ctx, tx, tenant, policy.Key{Source: "src", Action: "act"}, catalog.Overrides{Effect: "twice"})
		}, fault.Invalid},
		"too many attempts": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return catalog.ConfigureTool(ctx, tx, tenant, policy.Key{Source: "src", Action: "act"}, catalog.Overrides{MaxAttempts: 101})
		}, fault.Invalid},
		"accepting no tool": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return catalog.AcceptTool(ctx, tx, tenant, nothing, []byte{1})
		}, fault.Conflict},
		"no such mode": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return settings.PutMode(ctx, tx, tenant, "", "*", "maybe", "ada")
		}, fault.Invalid},
		"no such pattern": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return settings.PutMode(ctx, tx, tenant, "", "sr*:act", envelope.ModeAllow, "ada")
		}, fault.Invalid},
		"a mode that is not set is deleted": {func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
			return settings.DeleteMode(ctx, tx, tenant, "", "*")
		}, fault.NotFound},
		"a tenant that is not there": {func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) error {
			_, err := settings.NewCache().Current(ctx, tx, envelope.TenantID(uuid.New()))
			return err
		}, fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)

			err := s.Try(func(ctx context.Context, tx pgx.Tx) error { return test.change(ctx, tx, s.Tenant) })

			if !errors.Is(err, test.want) {
				t.Errorf("change = %v, want fault %q", err, test.want)
			}
		})
	}
}

func TestCacheReadsOnlyChangedTenants(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	first := s.snapshot()
	second := s.snapshot()
	s.mode("", "*", envelope.ModeAllow)
	third := s.snapshot()
	var older *settings.Settings
	s.Must(func(ctx context.Context, tx pgx.Tx) (err error) {
		older, err = s.cache.At(ctx, tx, s.Tenant, first.Version)
		return err
	})

	if first != second || third == first || older != third {
		t.Error("want one snapshot for one version, another for the next, and never an older one again")
	}
	if got := first.Decide(s.act(), settings.Proposal{}).Source; got != policy.LayerInferred {
		t.Errorf("a snapshot of before decides by %s, want it as it was", got)
	}
}

func TestModesAreListedInOrder(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.mode("mailer", "*", envelope.ModeDeny)
	s.mode("", "src:*", envelope.ModeDeny)
	s.mode("", "*", envelope.ModeAllow)

	var modes []settings.Mode
	s.Must(func(ctx context.Context, tx pgx.Tx) (err error) {
		modes, err = settings.Modes(ctx, tx, s.Tenant)
		return err
	})

	want := []settings.Mode{{Pattern: "*", Mode: "allow"}, {Pattern: "src:*", Mode: "deny"}, {Automation: "mailer", Pattern: "*", Mode: "deny"}}
	if diff := cmp.Diff(want, modes, cmpopts.IgnoreFields(settings.Mode{}, "LastChange")); diff != "" {
		t.Errorf("modes (-want +got):\n%s", diff)
	}
}
