package outbox_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

const term = 30 * time.Second

// desk is a tenant with a bucket, in a database where it is worked on.
type desk struct {
	t      testing.TB
	db     postgres.Begins
	tenant envelope.TenantID
	bucket int64
}

// newDesk makes a tenant. In one transaction (dbtest.Tx) now() stands still;
// with a pool (dbtest.DB) several goroutines may work on it.
func newDesk(t testing.TB, db postgres.Begins) desk {
	t.Helper()
	d := desk{t: t, db: db, tenant: envelope.TenantID(uuid.Must(uuid.NewV7()))}
	d.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", d.tenant.String(), "t-"+d.tenant.String())
	d.exec(`INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace)
		VALUES ($1, $1, 'allow', 'test', '[]')`, d.tenant.String())
	d.bucket = d.newBucket("default")
	return d
}

// alone returns a tenant in a transaction of its own.
func alone(t testing.TB) desk { return newDesk(t, dbtest.Tx(t)) }

// shared returns a tenant in a database of its own.
func shared(t testing.TB) desk { return newDesk(t, dbtest.DB(t)) }

func (d desk) newBucket(name string) int64 {
	d.t.Helper()
	return one[int64](d, `INSERT INTO buckets (tenant_id, name) VALUES ($1, $2)
		ON CONFLICT ON CONSTRAINT buckets_tenant_id_name_key DO UPDATE SET retired_at = NULL RETURNING bucket_id`, d.tenant.String(), name)
}

// as runs fn in a transaction of a scope, and fails the test with its error.
func (d desk) as(scope postgres.Scope, fn func(tx pgx.Tx) error) {
	d.t.Helper()
	if err := postgres.InTx(d.t.Context(), d.db, scope, fn); err != nil {
		d.t.Fatal(err)
	}
}

func (d desk) exec(sql string, args ...any) {
	d.t.Helper()
	d.as(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(d.t.Context(), sql, args...)
		return err
	})
}

// one returns the only value of a query.
func one[T any](d desk, sql string, args ...any) T {
	d.t.Helper()
	var v T
	d.as(postgres.Admin(), func(tx pgx.Tx) error {
		return tx.QueryRow(d.t.Context(), sql, args...).Scan(&v)
	})
	return v
}

// queue puts n envelopes of an effect class on the schedule, due a minute ago
// and a millisecond apart. Of each three attempts may be made.
func (d desk) queue(effect envelope.Effect, n int) []envelope.ActionID {
	d.t.Helper()
	return d.queueIn(d.bucket, effect, n)
}

func (d desk) queueIn(bucket int64, effect envelope.Effect, n int) []envelope.ActionID {
	d.t.Helper()
	ids := d.propose(bucket, effect, envelope.ApprovalAuto, n)
	d.exec(`INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts)
		SELECT $1, id, $2, now() - interval '1 minute' + place * interval '1 millisecond', 3
		FROM unnest($3::uuid[]) WITH ORDINALITY AS a (id, place)`, d.tenant.String(), bucket, texts(ids))
	return ids
}

// propose writes n envelopes without putting them on the schedule.
func (d desk) propose(bucket int64, effect envelope.Effect, approval envelope.Approval, n int) []envelope.ActionID {
	d.t.Helper()
	ids := make([]envelope.ActionID, n)
	for i := range ids {
		ids[i] = envelope.NewActionID()
	}
	d.exec(`INSERT INTO actions (tenant_id, action_id, content_digest, source_id, tool_name, args, risk, effect,
			decision_id, config_version, tool_digest, approval_state, approval_expires_at, bucket_id, max_attempts)
		SELECT $1, unnest($2::uuid[]), '\x00', 'src', 'tool', '{}', 'low', $3, $1, 1, '\x00', $4, now() + interval '1 hour', $5, 3`,
		d.tenant.String(), texts(ids), string(effect), string(approval), bucket)
	return ids
}

// claim leases up to most of the desk's bucket.
func (d desk) claim(most int) []outbox.Item {
	d.t.Helper()
	return d.claimFrom(outbox.Want{Bucket: d.bucket, Quota: most})
}

func (d desk) claimFrom(wants ...outbox.Want) []outbox.Item {
	d.t.Helper()
	var items []outbox.Item
	d.as(postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
		items, err = outbox.Claim(d.t.Context(), tx, wants, term)
		return err
	})
	return items
}

func (d desk) settle(batch ...outbox.Settlement) []outbox.Lease {
	d.t.Helper()
	var settled []outbox.Lease
	d.as(postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
		settled, err = outbox.Settle(d.t.Context(), tx, "w1", batch)
		return err
	})
	return settled
}

// start marks leases and returns those that may be sent.
func (d desk) start(leases ...outbox.Lease) []outbox.Lease {
	d.t.Helper()
	var may []outbox.Lease
	d.as(postgres.Worker().Planned(), func(tx pgx.Tx) error {
		started, err := outbox.Start(d.t.Context(), tx, leases, term)
		for _, l := range leases {
			if started[l] {
				may = append(may, l)
			}
		}
		return err
	})
	return may
}

func (d desk) undo(id envelope.ActionID) error {
	return postgres.InTx(d.t.Context(), d.db, postgres.API(d.tenant), func(tx pgx.Tx) error {
		return outbox.Undo(d.t.Context(), tx, d.tenant, id, "ada")
	})
}

func (d desk) replay(doubling bool, ids ...envelope.ActionID) ([]envelope.ActionID, error) {
	var replayed []envelope.ActionID
	err := postgres.InTx(d.t.Context(), d.db, postgres.API(d.tenant), func(tx pgx.Tx) error {
		done, err := outbox.Replay(d.t.Context(), tx, d.tenant, outbox.Lot{IDs: ids, Most: len(ids), Actor: "ada"}, outbox.Pace{Doubling: doubling})
		replayed = done.Actions
		return err
	})
	return replayed, err
}

// expire lets leases run out.
func (d desk) expire(ids ...envelope.ActionID) {
	d.t.Helper()
	d.exec("UPDATE outbox SET lease_until = now() - interval '1 second' WHERE tenant_id = $1 AND action_id = ANY ($2::uuid[]) AND lease_until IS NOT NULL",
		d.tenant.String(), texts(ids))
}

// hasten makes envelopes that wait due.
func (d desk) hasten(ids ...envelope.ActionID) {
	d.t.Helper()
	d.exec("UPDATE outbox SET next_attempt_at = now() - interval '1 second' WHERE tenant_id = $1 AND action_id = ANY ($2::uuid[])",
		d.tenant.String(), texts(ids))
}

func (d desk) view(id envelope.ActionID) outbox.View {
	d.t.Helper()
	var views []outbox.View
	d.as(postgres.API(d.tenant), func(tx pgx.Tx) (err error) {
		views, err = outbox.Get(d.t.Context(), tx, d.tenant, id)
		return err
	})
	if len(views) != 1 {
		d.t.Fatalf("Get(%s) has %d envelopes, want 1", id, len(views))
	}
	return views[0]
}

func (d desk) ledger(id envelope.ActionID) []outbox.Attempt {
	d.t.Helper()
	var attempts []outbox.Attempt
	d.as(postgres.API(d.tenant), func(tx pgx.Tx) (err error) {
		attempts, err = outbox.Attempts(d.t.Context(), tx, d.tenant, id)
		return err
	})
	return attempts
}

func (d desk) letters(f outbox.LetterFilter) []outbox.Letter {
	d.t.Helper()
	f.Most = 100
	var letters []outbox.Letter
	d.as(postgres.API(d.tenant), func(tx pgx.Tx) (err error) {
		letters, err = outbox.Letters(d.t.Context(), tx, d.tenant, f)
		return err
	})
	return letters
}

// scheduled says whether an envelope has a row in the outbox.
func (d desk) scheduled(id envelope.ActionID) bool {
	d.t.Helper()
	return one[bool](d, "SELECT EXISTS (SELECT 1 FROM outbox WHERE tenant_id = $1 AND action_id = $2)", d.tenant.String(), id.String())
}

// sent, failed, lost and again are what becomes of a claimed envelope.
func sent(it outbox.Item) outbox.Settlement {
	return outbox.Settlement{Lease: it.Lease, Status: envelope.StatusSent, Attempt: it.Attempt + 1, Result: []byte(`{"ok":true}`), ProviderID: "p1", Took: time.Second}
}

func failed(it outbox.Item) outbox.Settlement {
	return outbox.Settlement{Lease: it.Lease, Status: envelope.StatusFailed, Attempt: it.Attempt + 1, Code: "rejected", Message: "no", Letter: outbox.Refused}
}

func again(it outbox.Item, delay time.Duration) outbox.Settlement {
	return outbox.Settlement{Lease: it.Lease, Status: envelope.StatusPending, Attempt: it.Attempt + 1, Code: "unreachable", Message: "later", Delay: delay}
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
