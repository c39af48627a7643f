package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Settle writes the outcomes of claimed envelopes: the outbox row, the row of the
// execution log and, where one is needed, the dead letter, all or none. It returns
// the leases that it settled; the other leases were lost, and nothing was written.
// Settling is never held back: a database that lost commits lacks it.
func Settle(ctx context.Context, tx pgx.Tx, mark Mark, worker string, batch []Settlement) ([]Lease, error) {
	var final, back []*Settlement
	for i := range batch {
		if batch[i].Status == envelope.StatusPending {
			back = append(back, &batch[i])
		} else {
			final = append(final, &batch[i])
		}
	}
	held := make(map[Lease]span, len(batch))
	if len(final) > 0 {
		if err := settleFinal(ctx, tx, mark, worker, final, held); err != nil {
			return nil, err
		}
	}
	if len(back) > 0 {
		if err := settleBack(ctx, tx, mark, worker, back, held); err != nil {
			return nil, err
		}
	}
	settled := make([]Lease, 0, len(held))
	permits, closings := make(map[Permit]int64), make(map[int64]time.Duration)
	for i := range batch {
		s := &batch[i]
		took, ok := held[s.Lease]
		if !ok {
			continue
		}
		s.StartedAt, s.FinishedAt = took.from, took.until
		settled = append(settled, s.Lease)
		if s.UnusedPermit != (Permit{}) {
			permits[s.UnusedPermit]++
		}
		if s.CloseBucketFor > 0 {
			closings[s.CloseBucket] = max(closings[s.CloseBucket], s.CloseBucketFor)
		}
	}
	if err := lockBuckets(ctx, tx, permits, closings); err != nil {
		return nil, err
	}
	if err := returnPermits(ctx, tx, permits); err != nil {
		return nil, err
	}
	return settled, closeBuckets(ctx, tx, closings)
}

// outboxSettleFinal is the only statement that is not in db/queries: sqlc does
// not support the columns of USING in RETURNING, and joining them again would
// cost the square of the batch. Its plan is restricted to nested loops
// (postgres.Scope.Planned).
//
// It ends envelopes: it deletes the outbox row, inserts an execution row and,
// where a person has to act, a dead letter. It requires the fence of the claim.
const outboxSettleFinal = `
WITH ended AS (
    SELECT
        unnest($1::uuid[]) AS tenant_id,
        unnest($2::uuid[]) AS action_id,
        unnest($3::bigint[]) AS fence,
        unnest($4::integer[]) AS attempt,
        unnest($5::text[]) AS status,
        unnest($6::text[]) AS code,
        unnest($7::text[]) AS message,
        unnest($8::json[]) AS result,
        unnest($9::text[]) AS provider_id,
        unnest($10::float8[]) AS duration_seconds,
        unnest($11::text[]) AS reason
), deleted AS (
    DELETE FROM outbox o
    USING ended e
    WHERE o.tenant_id = ANY (ARRAY[e.tenant_id]) AND o.action_id = e.action_id AND o.fence = e.fence
    RETURNING o.bucket_id, o.claim_id, e.tenant_id, e.action_id, e.fence, e.attempt, e.status, e.code, e.message, e.result, e.provider_id, e.duration_seconds, e.reason, clock_timestamp() AS finished_at
), subtracted AS (
    INSERT INTO bucket_claims (tenant_id, bucket_id, claim_id, n)
    SELECT g.tenant_id, g.bucket_id, g.claim_id, -count(1)
    FROM deleted g
    WHERE g.claim_id IS NOT NULL
    GROUP BY g.tenant_id, g.bucket_id, g.claim_id
), inserted_attempts AS (
    INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, message, result, provider_id, worker, started_at, finished_at)
    SELECT g.tenant_id, g.action_id, g.attempt, g.status, nullif(g.code, ''), nullif(g.message, ''), g.result, nullif(g.provider_id, ''), $12::text,
        g.finished_at - make_interval(secs => g.duration_seconds), g.finished_at
    FROM deleted g
), inserted_dead_letters AS (
    INSERT INTO dead_letters (tenant_id, action_id, reason, attempt, code, message)
    SELECT g.tenant_id, g.action_id, g.reason, g.attempt, nullif(g.code, ''), nullif(g.message, '')
    FROM deleted g
    WHERE g.reason <> ''
    ON CONFLICT ON CONSTRAINT dead_letters_pkey DO UPDATE
    SET reason = excluded.reason, attempt = excluded.attempt, code = excluded.code, message = excluded.message, created_at = now()
), counted AS (
    INSERT INTO worker_commits (worker, loop, seq)
    SELECT $13::uuid, $14::smallint, $15::bigint WHERE $15::bigint > 0 AND EXISTS (SELECT FROM deleted)
    ON CONFLICT ON CONSTRAINT worker_commits_pkey DO UPDATE SET seq = excluded.seq
)
SELECT g.tenant_id, g.action_id, g.fence, g.finished_at - make_interval(secs => g.duration_seconds), g.finished_at FROM deleted g`

func settleFinal(ctx context.Context, tx pgx.Tx, mark Mark, worker string, batch []*Settlement, held map[Lease]span) error {
	n := len(batch)
	k := leaseKeys{make([]uuid.UUID, n), make([]uuid.UUID, n), make([]int64, n)}
	attempts, durations := make([]int32, n), make([]float64, n)
	statuses, codes, messages := make([]string, n), make([]string, n), make([]string, n)
	providers, reasons := make([]string, n), make([]string, n)
	results := make([][]byte, n)
	for i, s := range batch {
		k.tenants[i], k.actions[i], k.fences[i] = uuid.UUID(s.Tenant), uuid.UUID(s.Action), s.Fence
		attempts[i], durations[i] = int32(s.Attempt), s.Took.Seconds()
		statuses[i], codes[i], messages[i] = string(s.Status), s.Code, s.Message
		providers[i], reasons[i], results[i] = s.ProviderID, string(s.DeadLetter), s.Result
	}
	rows, err := tx.Query(ctx, outboxSettleFinal, k.tenants, k.actions, k.fences, attempts, statuses, codes, messages,
		results, providers, durations, reasons, worker, mark.Worker, mark.Loop, mark.Seq)
	if err != nil {
		return err
	}
	var tenant, action uuid.UUID
	var fence int64
	var took span
	_, err = pgx.ForEachRow(rows, []any{&tenant, &action, &fence, &took.from, &took.until}, func() error {
		held[Lease{envelope.TenantID(tenant), envelope.ActionID(action), fence}] = took
		return nil
	})
	return err
}

func settleBack(ctx context.Context, tx pgx.Tx, mark Mark, worker string, batch []*Settlement, held map[Lease]span) error {
	n := len(batch)
	p := &dbsqlc.OutboxSettleBackParams{
		TenantIds: make([]uuid.UUID, n), ActionIds: make([]uuid.UUID, n), Fences: make([]int64, n),
		Attempts: make([]int32, n), Delays: make([]float64, n), Deferred: make([]bool, n), Unsure: make([]bool, n),
		WaitsFor: make([]string, n), Codes: make([]string, n), Messages: make([]string, n), Results: make([][]byte, n),
		Durations: make([]float64, n), Worker: worker, CountedWorker: mark.Worker, Loop: mark.Loop, Seq: mark.Seq,
	}
	for i, s := range batch {
		p.TenantIds[i], p.ActionIds[i], p.Fences[i] = uuid.UUID(s.Tenant), uuid.UUID(s.Action), s.Fence
		p.Attempts[i], p.Delays[i], p.Deferred[i], p.Unsure[i] = int32(s.Attempt), s.Delay.Seconds(), s.Deferred, s.Unsure
		p.WaitsFor[i] = s.WaitsFor
		p.Codes[i], p.Messages[i], p.Results[i], p.Durations[i] = s.Code, s.Message, s.Result, s.Took.Seconds()
	}
	rows, err := dbsqlc.New().OutboxSettleBack(ctx, tx, p)
	if err != nil {
		return err
	}
	for _, r := range rows {
		held[Lease{envelope.TenantID(r.TenantID), envelope.ActionID(r.ActionID), r.Fence}] = span{r.StartedAt, r.FinishedAt}
	}
	return nil
}

// span is the start and end of an attempt, by the database's clock.
type span struct{ from, until time.Time }
