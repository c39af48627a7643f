package limits_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

func (h fixture) matches(scope postgres.Scope, asks ...contact.Ask) []contact.Found {
	h.t.Helper()
	var found []contact.Found
	h.as(scope, func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err = contact.Matches(ctx, tx, asks)
		return err
	})
	slices.SortFunc(found, func(a, b contact.Found) int { return cmp.Or(a.Ask-b.Ask, cmp.Compare(a.Kind, b.Kind)) })
	return found
}

func (h fixture) ask(recipients ...string) contact.Ask {
	h.t.Helper()
	return contact.Ask{Tenant: h.tenant, Contacts: h.set().Contacts(recipients)}
}

func (h fixture) forbid(entries ...contact.Entry) wire.ContactCount {
	h.t.Helper()
	var counts wire.ContactCount
	h.must(func(ctx context.Context, tx pgx.Tx) (err error) {
		counts, err = contact.PutEntries(ctx, tx, h.tenant, entries, "ada")
		return err
	})
	return counts
}

func TestMatchesAcrossTenants(t *testing.T) {
	t.Parallel()
	one := newFixture(t)
	two := one.otherTenant()
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	one.forbid(
		contact.Entry{Value: "Ana@Example.ORG", Reason: "asked not to be"},
		contact.Entry{Kind: contact.Domain, Value: "rival.example", Reason: "legal"},
		contact.Entry{Value: "gone@example.org", ExpiresAt: &past},
		contact.Entry{Value: "soon@example.org", ExpiresAt: &future},
		contact.Entry{Value: "+49 30 123456"},
		contact.Entry{Value: "@Bo"},
	)
	two.forbid(contact.Entry{Value: "cy@example.org"})

	got := one.matches(postgres.Worker(),
		one.ask("ana@example.org"), one.ask("cy@example.org"), two.ask("cy@example.org"), two.ask("ana@example.org"),
		one.ask("x@mail.rival.example"), one.ask("gone@example.org"), one.ask("nobody@example.org", "soon@example.org"),
		one.ask("+4930123456"), one.ask("@bo"), contact.Ask{Tenant: one.tenant},
	)

	want := []contact.Found{
		{Ask: 0, Match: contact.Match{Kind: contact.Email, Reason: "asked not to be"}}, {Ask: 2, Match: contact.Match{Kind: contact.Email, Reason: ""}}, {Ask: 4, Match: contact.Match{Kind: contact.Domain, Reason: "legal"}},
		{Ask: 6, Match: contact.Match{Kind: contact.Email, Reason: ""}}, {Ask: 7, Match: contact.Match{Kind: contact.Phone, Reason: ""}}, {Ask: 8, Match: contact.Match{Kind: contact.Handle, Reason: ""}},
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
	h := newFixture(t)
	h.forbid(contact.Entry{Value: "ana+shop@example.org"}, contact.Entry{Value: "bo@example.org"})
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
