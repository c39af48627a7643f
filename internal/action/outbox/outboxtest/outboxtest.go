// Package outboxtest has the Fixture of the tests of the outbox and of dead
// letters: a tenant with a bucket, and each step of an action's life.
package outboxtest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// Term is the length of the leases.
const Term = 30 * time.Second

// Fixture is a tenant with a bucket, in a database that stays in use.
type Fixture struct {
	T      testing.TB
	DB     postgres.Begins
	Tenant envelope.TenantID
	Bucket int64
}

// NewIn returns a tenant in a database. In one transaction (dbtest.Tx) now() is constant;
// with a pool (dbtest.DB) several goroutines may use it.
func NewIn(t testing.TB, db postgres.Begins) Fixture {
	t.Helper()
	fx := Fixture{T: t, DB: db, Tenant: envelope.TenantID(uuid.Must(uuid.NewV7()))}
	fx.Exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", fx.Tenant.String(), "t-"+fx.Tenant.String())
	fx.Exec(`INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace)
		VALUES ($1, $1, 'allow', 'test', '[]')`, fx.Tenant.String())
	fx.Bucket = fx.NewBucket("default")
	return fx
}

// New returns a tenant in a transaction of its own.
func New(t testing.TB) Fixture { return NewIn(t, dbtest.Tx(t)) }

// NewShared returns a tenant in a database of its own.
func NewShared(t testing.TB) Fixture { return NewIn(t, dbtest.DB(t)) }

// NewBucket returns the id of a bucket without limits, and creates it if
// necessary.
func (fx Fixture) NewBucket(name string) int64 {
	fx.T.Helper()
	return One[int64](fx, `INSERT INTO buckets (tenant_id, name) VALUES ($1, $2)
		ON CONFLICT ON CONSTRAINT buckets_tenant_id_name_key DO UPDATE SET retired_at = NULL RETURNING bucket_id`, fx.Tenant.String(), name)
}

// As runs fn in a transaction of a scope, and fails the test with its error.
func (fx Fixture) As(scope postgres.Scope, fn func(tx pgx.Tx) error) {
	fx.T.Helper()
	if err := postgres.InTx(fx.T.Context(), fx.DB, scope, fn); err != nil {
		fx.T.Fatal(err)
	}
}

// Exec changes rows with the rights of an administrator.
func (fx Fixture) Exec(sql string, args ...any) {
	fx.T.Helper()
	fx.As(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(fx.T.Context(), sql, args...)
		return err
	})
}

// One returns the only value of a query.
func One[T any](fx Fixture, sql string, args ...any) T {
	fx.T.Helper()
	var v T
	fx.As(postgres.Admin(), func(tx pgx.Tx) error {
		return tx.QueryRow(fx.T.Context(), sql, args...).Scan(&v)
	})
	return v
}

// Queue puts n actions of an effect class on the schedule, due a minute ago
// and a millisecond apart. Each has three attempts.
func (fx Fixture) Queue(effect envelope.Effect, n int) []envelope.ActionID {
	fx.T.Helper()
	return fx.QueueIn(fx.Bucket, effect, n)
}

// QueueIn does the same in another bucket.
func (fx Fixture) QueueIn(bucket int64, effect envelope.Effect, n int) []envelope.ActionID {
	fx.T.Helper()
	ids := fx.Propose(bucket, effect, envelope.ApprovalAuto, n)
	fx.Exec(`INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts)
		SELECT $1, id, $2, now() - interval '1 minute' + place * interval '1 millisecond', 3
		FROM unnest($3::uuid[]) WITH ORDINALITY AS a (id, place)`, fx.Tenant.String(), bucket, Texts(ids))
	return ids
}

// Propose writes n actions without putting them on the schedule.
func (fx Fixture) Propose(bucket int64, effect envelope.Effect, approval envelope.Approval, n int) []envelope.ActionID {
	fx.T.Helper()
	ids := make([]envelope.ActionID, n)
	for i := range ids {
		ids[i] = envelope.NewActionID()
	}
	fx.Exec(`INSERT INTO actions (tenant_id, action_id, content_digest, source_id, tool_name, args, risk, effect,
			decision_id, config_version, tool_digest, approval_state, approval_expires_at, bucket_id, max_attempts)
		SELECT $1, unnest($2::uuid[]), '\x00', 'src', 'tool', '{}', 'low', $3, $1, 1, '\x00', $4, now() + interval '1 hour', $5, 3`,
		fx.Tenant.String(), Texts(ids), string(effect), string(approval), bucket)
	return ids
}

// Claim leases up to most of the fixture's bucket.
func (fx Fixture) Claim(most int) []outbox.Item {
	fx.T.Helper()
	return fx.ClaimFrom(outbox.ClaimRequest{Bucket: fx.Bucket, Quota: most})
}

// ClaimFrom leases the actions of requests.
func (fx Fixture) ClaimFrom(wants ...outbox.ClaimRequest) []outbox.Item {
	fx.T.Helper()
	var items []outbox.Item
	fx.As(postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
		items, err = outbox.Claim(fx.T.Context(), tx, outbox.Mark{}, wants, Term)
		return err
	})
	return items
}

// Settle settles as the worker w1, and returns the leases that were valid.
func (fx Fixture) Settle(batch ...outbox.Settlement) []outbox.Lease {
	fx.T.Helper()
	var settled []outbox.Lease
	fx.As(postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
		settled, err = outbox.Settle(fx.T.Context(), tx, outbox.Mark{}, "w1", batch)
		return err
	})
	return settled
}

// Start marks leases as started and returns those whose calls may be sent.
func (fx Fixture) Start(leases ...outbox.Lease) []outbox.Lease {
	fx.T.Helper()
	var may []outbox.Lease
	fx.As(postgres.Worker().Planned(), func(tx pgx.Tx) error {
		started, err := outbox.Start(fx.T.Context(), tx, outbox.Mark{}, leases, Term)
		for _, l := range leases {
			if started[l] {
				may = append(may, l)
			}
		}
		return err
	})
	return may
}

// Renew extends leases, and returns the number of those that are still held.
func (fx Fixture) Renew(leases ...outbox.Lease) (n int) {
	fx.T.Helper()
	fx.As(postgres.Worker().Planned(), func(tx pgx.Tx) (err error) {
		n, err = outbox.Renew(fx.T.Context(), tx, leases, Term)
		return err
	})
	return n
}

// Undo takes an action off the schedule.
func (fx Fixture) Undo(id envelope.ActionID) error {
	return postgres.InTx(fx.T.Context(), fx.DB, postgres.API(fx.Tenant), func(tx pgx.Tx) error {
		return outbox.Undo(fx.T.Context(), tx, fx.Tenant, id, "ada")
	})
}

// Replay puts dead letters back on the schedule, and returns those it did.
func (fx Fixture) Replay(allowDuplicates bool, ids ...envelope.ActionID) ([]envelope.ActionID, error) {
	var replayed []envelope.ActionID
	err := postgres.InTx(fx.T.Context(), fx.DB, postgres.API(fx.Tenant), func(tx pgx.Tx) error {
		done, err := deadletter.Replay(fx.T.Context(), tx, fx.Tenant, deadletter.BulkRequest{IDs: ids, Limit: len(ids), Actor: "ada"}, deadletter.ReplayOptions{AllowDuplicates: allowDuplicates})
		replayed = done.ActionIDs
		return err
	})
	return replayed, err
}

// Expire lets leases run out.
func (fx Fixture) Expire(ids ...envelope.ActionID) {
	fx.T.Helper()
	fx.Exec("UPDATE outbox SET lease_until = now() - interval '1 second' WHERE tenant_id = $1 AND action_id = ANY ($2::uuid[]) AND lease_until IS NOT NULL",
		fx.Tenant.String(), Texts(ids))
	fx.EndClaims()
}

// EndClaims gives each claim the latest lease of its actions, as if they had got it from
// the claim or a renewal.
func (fx Fixture) EndClaims() {
	fx.T.Helper()
	fx.Exec(`UPDATE bucket_claims c SET lease_until = (SELECT max(o.lease_until) FROM outbox o WHERE o.bucket_id = c.bucket_id AND o.claim_id = c.claim_id)
		WHERE c.tenant_id = $1 AND c.lease_until IS NOT NULL`, fx.Tenant.String())
}

// UnevenClaims returns the claims in bucket_claims whose sum is not their number of rows
// in the outbox, each with both numbers.
func (fx Fixture) UnevenClaims() []string {
	fx.T.Helper()
	return One[[]string](fx, `SELECT coalesce(array_agg(format('bucket %s, claim %s: %s in bucket_claims, %s in outbox', bucket_id, claim_id, coalesce(c.n, 0), coalesce(o.n, 0))), '{}')
		FROM (SELECT bucket_id, claim_id, sum(n) AS n FROM bucket_claims WHERE tenant_id = $1 GROUP BY bucket_id, claim_id) c
		FULL JOIN (SELECT bucket_id, claim_id, count(1) AS n FROM outbox WHERE tenant_id = $1 AND claim_id IS NOT NULL GROUP BY bucket_id, claim_id) o USING (bucket_id, claim_id)
		WHERE coalesce(c.n, 0) <> coalesce(o.n, 0)`, fx.Tenant.String())
}

// Hasten makes waiting actions due.
func (fx Fixture) Hasten(ids ...envelope.ActionID) {
	fx.T.Helper()
	fx.Exec("UPDATE outbox SET next_attempt_at = now() - interval '1 second' WHERE tenant_id = $1 AND action_id = ANY ($2::uuid[])",
		fx.Tenant.String(), Texts(ids))
}

// View returns an action as readers see it.
func (fx Fixture) View(id envelope.ActionID) outbox.View {
	fx.T.Helper()
	var views []outbox.View
	fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) (err error) {
		views, err = outbox.Get(fx.T.Context(), tx, fx.Tenant, id)
		return err
	})
	if len(views) != 1 {
		fx.T.Fatalf("Get(%s) has %d actions, want 1", id, len(views))
	}
	return views[0]
}

// Attempts returns the rows of the execution log of an action.
func (fx Fixture) Attempts(id envelope.ActionID) []wire.Attempt {
	fx.T.Helper()
	var attempts []wire.Attempt
	fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) (err error) {
		attempts, err = outbox.Attempts(fx.T.Context(), tx, fx.Tenant, id)
		return err
	})
	return attempts
}

// DeadLetters returns up to 100 dead letters that a filter selects.
func (fx Fixture) DeadLetters(f deadletter.Filter) []deadletter.Entry {
	fx.T.Helper()
	f.Limit = 100
	var letters []deadletter.Entry
	fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) (err error) {
		letters, err = deadletter.List(fx.T.Context(), tx, fx.Tenant, f)
		return err
	})
	return letters
}

// Scheduled reports whether an action has a row in the outbox.
func (fx Fixture) Scheduled(id envelope.ActionID) bool {
	fx.T.Helper()
	return One[bool](fx, "SELECT EXISTS (SELECT 1 FROM outbox WHERE tenant_id = $1 AND action_id = $2)", fx.Tenant.String(), id.String())
}

// Sent is the settlement of a call that was done.
func Sent(it outbox.Item) outbox.Settlement {
	return outbox.Settlement{Lease: it.Lease, Status: envelope.StatusSent, Attempt: it.Attempt + 1, Result: []byte(`{"ok":true}`), ProviderID: "p1", Took: time.Second}
}

// Failed is the settlement of a call that was refused for good.
func Failed(it outbox.Item) outbox.Settlement {
	return outbox.Settlement{Lease: it.Lease, Status: envelope.StatusFailed, Attempt: it.Attempt + 1, Code: "rejected", Message: "no", DeadLetter: outbox.Refused}
}

// Again is the settlement of a call to repeat after a delay.
func Again(it outbox.Item, delay time.Duration) outbox.Settlement {
	return outbox.Settlement{Lease: it.Lease, Status: envelope.StatusPending, Attempt: it.Attempt + 1, Code: "unreachable", Message: "later", Delay: delay}
}

// Texts returns ids as SQL takes them.
func Texts(ids []envelope.ActionID) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = id.String()
	}
	return all
}

// ActionsOf returns the ids of claimed actions.
func ActionsOf(items []outbox.Item) []envelope.ActionID {
	ids := make([]envelope.ActionID, len(items))
	for i := range items {
		ids[i] = items[i].Action
	}
	return ids
}

// EndAsDeadLetters ends n actions of class once: refused, or unknown.
func (fx Fixture) EndAsDeadLetters(n int, reason outbox.Reason) []envelope.ActionID {
	fx.T.Helper()
	fx.Queue(envelope.EffectOnce, n)
	items := fx.Claim(n)
	for _, it := range items {
		s := Failed(it)
		if reason == outbox.Unknown {
			s = outbox.WorkerLost(it)
		}
		s.DeadLetter = reason
		fx.Settle(s)
	}
	return ActionsOf(items)
}

// RecordAwaited has every insertion of an outbox row, and every change of its
// awaited, recorded for AwaitedSince.
func RecordAwaited(t testing.TB, db *pgxpool.Pool) {
	t.Helper()
	for _, statement := range []string{
		"CREATE TABLE countersign_data.awaited_log (place serial, awaited boolean)",
		`CREATE FUNCTION countersign_data.log_awaited() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
			AS $$ BEGIN INSERT INTO awaited_log (awaited) VALUES (NEW.awaited); RETURN NULL; END $$`,
		"CREATE TRIGGER log_awaited AFTER INSERT OR UPDATE OF awaited ON outbox FOR EACH ROW EXECUTE FUNCTION log_awaited()",
	} {
		if _, err := db.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// AwaitedSince returns the records since the call before.
func AwaitedSince(t testing.TB, db *pgxpool.Pool) []bool {
	t.Helper()
	rows, err := db.Query(t.Context(), "WITH deleted AS (DELETE FROM awaited_log RETURNING place, awaited) SELECT awaited FROM deleted ORDER BY place")
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	if err != nil {
		t.Fatal(err)
	}
	return all
}
