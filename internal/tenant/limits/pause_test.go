package limits_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

func (h fixture) pause(of pause.Target, kill bool, reason string) wire.Pause {
	h.t.Helper()
	var p wire.Pause
	h.must(func(ctx context.Context, tx pgx.Tx) (err error) {
		p, err = pause.Set(ctx, tx, h.tenant, pause.Order{Target: of, Kill: kill, Reason: reason, By: "ada"})
		return err
	})
	return p
}

func (h fixture) pauses(f pause.Filter) []wire.Pause {
	h.t.Helper()
	var all []wire.Pause
	f.Most = 100
	h.must(func(ctx context.Context, tx pgx.Tx) (err error) {
		all, err = pause.List(ctx, tx, h.tenant, f)
		return err
	})
	return all
}

func TestPauseBecomesAKill(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	tool := pause.Target{Scope: pause.Tool, Subject: "mail:send"}

	first := h.pause(tool, false, "odd answers")
	same := h.pause(tool, false, "another reason")
	killed := h.pause(tool, true, "worse")
	still := h.pause(tool, false, "only a pause")

	if diff := cmp.Diff(first, same); diff != "" || first.Kill || first.KilledAt != nil {
		t.Errorf("to pause again changed something (-first +same):\n%s", diff)
	}
	if killed.ID != first.ID || !killed.Kill || killed.KilledAt == nil || killed.Reason != "worse" || !killed.At.Equal(first.At) {
		t.Errorf("killed: %+v, want the same pause as a kill", killed)
	}
	if diff := cmp.Diff(killed, still); diff != "" {
		t.Errorf("a pause weakened a kill (-kill +after):\n%s", diff)
	}
	h.admin("UPDATE pauses SET swept_at = now(), cancelled = 3")
	if again := h.pause(tool, true, "once more"); again.SweptAt != nil || again.Cancelled != 3 {
		t.Errorf("killed anew: %+v, want it to be swept again", again)
	}
	h.wantSubjects("tool mail:send paused", "tool mail:send killed", "tool mail:send killed")
	if notes := h.events(); notes[0].Note != "odd answers" || notes[2].Note != "once more" {
		t.Errorf("events do not say why: %+v", notes)
	}
}

func TestLiftedPausesAreKept(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	lift := func(of pause.Target) error {
		return h.try(func(ctx context.Context, tx pgx.Tx) error {
			return pause.Lift(ctx, tx, h.tenant, of, "fine now", "ada")
		})
	}
	tenant, bucket := pause.Target{Scope: pause.Tenant}, pause.Target{Scope: pause.Bucket, Subject: "default"}
	h.pause(tenant, false, "lunch")
	h.pause(bucket, true, "wrong")

	if err := lift(tenant); err != nil {
		t.Fatal(err)
	}
	if err := lift(tenant); !errors.Is(err, fault.NotFound) {
		t.Errorf("Lift of what is not paused = %v, want fault.NotFound", err)
	}
	if err := lift(pause.Target{Scope: pause.Everything}); !errors.Is(err, fault.Denied) {
		t.Errorf("Lift of everything = %v, want fault.Denied", err)
	}
	again := h.pause(tenant, false, "dinner")

	all, active := h.pauses(pause.Filter{}), h.pauses(pause.Filter{Active: true})
	if len(all) != 3 || len(active) != 2 || all[0].ID != again.ID || all[2].LiftedBy != "ada" || all[2].LiftedAt == nil {
		t.Errorf("pauses = %+v, of which %d are active", all, len(active))
	}
	if page := h.pauses(pause.Filter{Before: all[0].ID}); len(page) != 2 || page[0].ID != all[1].ID {
		t.Errorf("the next page is %+v", page)
	}
	h.wantSubjects("tenant paused", "bucket default killed", "tenant resumed", "tenant paused")
}

func TestPauseOfEverythingCoversAllTenants(t *testing.T) {
	t.Parallel()
	one := newFixture(t)
	two := one.otherTenant()
	two.pause(pause.Target{Scope: pause.Tenant}, false, "lunch")

	one.as(postgres.Admin(), func(ctx context.Context, tx pgx.Tx) error {
		if _, err := pause.SetEverything(ctx, tx, false, "moving office", "ada"); err != nil {
			return err
		}
		_, err := pause.SetEverything(ctx, tx, true, "for good", "ada")
		return err
	})

	for name, h := range map[string]fixture{"one": one, "two": two} {
		all := h.pauses(pause.Filter{Active: true})
		if len(all) == 0 || all[0].Scope != pause.Everything || !all[0].Kill || all[0].Reason != "for good" {
			t.Errorf("%s sees %+v, want the pause of everything", name, all)
		}
		if h.bucket("default").Paused != true {
			t.Errorf("%s has a bucket that is not paused", name)
		}
	}
	if got := two.pauses(pause.Filter{}); len(got) != 2 {
		t.Errorf("two sees %d pauses, want its own and everything's", len(got))
	}
	one.wantSubjects("everything paused", "everything killed")
	one.as(postgres.Admin(), func(ctx context.Context, tx pgx.Tx) error { return pause.LiftEverything(ctx, tx, "done", "ada") })
	if one.bucket("default").Paused {
		t.Error("everything is paused after it was lifted")
	}
}

func TestActionsInFlightAreCounted(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for _, lease := range []string{"1 minute", "-1 minute", "1 minute"} {
		h.admin(`INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, lease_until, max_attempts)
			SELECT $1, $2, b.bucket_id, now(), now() + $3::interval, 5 FROM buckets b WHERE b.tenant_id = $1`, h.tenant.String(), newEmployee().String(), lease)
	}

	var n int
	h.as(postgres.Admin(), func(ctx context.Context, tx pgx.Tx) (err error) {
		n, err = pause.InFlight(ctx, tx)
		return err
	})

	if n != 2 {
		t.Errorf("InFlight = %d, want 2", n)
	}
}

func TestEntriesAreListedAndAudited(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	first := h.forbid(contact.Entry{Value: "Ana@Example.org", Reason: "a"}, contact.Entry{Value: "bo@example.org"}, contact.Entry{Kind: contact.Domain, Value: "x.example"},
		contact.Entry{Value: "ANA@example.org", Reason: "b"})
	second := h.forbid(contact.Entry{Value: "ana@example.org", Reason: "c"}, contact.Entry{Value: "@cy"})
	var removed wire.ContactCount
	h.must(func(ctx context.Context, tx pgx.Tx) (err error) {
		removed, err = contact.DeleteEntries(ctx, tx, h.tenant, []contact.Entry{{Value: "BO@example.org"}, {Value: "nobody@example.org"}}, "asked again", "ada")
		return err
	})

	var seen []string
	f := contact.EntryFilter{Most: 2}
	for {
		var page []contact.Entry
		h.must(func(ctx context.Context, tx pgx.Tx) (err error) {
			page, err = contact.Entries(ctx, tx, h.tenant, f)
			return err
		})
		for _, e := range page {
			seen = append(seen, string(e.Kind)+" "+e.Value+" "+e.Reason+" "+string(e.CreatedBy))
		}
		if len(page) < f.Most {
			break
		}
		f.AfterKind, f.AfterValue = page[len(page)-1].Kind, page[len(page)-1].Value
	}

	if diff := cmp.Diff([]wire.ContactCount{{Added: 3}, {Added: 1, Changed: 1}, {Removed: 1}}, []wire.ContactCount{first, second, removed}); diff != "" {
		t.Errorf("tallies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"domain x.example  ada", "email ana@example.org c ada", "handle cy  ada"}, seen); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	for _, it := range h.events() {
		if it.Subject != "do-not-contact list changed" || it.Detail["kinds"] == nil {
			t.Errorf("event = %+v, want counts by kind", it)
		}
		if removal := it.Detail["removed"] != float64(0); removal != (it.Note == "asked again") {
			t.Errorf("event = %+v, want the note at the removal alone", it)
		}
	}
	if len(h.events()) != 3 {
		t.Errorf("%d events, want 3", len(h.events()))
	}
}

func TestBreakersAreReset(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.admin(`INSERT INTO breakers (tenant_id, source_id, state, cause, open_until, openings, worker) VALUES ($1, 'mail', 'open', 'http_503', now() + interval '1 minute', 3, 'w')`, h.tenant.String())
	reset := func(source string) error {
		return h.try(func(ctx context.Context, tx pgx.Tx) error {
			return breaker.Reset(ctx, tx, h.tenant, source, "ada")
		})
	}

	if err := reset("none"); !errors.Is(err, fault.NotFound) {
		t.Errorf("ResetBreaker(none) = %v, want fault.NotFound", err)
	}
	if err := reset("mail"); err != nil {
		t.Fatal(err)
	}

	h.must(func(ctx context.Context, tx pgx.Tx) error {
		all, err := breaker.List(ctx, tx, h.tenant)
		if len(all) != 1 || all[0].State != "closed" || all[0].Openings != 0 || all[0].Cause != "reset" {
			t.Errorf("breakers = %+v", all)
		}
		return err
	})
	h.wantSubjects("breaker of the source mail reset")
}
