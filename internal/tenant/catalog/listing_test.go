package catalog_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// worded returns the tool act with another description.
func worded(description string) source.Tool {
	changed := tenanttest.Tool("act")
	changed.Description = description
	return changed
}

// as returns the tool act with another schema.
func as(schema string) source.Tool {
	changed := tenanttest.Tool("act")
	changed.InputSchema = json.RawMessage(schema)
	return changed
}

func TestVanishedToolIsRemembered(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	key := policy.Key{Source: "src", Action: "act"}
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.ConfigureTool(ctx, tx, s.Tenant, key, catalog.Overrides{Risk: policy.RiskDanger})
	})

	s.List("src")
	_, there := s.snapshot().Tool(key)
	refused := s.Try(func(ctx context.Context, tx pgx.Tx) error {
		digest, err := catalog.Digest(tenanttest.Tool("act"))
		return errors.Join(err, catalog.AcceptTool(ctx, tx, s.Tenant, key, digest))
	})
	s.List("src", worded("Acts otherwise."))
	back := s.act()
	s.List("src", tenanttest.Tool("act"))

	if there {
		t.Error("the snapshot has a tool that its source lists no more")
	}
	if !errors.Is(refused, fault.Conflict) {
		t.Errorf("AcceptTool of what is gone = %v, want fault.Conflict", refused)
	}
	if !back.Drifted() || back.Drift != catalog.DriftText || back.Risk != policy.RiskDanger {
		t.Errorf("back under another definition it has drifted: %t (%s), with risk %s; want that, and the override", back.Drifted(), back.Drift, back.Risk)
	}
	if s.act().Drifted() {
		t.Error("back as it was accepted it has drifted")
	}
}

func TestVanishedToolsAreForgottenUnlessConfigured(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.List("src", tenanttest.Tool("act"), tenanttest.Tool("spoken"))
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.ConfigureTool(ctx, tx, s.Tenant, policy.Key{Source: "src", Action: "spoken"}, catalog.Overrides{MaxAttempts: 2})
	})
	s.List("src")
	s.Exec("UPDATE tools SET gone_at = gone_at - interval '91 days'")
	s.List("src")

	s.List("src", worded("Other."), func() source.Tool { t := worded("Other."); t.Name = "spoken"; return t }())
	spoken, _ := s.snapshot().Tool(policy.Key{Source: "src", Action: "spoken"})

	if s.act().Drifted() {
		t.Error("a forgotten tool has drifted, want it to be new")
	}
	if !spoken.Drifted() || spoken.MaxAttempts != 2 {
		t.Errorf("a tool that somebody spoke of has drifted: %t, attempts %d", spoken.Drifted(), spoken.MaxAttempts)
	}
}

func TestInterfaceGuardIgnoresTexts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		listed source.Tool
		drift  catalog.Drift
		full   bool
		face   bool
	}{
		"the same":            {tenanttest.Tool("act"), catalog.DriftNone, false, false},
		"another description": {worded("Acts at once."), catalog.DriftText, true, false},
		"another schema":      {as(`{"type":"object","properties":{"description":{}}}`), catalog.DriftInterface, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			s.List("src", test.listed)
			full := s.act()
			src := tenanttest.Builtin("src")
			src.DriftGuard = catalog.GuardInterface
			s.Put(src)
			face := s.act()

			if full.Drift != test.drift || full.Drifted() != test.full || face.Drifted() != test.face {
				t.Errorf("drift %s; drifted under full %t, under interface %t; want %s, %t, %t", full.Drift, full.Drifted(), face.Drifted(), test.drift, test.full, test.face)
			}
		})
	}
}

// TestUpgradeOfTheSchemeIsNotDrift upgrades a tenant from a release with digests
// of the first scheme.
func TestUpgradeOfTheSchemeIsNotDrift(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	older := firstScheme(t, tenanttest.Tool("act"))
	s.Exec("UPDATE tools SET digest = $1, accepted_digest = $1, accepted = NULL", older)

	before := s.act()
	s.List("src", tenanttest.Tool("act"))
	after := s.act()
	s.List("src", worded("Other."))
	changed := s.act()

	if before.Drifted() || !before.Lists(older) || !before.Lists(after.Digest) || !before.Is(after.Binding) {
		t.Errorf("before a listing it has drifted: %t, is of the older digest: %t, of the present: %t", before.Drifted(), before.Lists(older), before.Lists(after.Digest))
	}
	if after.Drifted() || bytes.Equal(after.Accepted, older) || !after.Lists(older) {
		t.Errorf("after it has drifted: %t, accepted %x", after.Drifted(), after.Accepted)
	}
	if changed.Drift != catalog.DriftText || changed.Lists(older) || changed.Is(before.Binding) || changed.AcceptedDefinition == nil {
		t.Errorf("changed, its drift is %s, from %v", changed.Drift, changed.AcceptedDefinition)
	}
}

// TestDriftSurvivesAnUpgrade changes a definition between two releases.
func TestDriftSurvivesAnUpgrade(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	older := firstScheme(t, tenanttest.Tool("act"))
	s.Exec("UPDATE tools SET digest = $1, accepted_digest = $1, accepted = NULL", older)

	s.List("src", worded("Other."))
	drifted := s.act()
	diff, err := drifted.Diff()
	s.List("src", tenanttest.Tool("act"))
	back := s.act()

	if drifted.Drift != catalog.DriftInterface || !drifted.Drifted() {
		t.Errorf("drift = %s, want that of an interface while nobody knows what was accepted", drifted.Drift)
	}
	if err != nil || len(diff) != 3 || diff[0].Was != nil {
		t.Errorf("Diff() = %+v, %v, want all of it", diff, err)
	}
	if back.Drifted() || bytes.Equal(back.Accepted, older) {
		t.Errorf("back it has drifted: %t, accepted %x", back.Drifted(), back.Accepted)
	}
}

// firstScheme returns the digest by the first release.
func firstScheme(t *testing.T, of source.Tool) []byte {
	t.Helper()
	hints, err := json.Marshal(of.Hints)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(of.Name), []byte(of.Title), []byte(of.Description), of.InputSchema, of.OutputSchema, hints} {
		if bytes.HasPrefix(part, []byte("{")) {
			if part, err = envelope.Canonical(part); err != nil {
				t.Fatal(err)
			}
		}
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	return h.Sum([]byte{1})
}

func TestUnusableToolDoesNotPreventAListing(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	bad := []source.Tool{
		{Name: "nul", Description: "a\x00b", InputSchema: json.RawMessage(`{}`)},
		{Name: "utf8", Title: "\xff", InputSchema: json.RawMessage(`{}`)},
		{Name: "twice", InputSchema: json.RawMessage(`{"a":1,"a":2}`)},
		{Name: "se\u200bnd", InputSchema: json.RawMessage(`{}`)},
		{Name: "se\u202end", InputSchema: json.RawMessage(`{}`)},
		{Name: "", InputSchema: json.RawMessage(`{}`)},
		{Name: strings.Repeat("x", 201), InputSchema: json.RawMessage(`{}`)},
		{Name: "deep", InputSchema: json.RawMessage(deep(200))},
		{Name: "none"},
		{Name: "unusable", InputSchema: json.RawMessage(`{}`), Unusable: "the source said so"},
		{Name: "act", Description: "The second of this name.", InputSchema: json.RawMessage(`{}`)},
	}

	s.List("src", append([]source.Tool{tenanttest.Tool("act")}, bad...)...)
	src, _ := s.fresh("src")
	first := s.act()
	braced := worded("{ is no JSON")
	s.List("src", braced)

	if first.Drifted() {
		t.Error("the second tool of a name came before the first")
	}
	if src.LeftOut != len(bad) || src.ListError != "" {
		t.Errorf("left out %d, error %q, want %d and none", src.LeftOut, src.ListError, len(bad))
	}
	if s.act().Description != braced.Description {
		t.Error("a description that begins with a brace is left out")
	}
}

func TestOverridesAndRetryRulesSetAttempts(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	key := policy.Key{Source: "src", Action: "act"}
	configure := func(n int) {
		s.Must(func(ctx context.Context, tx pgx.Tx) error {
			return catalog.ConfigureTool(ctx, tx, s.Tenant, key, catalog.Overrides{MaxAttempts: n})
		})
	}
	var got []int
	look := func() { got = append(got, s.act().MaxAttempts) }

	look()
	configure(3)
	look()
	s.Exec("UPDATE tools SET retry_max_attempts = 7")
	look()
	configure(0)
	look()
	s.Exec("UPDATE tools SET retry_max_attempts = NULL")
	look()

	if diff := cmp.Diff([]int{catalog.DefaultMaxAttempts, 3, 7, 7, catalog.DefaultMaxAttempts}, got); diff != "" {
		t.Errorf("MaxAttempts (-want +got):\n%s", diff)
	}
}

func TestSourcesAreListedAfterTheClockMovedBack(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	stale := func() bool {
		var found []catalog.StaleSource
		err := postgres.InTx(t.Context(), s.DB, postgres.Worker(), func(tx pgx.Tx) (err error) {
			found, err = catalog.Stale(t.Context(), tx, 300, 100)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(found, catalog.StaleSource{Tenant: s.Tenant, ID: "src"})
	}
	ask := func() (at time.Time) {
		s.Must(func(ctx context.Context, tx pgx.Tx) (err error) {
			at, err = catalog.AskRefresh(ctx, tx, s.Tenant, "src")
			return err
		})
		return at
	}

	fresh := stale()
	s.Exec("UPDATE sources SET listed_at = now() + interval '30 days', refresh_asked_at = now() + interval '31 days' WHERE tenant_id = $1", s.Tenant.String())
	setBack := stale()
	s.List("src", tenanttest.Tool("act"))
	listed := stale()
	s.Exec("UPDATE sources SET listed_at = now() + interval '30 days' WHERE tenant_id = $1", s.Tenant.String())
	asked := ask()
	before, _ := s.fresh("src")
	s.List("src", tenanttest.Tool("act"))
	after, _ := s.fresh("src")

	if fresh || !setBack || listed {
		t.Errorf("stale when fresh %t, after the clock was set back %t, and listed again %t; want false, true, false", fresh, setBack, listed)
	}
	if before.ListedAt != nil || after.ListedAt == nil || !after.ListedAt.After(asked) {
		t.Errorf("listed at %v before the answer and %v after it, asked at %v", before.ListedAt, after.ListedAt, asked)
	}
}

func TestAskRefresh(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	off := tenanttest.Builtin("off")
	off.Enabled = false
	s.Put(off)
	stale := func() (ids []string) {
		err := postgres.InTx(t.Context(), s.DB, postgres.Worker(), func(tx pgx.Tx) error {
			found, err := catalog.Stale(t.Context(), tx, 300, 100)
			for _, f := range found {
				if f.Tenant == s.Tenant {
					ids = append(ids, f.ID)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	ask := func(id string) (at time.Time, err error) {
		err = s.Try(func(ctx context.Context, tx pgx.Tx) error {
			at, err = catalog.AskRefresh(ctx, tx, s.Tenant, id)
			return err
		})
		return at, err
	}

	before := stale()
	asked, err := ask("src")
	during := stale()
	s.List("src", tenanttest.Tool("act"))
	after := stale()
	src, _ := s.fresh("src")
	_, none := ask("none")
	_, offErr := ask("off")

	if len(before) != 0 || !slices.Equal(during, []string{"src"}) || len(after) != 0 || err != nil {
		t.Errorf("stale before %v, during %v, after %v, %v", before, during, after, err)
	}
	if src.ListedAt == nil || !src.ListedAt.After(asked) {
		t.Errorf("listed at %v, want it later than %v, when it was asked", src.ListedAt, asked)
	}
	if !errors.Is(none, fault.NotFound) || !errors.Is(offErr, fault.NotFound) {
		t.Errorf("AskRefresh of no source = %v, of one that is off = %v, want fault.NotFound", none, offErr)
	}
}

// fresh reads the stored source.
func (s fixture) fresh(id string) (found catalog.Source, ok bool) {
	s.T.Helper()
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		all, err := catalog.Sources(ctx, tx, s.Tenant)
		for _, src := range all {
			if src.ID == id {
				found, ok = src, true
			}
		}
		return err
	})
	return found, ok
}
