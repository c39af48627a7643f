package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

func TestListingKeepsTheAcceptedDefinition(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	first := s.act()
	if first.Drifted() {
		t.Error("a tool that is new has drifted")
	}
	changed := tenanttest.Tool("act")
	changed.Description = "Deletes everything."

	s.List("src", changed)
	drifted := s.act()
	stale := s.Try(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.AcceptTool(ctx, tx, s.Tenant, first.Key, first.Digest)
	})
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.AcceptTool(ctx, tx, s.Tenant, first.Key, drifted.Digest)
	})
	accepted := s.act()
	s.List("src", tenanttest.Tool("act"))

	if !drifted.Drifted() || drifted.Description != changed.Description {
		t.Errorf("a changed tool has drifted: %t, %q", drifted.Drifted(), drifted.Description)
	}
	if !errors.Is(stale, fault.Conflict) {
		t.Errorf("AcceptTool with the digest of before = %v, want fault.Conflict", stale)
	}
	if accepted.Drifted() || !s.act().Drifted() {
		t.Error("want what was accepted to be as accepted, and the first definition to be a drift by then")
	}
}

func TestOverridesOfATool(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	key := policy.Key{Source: "src", Action: "act"}
	before := s.act()
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.ConfigureTool(ctx, tx, s.Tenant, key, catalog.Overrides{Risk: policy.RiskRead, Effect: envelope.EffectIdempotent, MaxAttempts: 9})
	})

	after := s.act()

	if before.Risk != policy.RiskWrite || before.Effect != envelope.EffectOnce || before.MaxAttempts != catalog.DefaultMaxAttempts {
		t.Errorf("tool of which nothing is known = %s, %s, %d attempts", before.Risk, before.Effect, before.MaxAttempts)
	}
	if after.Risk != policy.RiskRead || after.Effect != envelope.EffectIdempotent || after.MaxAttempts != 9 {
		t.Errorf("tool with overrides = %s, %s, %d attempts", after.Risk, after.Effect, after.MaxAttempts)
	}
	s.List("src", tenanttest.Tool("act"))
	if s.act().MaxAttempts != 9 {
		t.Error("a listing undid the overrides")
	}
}

func TestCatalogListsInOrder(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.Put(tenanttest.Builtin("aaa"))
	s.List("aaa", tenanttest.Tool("z"), tenanttest.Tool("b"))
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutListError(ctx, tx, s.Tenant, "src", "down")
	})
	snap := s.snapshot()

	var sources, tools []string
	for _, src := range snap.Sources() {
		sources = append(sources, src.ID+src.ListError)
	}
	for _, tool := range snap.Tools() {
		tools = append(tools, tool.Key.String())
	}
	if diff := cmp.Diff([]string{"aaa", "srcdown"}, sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"aaa:b", "aaa:z", "src:act"}, tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestDigestUsesTheListedDefinition(t *testing.T) {
	t.Parallel()
	base := tenanttest.Tool("act")
	base.InputSchema = json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	with := func(fn func(t *source.Tool)) source.Tool {
		changed := base
		fn(&changed)
		return changed
	}
	digest := func(tool source.Tool) string {
		d, err := catalog.Digest(tool)
		if err != nil {
			t.Fatal(err)
		}
		return string(d)
	}

	for name, same := range map[string]source.Tool{
		"keys in another order": with(func(t *source.Tool) {
			t.InputSchema = json.RawMessage(`{ "properties": {"a": {"type": "string"}}, "type": "object" }`)
		}),
		"what the adapter vouches for": with(func(t *source.Tool) { t.Effect = envelope.EffectKeyed }),
	} {
		if digest(same) != digest(base) {
			t.Errorf("%s changes the digest", name)
		}
	}
	for name, other := range map[string]source.Tool{
		"name":          with(func(t *source.Tool) { t.Name = "act2" }),
		"title":         with(func(t *source.Tool) { t.Title = "x" }),
		"description":   with(func(t *source.Tool) { t.Description = "x" }),
		"input schema":  with(func(t *source.Tool) { t.InputSchema = json.RawMessage(`{"type":"object"}`) }),
		"output schema": with(func(t *source.Tool) { t.OutputSchema = json.RawMessage(`{"type":"object"}`) }),
		"hints":         with(func(t *source.Tool) { t.Hints.ReadOnly = true }),
		"moved text":    with(func(t *source.Tool) { t.Title, t.Description = t.Title+t.Description, "" }),
	} {
		if digest(other) == digest(base) {
			t.Errorf("another %s leaves the digest as it is", name)
		}
	}
}
