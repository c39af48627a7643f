package settings_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	danger := tenanttest.Tool("wipe")
	danger.Hints.Destructive = new(true)
	s.List("src", tenanttest.Tool("act"), danger)
	s.Put(tenanttest.Builtin("mail"))
	s.List("mail", tenanttest.Tool("send"), tenanttest.Tool("read"))
	s.Put(tenanttest.Builtin("failing"))
	s.List("failing", tenanttest.Tool("act"))
	s.Must(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutListError(ctx, tx, s.Tenant, "failing", "it does not answer")
	})
	off := tenanttest.Builtin("off")
	off.Enabled = false
	s.Put(off)
	s.List("off", tenanttest.Tool("act"))
	careful := tenanttest.Builtin("careful")
	careful.Quarantine = true
	s.Put(careful)
	s.List("careful", tenanttest.Tool("first"))
	s.List("careful", tenanttest.Tool("first"), tenanttest.Tool("fresh"))
	s.mode("nightly", "mail:send", envelope.ModeDeny)
	s.mode("nightly", "src:wipe", envelope.ModeAllow)
	snap := s.snapshot()

	for name, test := range map[string]struct {
		by   settings.Viewer
		want []string
	}{
		"anybody":             {settings.Viewer{}, []string{"careful:first", "mail:read", "mail:send", "src:act"}},
		"an automation":       {settings.Viewer{Automation: "nightly"}, []string{"careful:first", "mail:read", "src:act", "src:wipe"}},
		"a token":             {settings.Viewer{Tools: []string{"mail:*"}}, []string{"mail:read", "mail:send"}},
		"a token for nothing": {settings.Viewer{Tools: []string{}}, []string{}},
	} {
		if diff := cmp.Diff(test.want, keys(snap.Visible(test.by))); diff != "" {
			t.Errorf("Visible() to %s (-want +got):\n%s", name, diff)
		}
	}
	s.List("failing", tenanttest.Tool("act"))
	if got := keys(s.snapshot().Visible(settings.Viewer{Tools: []string{"failing:*"}})); len(got) != 1 {
		t.Errorf("Visible() after the source is back = %v", got)
	}
	if _, known := snap.Tool(policy.Key{Source: "failing", Action: "act"}); !known {
		t.Error("a tool of a source that fails is forgotten")
	}
}
