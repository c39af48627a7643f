package limit_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/gate"
	"github.com/countersign-dev/countersign/internal/limit"
	"github.com/countersign-dev/countersign/internal/postgres"
)

func (h house) matches(scope postgres.Scope, asks ...limit.Ask) []limit.Match {
	h.t.Helper()
	var found []limit.Match
	h.as(scope, func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err = limit.Matches(ctx, tx, asks)
		return err
	})
	slices.SortFunc(found, func(a, b limit.Match) int { return cmp.Or(a.Ask-b.Ask, cmp.Compare(a.Kind, b.Kind)) })
	return found
}

func (h house) ask(recipients ...string) limit.Ask {
	h.t.Helper()
	return limit.Ask{Tenant: h.tenant, Contacts: h.set().Contacts(recipients)}
}

func (h house) forbid(entries ...limit.Entry) limit.Tally {
	h.t.Helper()
	var tally limit.Tally
	h.must(func(ctx context.Context, tx pgx.Tx) (err error) {
		tally, err = limit.PutEntries(ctx, tx, h.tenant, entries, "ada")
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
		limit.Entry{Value: "Ana@Example.ORG", Reason: "asked not to be"},
		limit.Entry{Kind: gate.ContactDomain, Value: "rival.example", Reason: "legal"},
		limit.Entry{Value: "gone@example.org", ExpiresAt: &past},
		limit.Entry{Value: "soon@example.org", ExpiresAt: &future},
		limit.Entry{Value: "+49 30 123456"},
		limit.Entry{Value: "@Bo"},
	)
	two.forbid(limit.Entry{Value: "cy@example.org"})

	got := one.matches(postgres.Worker(),
		one.ask("ana@example.org"), one.ask("cy@example.org"), two.ask("cy@example.org"), two.ask("ana@example.org"),
		one.ask("x@mail.rival.example"), one.ask("gone@example.org"), one.ask("nobody@example.org", "soon@example.org"),
		one.ask("+4930123456"), one.ask("@bo"), limit.Ask{Tenant: one.tenant},
	)

	want := []limit.Match{
		{0, gate.ContactEmail, "asked not to be"}, {2, gate.ContactEmail, ""}, {4, gate.ContactDomain, "legal"},
		{6, gate.ContactEmail, ""}, {7, gate.ContactPhone, ""}, {8, gate.ContactHandle, ""},
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
	h.forbid(limit.Entry{Value: "ana+shop@example.org"}, limit.Entry{Value: "bo@example.org"})
	count := func(to string) int { return len(h.matches(postgres.Worker(), h.ask(to))) }

	for to, want := range map[string]int{"ana+shop@example.org": 1, "ana@example.org": 0, "bo+x@example.org": 0, "bo@example.org": 1} {
		if got := count(to); got != want {
			t.Errorf("without plus-addressing %s matches %d, want %d", to, got, want)
		}
	}
	h.must(func(ctx context.Context, tx pgx.Tx) error {
		return limit.PutTenant(ctx, tx, h.tenant, limit.Tenant{Timezone: "UTC", PlusAddressing: true}, "ada")
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
