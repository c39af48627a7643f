package outbox_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

func TestClaimLeasesDueRowsInOrder(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	ids := fx.Queue(envelope.EffectKeyed, 5)

	first, second, third := fx.Claim(3), fx.Claim(3), fx.Claim(3)

	if diff := cmp.Diff(outboxtest.Texts(ids[:3]), sorted(first)); diff != "" {
		t.Errorf("Claim(3) (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(outboxtest.Texts(ids[3:]), sorted(second)); diff != "" {
		t.Errorf("Claim(3) again (-want +got):\n%s", diff)
	}
	if len(third) != 0 {
		t.Errorf("Claim(3) of nothing free has %d items", len(third))
	}
	it := first[0]
	want := outbox.Item{
		Lease:  outbox.Lease{Tenant: fx.Tenant, Action: it.Action, Fence: 1},
		Bucket: fx.Bucket, MaxAttempts: 3, Source: "src", Tool: "tool", Args: []byte("{}"), Effect: envelope.EffectKeyed,
		Risk: envelope.RiskLow, Approval: envelope.ApprovalAuto, ConfigVersion: 1, ToolDigest: []byte{0},
		Due: it.Due, Waited: it.Waited, Age: it.Age, CreatedAt: it.CreatedAt, ClaimedAt: it.ClaimedAt,
	}
	if diff := cmp.Diff(want, it); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}
	if it.Waited < 50*time.Second || it.Waited > 2*time.Minute {
		t.Errorf("item waited %v, want about a minute", it.Waited)
	}
}

func TestClaimPassesOver(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"what is not due yet":         "UPDATE outbox SET next_attempt_at = now() + interval '1 second' WHERE action_id = $1",
		"what is leased":              "UPDATE outbox SET lease_until = now() + interval '1 second' WHERE action_id = $1",
		"what is below the low bound": "UPDATE outbox SET next_attempt_at = now() - interval '1 day' WHERE action_id = $1",
		"other buckets":               "UPDATE outbox SET bucket_id = -1 WHERE action_id = $1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			ids := fx.Queue(envelope.EffectKeyed, 2)
			fx.Exec(change, ids[0].String())

			items := fx.ClaimFrom(outbox.ClaimRequest{Bucket: fx.Bucket, From: time.Now().Add(-time.Hour), Quota: 10})

			if diff := cmp.Diff(outboxtest.Texts(ids[1:]), sorted(items)); diff != "" {
				t.Errorf("Claim (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClaimSkipsLockedRows(t *testing.T) {
	t.Parallel()
	fx := newSharedFixture(t)
	ids := fx.Queue(envelope.EffectKeyed, 2)

	fx.As(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "SELECT 1 FROM outbox WHERE action_id = $1 FOR UPDATE", ids[0].String())
		items := fx.Claim(10)
		if diff := cmp.Diff(outboxtest.Texts(ids[1:]), sorted(items)); diff != "" {
			t.Errorf("Claim beside a lock (-want +got):\n%s", diff)
		}
		return err
	})

	if diff := cmp.Diff(outboxtest.Texts(ids[:1]), sorted(fx.Claim(10))); diff != "" {
		t.Errorf("Claim after the lock (-want +got):\n%s", diff)
	}
}

func TestClaimKeepsToTheQuotaOfEachBucket(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	other := fx.NewBucket("other")
	fx.Queue(envelope.EffectRead, 10)
	fx.QueueIn(other, envelope.EffectRead, 10)

	items := fx.ClaimFrom(outbox.ClaimRequest{Bucket: fx.Bucket, Quota: 2}, outbox.ClaimRequest{Bucket: other, Quota: 5}, outbox.ClaimRequest{Bucket: -1, Quota: 5})

	per := make(map[int64]int)
	for _, it := range items {
		per[it.Bucket]++
	}
	if diff := cmp.Diff(map[int64]int{fx.Bucket: 2, other: 5}, per); diff != "" {
		t.Errorf("items per bucket (-want +got):\n%s", diff)
	}
}

func TestClaimTakesOverALeaseThatRanOut(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectOnce, 1)
	first := fx.Claim(1)[0]
	fx.Start(first.Lease)
	fx.Expire(first.Action)

	second := fx.Claim(1)

	if len(second) != 1 || second[0].Fence != first.Fence+1 || second[0].LeasesLost != 1 || !second[0].Sending {
		t.Errorf("Claim = %+v, want fence 2, one lease lost and sending", second)
	}
}

func TestClaimReturnsTheDeadline(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	ids := fx.Queue(envelope.EffectRead, 2)
	fx.Exec("UPDATE actions SET must_run_before = now() - interval '1 second' WHERE action_id = $1", ids[0].String())
	fx.Exec("UPDATE actions SET must_run_before = now() + interval '1 hour' WHERE action_id = $1", ids[1].String())

	for _, it := range fx.Claim(2) {
		if past := it.MustRunBefore.Before(it.ClaimedAt); past != (it.Action == ids[0]) {
			t.Errorf("deadline of %s is %s, claimed at %s", it.Action, it.MustRunBefore, it.ClaimedAt)
		}
	}
}

func TestClaimersNeverShareARow(t *testing.T) {
	t.Parallel()
	const rows, claimers = 4000, 6
	fx := newSharedFixture(t)
	fx.Queue(envelope.EffectKeyed, rows)

	var mu sync.Mutex
	owners := make(map[envelope.ActionID]int)
	var wg sync.WaitGroup
	for range claimers {
		wg.Go(func() {
			for {
				var items []outbox.Item
				err := postgres.InTx(t.Context(), fx.DB, postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
					items, err = outbox.Claim(t.Context(), tx, outbox.Mark{}, []outbox.ClaimRequest{{Bucket: fx.Bucket, Quota: 170}}, time.Hour)
					return err
				})
				if err != nil {
					t.Errorf("Claim = %v", err)
				}
				if len(items) == 0 {
					return
				}
				mu.Lock()
				for _, it := range items {
					owners[it.Action]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, it := range fx.Claim(rows) { // rows that every claimer skipped at its last attempt
		owners[it.Action]++
	}

	if len(owners) != rows {
		t.Errorf("%d envelopes were claimed, want %d", len(owners), rows)
	}
	for id, n := range owners {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
}

func TestStartMarksOnlyHeldLeases(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectOnce, 4)
	items := fx.Claim(4)
	leases := []outbox.Lease{items[0].Lease, items[1].Lease, items[2].Lease, items[3].Lease}
	leases[1].Fence-- // an older claim's
	if err := fx.Undo(items[2].Action); err != nil {
		t.Fatal(err)
	}
	fx.Start(leases[3])

	got := fx.Start(leases...)

	if diff := cmp.Diff(leases[:1], got); diff != "" {
		t.Errorf("Start (-want +got):\n%s", diff)
	}
}

func TestStartSeparatesTenants(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	a, b := outboxtest.NewIn(t, db), outboxtest.NewIn(t, db)
	id := a.Queue(envelope.EffectOnce, 1)[0]
	own := b.Queue(envelope.EffectOnce, 1)[0]
	// Tenants choose their ids; two may have the same one.
	b.Exec("UPDATE actions SET action_id = $1 WHERE action_id = $2", id.String(), own.String())
	b.Exec("UPDATE outbox SET action_id = $1 WHERE action_id = $2", id.String(), own.String())
	mine, theirs := a.Claim(1)[0].Lease, b.Claim(1)[0].Lease
	if err := a.Undo(id); err != nil {
		t.Fatal(err)
	}

	got := a.Start(mine, theirs)

	if diff := cmp.Diff([]outbox.Lease{theirs}, got); diff != "" {
		t.Errorf("Start after one tenant's undo (-want +got):\n%s", diff)
	}
}

func TestRenewKeepsOnlyOwnLeases(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.Queue(envelope.EffectRead, 2)
	items := fx.Claim(2)
	stale := items[1].Lease
	stale.Fence--

	var kept int
	fx.As(postgres.Worker(), func(tx pgx.Tx) (err error) {
		kept, err = outbox.Renew(t.Context(), tx, []outbox.Lease{items[0].Lease, stale}, time.Hour)
		return err
	})

	renewed := outboxtest.One[int64](fx.Fixture, "SELECT count(1) FROM outbox WHERE tenant_id = $1 AND lease_until > now() + interval '59 minutes'", fx.Tenant.String())
	if kept != 1 || renewed != 1 {
		t.Errorf("Renew kept %d and renewed %d, want 1 and 1", kept, renewed)
	}
}

func TestDueBucketsOfEveryState(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	var buckets []int64
	for _, name := range []string{"due", "later", "closed", "leased", "open-again", "empty"} {
		buckets = append(buckets, fx.NewBucket(name))
	}
	due, later, closed, leased, open := buckets[0], buckets[1], buckets[2], buckets[3], buckets[4]
	for _, b := range buckets[:5] {
		fx.QueueIn(b, envelope.EffectRead, 3)
	}
	fx.Exec("UPDATE outbox SET next_attempt_at = now() + interval '10 seconds' WHERE bucket_id = $1", later)
	fx.Exec("UPDATE buckets SET closed_until = now() + interval '20 seconds' WHERE bucket_id = $1", closed)
	fx.Exec("UPDATE buckets SET closed_until = now() - interval '5 seconds' WHERE bucket_id = $1", open)
	fx.Exec("UPDATE outbox SET lease_until = now() + interval '1 hour' WHERE bucket_id = $1", leased)
	look := func(after int64, most int) map[int64]time.Duration {
		found := make(map[int64]time.Duration)
		var order []int64
		fx.As(postgres.Worker().Planned(), func(tx pgx.Tx) error {
			rows, err := outbox.DueBuckets(t.Context(), tx, after, most)
			for _, r := range rows {
				// The clock is constant in this transaction, so waits are exact.
				found[r.Bucket] = r.DueIn.Round(time.Second)
				order = append(order, r.Bucket)
			}
			return err
		})
		if !slices.IsSorted(order) {
			t.Errorf("Look is not in order of buckets: %v", order)
		}
		return found
	}

	all, page, rest := look(fx.Bucket, 100), look(fx.Bucket, 2), look(later, 100)

	want := map[int64]time.Duration{due: -time.Minute, later: 10 * time.Second, closed: 20 * time.Second, open: -5 * time.Second}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("Look (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int64]time.Duration{due: -time.Minute, later: 10 * time.Second}, page); diff != "" {
		t.Errorf("first page (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int64]time.Duration{closed: 20 * time.Second, open: -5 * time.Second}, rest); diff != "" {
		t.Errorf("second page (-want +got):\n%s", diff)
	}
	fx.As(postgres.Worker().Planned(), func(tx pgx.Tx) error {
		var chosen []int64
		rows, err := outbox.DueOf(t.Context(), tx, []int64{due, leased, open})
		for _, r := range rows {
			chosen = append(chosen, r.Bucket)
		}
		if diff := cmp.Diff([]int64{due, open}, chosen); diff != "" {
			t.Errorf("some buckets (-want +got):\n%s", diff)
		}
		return err
	})
}

func sorted(items []outbox.Item) []string {
	ids := outboxtest.Texts(outboxtest.ActionsOf(items))
	slices.Sort(ids)
	return ids
}
