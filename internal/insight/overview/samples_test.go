package overview_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// sample waits for the transactions of other tests, takes a sample, and moves all
// samples a minute back.
func (f fixture) sample() {
	f.t.Helper()
	for done := false; !done; {
		done = one[bool](f, "SELECT coalesce(max(txid::text::bigint) < pg_snapshot_xmin(pg_current_snapshot())::text::bigint, true) FROM events")
	}
	var both errgroup.Group
	for range 2 {
		both.Go(func() error { return overview.Sample(f.t.Context(), f.db) })
	}
	if err := both.Wait(); err != nil {
		f.t.Fatal(err)
	}
	f.exec("UPDATE fleet_samples SET at = at - interval '1 minute'")
	f.exec("UPDATE backlog_samples SET at = at - interval '1 minute'")
}

func (k tenant) activity(since, until time.Duration, step wire.ActivityStep) []wire.ActivityPoint {
	k.t.Helper()
	a := wire.Activity{Since: time.Now().Add(since), Until: time.Now().Add(until), Step: step}
	k.as(postgres.API(k.id), func(tx pgx.Tx) (err error) {
		a, err = overview.Activity(k.t.Context(), tx, k.id, a)
		return err
	})
	return a.Items
}

func TestActivityIsSampled(t *testing.T) {
	t.Parallel()
	f := fixture{t, dbtest.DB(t)}
	k, other := f.tenant("sampled"), f.tenant("other")
	bucket := k.bucket("open", "")
	k.queue(bucket, 3, -30, "")
	k.queue(bucket, 1, 3600, "")
	k.queue(bucket, 1, 0, "lease_until = now() + interval '30 seconds'")
	k.propose(bucket, "send", envelope.ApprovalRequired)
	f.exec("INSERT INTO workers (worker, name, epoch, remembers, state_file, lease) VALUES (gen_random_uuid(), 'w', 1, true, false, '30 s')")
	ends := func(statuses ...envelope.Status) {
		e := audit.Event{Tenant: k.id, Kind: audit.Settled, Actor: "worker/test"}
		for _, s := range statuses {
			e.Items = append(e.Items, audit.Item{Action: k.propose(bucket, "send", envelope.ApprovalAuto), Status: s})
		}
		k.as(postgres.Worker(), func(tx pgx.Tx) error { return audit.Write(t.Context(), tx, e) })
	}
	ends(envelope.StatusSent)

	f.sample()
	ends(envelope.StatusSent, envelope.StatusSent, envelope.StatusPending)
	ends(envelope.StatusFailed)
	f.sample()
	f.sample()

	first := wire.ActivityPoint{Workers: 1, Due: 3, Scheduled: 1, InFlight: 1, Undecided: 1, OldestDue: 30, Ended: []wire.ActivityEnded{}}
	second := first
	second.Ended = []wire.ActivityEnded{{Status: "failed", Actions: 1}, {Status: "sent", Actions: 2}}
	close := cmp.Options{cmpopts.IgnoreFields(wire.ActivityPoint{}, "At"), cmpopts.EquateApprox(0, 20)}
	// The first sample does not count what ended before it, and each event counts once.
	if diff := cmp.Diff([]wire.ActivityPoint{first, second, first}, k.activity(-time.Hour, 0, wire.StepMinute), close); diff != "" {
		t.Errorf("activity (-want +got):\n%s", diff)
	}
	if got := k.activity(-2*time.Hour, time.Hour, wire.StepHour); len(got) == 0 || len(got) > 2 || got[0].Workers != 1 || got[0].Due != 3 {
		t.Errorf("in steps of an hour: %+v", got)
	}
	for _, p := range other.activity(-time.Hour, 0, wire.StepMinute) {
		if p.Due+p.Scheduled+p.InFlight+p.Undecided > 0 || len(p.Ended) > 0 || p.Workers != 1 {
			t.Errorf("another tenant sees %+v", p)
		}
	}
	if got := k.activity(-3*time.Hour, -2*time.Hour, wire.StepMinute); len(got) != 0 {
		t.Errorf("without samples: %+v", got)
	}

	f.exec("UPDATE fleet_samples SET at = at + (CASE WHEN at = (SELECT max(at) FROM fleet_samples) THEN interval '2 days' ELSE interval '-15 days' END)")
	f.exec("UPDATE backlog_samples SET at = at - interval '15 days'")
	if err := overview.PruneSamples(t.Context(), f.db); err != nil {
		t.Fatal(err)
	}
	if left := one[int](f, "SELECT (SELECT count(*) FROM fleet_samples) + (SELECT count(*) FROM backlog_samples)"); left != 0 {
		t.Errorf("%d rows left of before 14 days and of a clock that was set back", left)
	}
}
