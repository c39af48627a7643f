package deadletter_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

const term = 30 * time.Second

// fixture is a tenant with a bucket, in a database where it is worked on.
type fixture struct {
	t      testing.TB
	db     postgres.Begins
	tenant envelope.TenantID
	bucket int64
}

// newFixtureIn makes a tenant. In one transaction (dbtest.Tx) now() stands still;
// with a pool (dbtest.DB) several goroutines may work on it.
func newFixtureIn(t testing.TB, db postgres.Begins) fixture {
	t.Helper()
	fx := fixture{t: t, db: db, tenant: envelope.TenantID(uuid.Must(uuid.NewV7()))}
	fx.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", fx.tenant.String(), "t-"+fx.tenant.String())
	fx.exec(`INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace)
		VALUES ($1, $1, 'allow', 'test', '[]')`, fx.tenant.String())
	fx.bucket = fx.newBucket("default")
	return fx
}

// newFixture returns a tenant in a transaction of its own.
func newFixture(t testing.TB) fixture { return newFixtureIn(t, dbtest.Tx(t)) }

// newSharedFixture returns a tenant in a database of its own.
func newSharedFixture(t testing.TB) fixture { return newFixtureIn(t, dbtest.DB(t)) }

func (fx fixture) newBucket(name string) int64 {
	fx.t.Helper()
	return one[int64](fx, `INSERT INTO buckets (tenant_id, name) VALUES ($1, $2)
		ON CONFLICT ON CONSTRAINT buckets_tenant_id_name_key DO UPDATE SET retired_at = NULL RETURNING bucket_id`, fx.tenant.String(), name)
}

// as runs fn in a transaction of a scope, and fails the test with its error.
func (fx fixture) as(scope postgres.Scope, fn func(tx pgx.Tx) error) {
	fx.t.Helper()
	if err := postgres.InTx(fx.t.Context(), fx.db, scope, fn); err != nil {
		fx.t.Fatal(err)
	}
}

func (fx fixture) exec(sql string, args ...any) {
	fx.t.Helper()
	fx.as(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(fx.t.Context(), sql, args...)
		return err
	})
}

// one returns the only value of a query.
func one[T any](fx fixture, sql string, args ...any) T {
	fx.t.Helper()
	var v T
	fx.as(postgres.Admin(), func(tx pgx.Tx) error {
		return tx.QueryRow(fx.t.Context(), sql, args...).Scan(&v)
	})
	return v
}

// queue puts n envelopes of an effect class on the schedule, due a minute ago
// and a millisecond apart. Of each three attempts may be made.
func (fx fixture) queue(effect envelope.Effect, n int) []envelope.ActionID {
	fx.t.Helper()
	return fx.queueIn(fx.bucket, effect, n)
}

func (fx fixture) queueIn(bucket int64, effect envelope.Effect, n int) []envelope.ActionID {
	fx.t.Helper()
	ids := fx.propose(bucket, effect, envelope.ApprovalAuto, n)
	fx.exec(`INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts)
		SELECT $1, id, $2, now() - interval '1 minute' + place * interval '1 millisecond', 3
		FROM unnest($3::uuid[]) WITH ORDINALITY AS a (id, place)`, fx.tenant.String(), bucket, texts(ids))
	return ids
}

// propose writes n envelopes without putting them on the schedule.
func (fx fixture) propose(bucket int64, effect envelope.Effect, approval envelope.Approval, n int) []envelope.ActionID {
	fx.t.Helper()
	ids := make([]envelope.ActionID, n)
	for i := range ids {
		ids[i] = envelope.NewActionID()
	}
	fx.exec(`INSERT INTO actions (tenant_id, action_id, content_digest, source_id, tool_name, args, risk, effect,
			decision_id, config_version, tool_digest, approval_state, approval_expires_at, bucket_id, max_attempts)
		SELECT $1, unnest($2::uuid[]), '\x00', 'src', 'tool', '{}', 'low', $3, $1, 1, '\x00', $4, now() + interval '1 hour', $5, 3`,
		fx.tenant.String(), texts(ids), string(effect), string(approval), bucket)
	return ids
}

// claim leases up to most of the fixture's bucket.
func (fx fixture) claim(most int) []outbox.Item {
	fx.t.Helper()
	return fx.claimFrom(outbox.ClaimRequest{Bucket: fx.bucket, Quota: most})
}

func (fx fixture) claimFrom(wants ...outbox.ClaimRequest) []outbox.Item {
	fx.t.Helper()
	var items []outbox.Item
	fx.as(postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
		items, err = outbox.Claim(fx.t.Context(), tx, wants, term)
		return err
	})
	return items
}

func (fx fixture) settle(batch ...outbox.Settlement) []outbox.Lease {
	fx.t.Helper()
	var settled []outbox.Lease
	fx.as(postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
		settled, err = outbox.Settle(fx.t.Context(), tx, "w1", batch)
		return err
	})
	return settled
}

// start marks leases and returns those that may be sent.
func (fx fixture) start(leases ...outbox.Lease) []outbox.Lease {
	fx.t.Helper()
	var may []outbox.Lease
	fx.as(postgres.Worker().Planned(), func(tx pgx.Tx) error {
		started, err := outbox.Start(fx.t.Context(), tx, leases, term)
		for _, l := range leases {
			if started[l] {
				may = append(may, l)
			}
		}
		return err
	})
	return may
}

func (fx fixture) replay(doubling bool, ids ...envelope.ActionID) ([]envelope.ActionID, error) {
	var replayed []envelope.ActionID
	err := postgres.InTx(fx.t.Context(), fx.db, postgres.API(fx.tenant), func(tx pgx.Tx) error {
		done, err := deadletter.Replay(fx.t.Context(), tx, fx.tenant, deadletter.BulkRequest{IDs: ids, Limit: len(ids), Actor: "ada"}, deadletter.ReplayOptions{AllowDuplicates: doubling})
		replayed = done.Actions
		return err
	})
	return replayed, err
}

func (fx fixture) view(id envelope.ActionID) outbox.View {
	fx.t.Helper()
	var views []outbox.View
	fx.as(postgres.API(fx.tenant), func(tx pgx.Tx) (err error) {
		views, err = outbox.Get(fx.t.Context(), tx, fx.tenant, id)
		return err
	})
	if len(views) != 1 {
		fx.t.Fatalf("Get(%s) has %d envelopes, want 1", id, len(views))
	}
	return views[0]
}

func (fx fixture) ledger(id envelope.ActionID) []outbox.Attempt {
	fx.t.Helper()
	var attempts []outbox.Attempt
	fx.as(postgres.API(fx.tenant), func(tx pgx.Tx) (err error) {
		attempts, err = outbox.Attempts(fx.t.Context(), tx, fx.tenant, id)
		return err
	})
	return attempts
}

func (fx fixture) letters(f deadletter.Filter) []deadletter.Entry {
	fx.t.Helper()
	f.Limit = 100
	var letters []deadletter.Entry
	fx.as(postgres.API(fx.tenant), func(tx pgx.Tx) (err error) {
		letters, err = deadletter.List(fx.t.Context(), tx, fx.tenant, f)
		return err
	})
	return letters
}

// sent, failed, lost and again are what becomes of a claimed envelope.
func sent(it outbox.Item) outbox.Settlement {
	return outbox.Settlement{Lease: it.Lease, Status: envelope.StatusSent, Attempt: it.Attempt + 1, Result: []byte(`{"ok":true}`), ProviderID: "p1", Took: time.Second}
}

func failed(it outbox.Item) outbox.Settlement {
	return outbox.Settlement{Lease: it.Lease, Status: envelope.StatusFailed, Attempt: it.Attempt + 1, Code: "rejected", Message: "no", DeadLetter: outbox.Refused}
}

func texts(ids []envelope.ActionID) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = id.String()
	}
	return all
}

func actionsOf(items []outbox.Item) []envelope.ActionID {
	ids := make([]envelope.ActionID, len(items))
	for i := range items {
		ids[i] = items[i].Action
	}
	return ids
}
