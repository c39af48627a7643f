package limits_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

func (h house) matches(scope postgres.Scope, asks ...limits.Ask) []limits.Match {
	h.t.Helper()
	var found []limits.Match
	h.as(scope, func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err = limits.Matches(ctx, tx, asks)
		return err
	})
	slices.SortFunc(found, func(a, b limits.Match) int { return cmp.Or(a.Ask-b.Ask, cmp.Compare(a.Kind, b.Kind)) })
	return found
}

func (h house) ask(recipients ...string) limits.Ask {
	h.t.Helper()
	return limits.Ask{Tenant: h.tenant, Contacts: h.set().Contacts(recipients)}
}

func (h house) forbid(entries ...limits.Entry) limits.Tally {
	h.t.Helper()
	var tally limits.Tally
	h.must(func(ctx context.Context, tx pgx.Tx) (err error) {
		tally, err = limits.PutEntries(ctx, tx, h.tenant, entries, "ada")
		return err
	})
	return tally
}

func TestMatchesAcrossTenants(t *testing.T) {
	t.Parallel()
	one := newHouse(t)
	two := one.neighbour()
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	one.forbid(
		limits.Entry{Value: "Ana@Example.ORG", Reason: "asked not to be"},
		limits.Entry{Kind: preflight.ContactDomain, Value: "rival.example", Reason: "legal"},
		limits.Entry{Value: "gone@example.org", ExpiresAt: &past},
		limits.Entry{Value: "soon@example.org", ExpiresAt: &future},
		limits.Entry{Value: "+49 30 123456"},
		limits.Entry{Value: "@Bo"},
	)
	two.forbid(limits.Entry{Value: "cy@example.org"})

	got := one.matches(postgres.Worker(),
		one.ask("ana@example.org"), one.ask("cy@example.org"), two.ask("cy@example.org"), two.ask("ana@example.org"),
		one.ask("x@mail.rival.example"), one.ask("gone@example.org"), one.ask("nobody@example.org", "soon@example.org"),
		one.ask("+4930123456"), one.ask("@bo"), limits.Ask{Tenant: one.tenant},
	)

	want := []limits.Match{
		{0, preflight.ContactEmail, "asked not to be"}, {2, preflight.ContactEmail, ""}, {4, preflight.ContactDomain, "legal"},
		{6, preflight.ContactEmail, ""}, {7, preflight.ContactPhone, ""}, {8, preflight.ContactHandle, ""},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("Matches (-want +got):\n%s", diff)
	}
	if got := one.matches(postgres.API(two.tenant), one.ask("ana@example.org")); len(got) > 0 {
		t.Errorf("one tenant sees %d entries of another", len(got))
	}
}

func TestMatchesByPlusAddressing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.forbid(limits.Entry{Value: "ana+shop@example.org"}, limits.Entry{Value: "bo@example.org"})
	count := func(to string) int { return len(h.matches(postgres.Worker(), h.ask(to))) }

	for to, want := range map[string]int{"ana+shop@example.org": 1, "ana@example.org": 0, "bo+x@example.org": 0, "bo@example.org": 1} {
		if got := count(to); got != want {
			t.Errorf("without plus-addressing %s matches %d, want %d", to, got, want)
		}
	}
	h.must(func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutTenant(ctx, tx, h.tenant, limits.Tenant{Timezone: "UTC", PlusAddressing: true}, "ada")
	})
	for to, want := range map[string]int{"ana+shop@example.org": 1, "ana@example.org": 1, "ana+other@example.org": 1, "bo+x@example.org": 1, "cy@example.org": 0} {
		if got := count(to); got != want {
			t.Errorf("with plus-addressing %s matches %d, want %d", to, got, want)
		}
	}
	if !h.set().HasDoNotContact() || !h.set().NeedsRecipients() {
		t.Error("the set does not know that there is a list")
	}
}
