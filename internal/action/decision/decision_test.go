package decision_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// fixture is a tenant with one source, src, whose tool act sends to an address.
type fixture struct {
	t      *testing.T
	db     postgres.Begins
	tenant envelope.TenantID
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{t: t, db: dbtest.Tx(t), tenant: envelope.TenantID(uuid.Must(uuid.NewV7()))}
	f.in(postgres.Admin(), func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", f.tenant.String(), "t-"+f.tenant.String())
		return err
	})
	f.in(postgres.API(f.tenant), func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, f.tenant, catalog.Source{ID: "src", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		schema := json.RawMessage(`{"type":"object","properties":{"to":{"type":"string","format":"email"}}}`)
		if err := catalog.PutListing(ctx, tx, f.tenant, "src", []source.Tool{{Name: "act", InputSchema: schema}}); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, f.tenant, "", "*", envelope.ModeAllow, "ada")
	})
	return f
}

func (f fixture) in(as postgres.Scope, fn func(ctx context.Context, tx pgx.Tx) error) {
	f.t.Helper()
	if err := postgres.InTx(f.t.Context(), f.db, as, func(tx pgx.Tx) error { return fn(f.t.Context(), tx) }); err != nil {
		f.t.Fatal(err)
	}
}

// actions returns one action for each text of arguments.
func (f fixture) actions(args ...string) []*decision.Action {
	f.t.Helper()
	all := make([]*decision.Action, len(args))
	f.in(postgres.API(f.tenant), func(ctx context.Context, tx pgx.Tx) error {
		s, err := settings.NewCache().Current(ctx, tx, f.tenant)
		if err != nil {
			return err
		}
		tool, _ := s.Tool(policy.Key{Source: "src", Action: "act"})
		for i, text := range args {
			all[i] = &decision.Action{Settings: s, Tool: tool, Proposal: settings.Proposal{Args: json.RawMessage(text)}}
		}
		return nil
	})
	return all
}

func (f fixture) list(value, reason string) {
	f.t.Helper()
	f.in(postgres.API(f.tenant), func(ctx context.Context, tx pgx.Tx) error {
		_, err := contact.PutEntries(ctx, tx, f.tenant, []contact.Entry{{Value: value, Reason: reason}}, "ada")
		return err
	})
}

func (f fixture) decide(actions []*decision.Action) (modes []envelope.Mode) {
	f.t.Helper()
	f.in(postgres.API(f.tenant), func(ctx context.Context, tx pgx.Tx) error {
		decisions, err := decision.Decide(ctx, tx, actions)
		for _, d := range decisions {
			modes = append(modes, d.Mode)
		}
		return err
	})
	return modes
}

func TestDecideDeniesRecipientsOnTheDoNotContactList(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	long := strings.Repeat("x", decision.MaxRecipientBytes+1)
	args := []string{`{"to":"bo@example.org"}`, `{"to":"ana@example.org"}`, `{}`, `{"to":"` + long + `"}`, `{"to":"ANA@example.org"}`}

	unlisted := f.actions(args...)
	before := f.decide(unlisted)
	f.list("ana@example.org", "asked us")
	actions := f.actions(args...)
	after := f.decide(actions)

	for i, mode := range before {
		if mode != envelope.ModeAllow || unlisted[i].Listed || unlisted[i].Contacts != nil {
			t.Errorf("without a list action %d is decided %s, listed %t, with the contacts %v", i, mode, unlisted[i].Listed, unlisted[i].Contacts)
		}
	}
	const allow, deny = envelope.ModeAllow, envelope.ModeDeny
	if diff := cmp.Diff([]envelope.Mode{allow, deny, allow, deny, deny}, after); diff != "" {
		t.Errorf("Decide (-want +got):\n%s", diff)
	}
	ana := contact.Match{Kind: contact.Email, Reason: "asked us"}
	for i, want := range []contact.Match{{}, ana, {}, {Kind: contact.Handle, Reason: "more recipients than can be checked"}, ana} {
		if actions[i].Match != want {
			t.Errorf("action %d matches %v, want %v", i, actions[i].Match, want)
		}
	}
}

func TestRecheckLeavesOutTheChecksForProposals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.actions(`{}`)[0]
	want := a.Recheck()

	a.AskedApproval, a.Listed, a.Tools = true, true, []string{}
	got := a.Recheck()

	if got.ID != want.ID || want.Mode != envelope.ModeAllow || a.Decide().Mode != envelope.ModeDeny {
		t.Errorf("Recheck = %s, want %s; Decide = %s, want deny", got.Source, want.Source, a.Decide().Mode)
	}
}

// TestACacheInsertsADecisionOnce inserts a decision twice before the first
// transaction is known to be committed, and once after.
func TestACacheInsertsADecisionOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var cache decision.Cache
	d := f.actions(`{}`)[0].Decide()

	for name, want := range map[string]int{"unknown": 2, "still unknown": 2} {
		f.in(postgres.API(f.tenant), func(ctx context.Context, tx pgx.Tx) error {
			inserted, err := cache.Insert(ctx, tx, f.tenant, []policy.Decision{d, d})
			if len(inserted) != want {
				t.Errorf("%s: Insert returned %d decisions, want %d", name, len(inserted), want)
			}
			return err
		})
	}
	cache.Add(f.tenant, []policy.Decision{d})
	f.in(postgres.API(f.tenant), func(ctx context.Context, tx pgx.Tx) error {
		inserted, err := cache.Insert(ctx, tx, f.tenant, []policy.Decision{d, d})
		if len(inserted) != 0 {
			t.Errorf("Insert returned %d decisions that the cache holds", len(inserted))
		}
		return err
	})
}
