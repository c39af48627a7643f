package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// templateNumber is the number of the action that others are copied from, after
// all measured ones.
const templateNumber = 1_000_000_000

// backlogBucket is the bucket whose due actions must not run.
const backlogBucket = "flood"

// blockedBucket is a reason for which almost no action of backlogBucket may run.
type blockedBucket struct {
	name   string
	bucket limits.Bucket
	paused bool
	// state is SQL to execute after that.
	state string
}

// closed blocks the bucket completely while it is filled.
func closed() blockedBucket { return blockedBucket{name: "paused", paused: true} }

// blockedBuckets are the reasons that the run exhausted measures.
func blockedBuckets() []blockedBucket {
	return []blockedBucket{
		closed(),
		{name: "10 a second", bucket: limits.Bucket{Rate: &limits.Rate{Limit: 10, Per: envelope.Duration(time.Second)}}},
		{
			name: "calendar used up", bucket: limits.Bucket{Calendar: &limits.Calendar{Limit: 1, Every: limits.PeriodMonth}},
			state: "UPDATE buckets SET calendar_used = calendar_limit WHERE name = 'flood'",
		},
		{
			name: "at its ceiling", bucket: limits.Bucket{Concurrency: 1},
			state: `UPDATE outbox SET held = true, lease_until = now() + interval '1 day', fence = fence + 1 WHERE (tenant_id, action_id) =
				(SELECT o.tenant_id, o.action_id FROM outbox o JOIN buckets b USING (bucket_id) WHERE b.name = 'flood' LIMIT 1)`,
		},
	}
}

// build replaces the rules of the bucket.
func (d blockedBucket) build(ctx context.Context, h *environment) error {
	err := postgres.InTx(ctx, h.pool, postgres.Admin(), func(tx pgx.Tx) error {
		d.bucket.Name = backlogBucket
		if err := limits.PutBucket(ctx, tx, h.tenant, d.bucket, "bench"); err != nil {
			return err
		}
		of := pause.Target{Scope: pause.Bucket, Subject: backlogBucket}
		paused, err := pause.List(ctx, tx, h.tenant, pause.Filter{Active: true, Most: 1})
		switch {
		case err != nil:
			return err
		case d.paused && len(paused) == 0:
			_, err = pause.Set(ctx, tx, h.tenant, pause.Order{Target: of, Reason: "bench", By: "bench"})
		case !d.paused && len(paused) > 0:
			err = pause.Lift(ctx, tx, h.tenant, of, "bench", "bench")
		}
		return err
	})
	for _, statement := range []string{"UPDATE outbox SET held = false, lease_until = NULL WHERE held", d.state} {
		if err == nil && statement != "" {
			_, err = h.pool.Exec(ctx, statement)
		}
	}
	return err
}

// bucketsLeft selects whether one of the measured buckets has work.
const bucketsLeft = `SELECT EXISTS (SELECT 1 FROM buckets b WHERE b.name LIKE 'bucket.%'
	AND EXISTS (SELECT 1 FROM outbox o WHERE o.bucket_id = b.bucket_id))`

// measureExhausted burns actions down with another bucket of -crowd due actions,
// of which almost none may run, and without that bucket.
func measureExhausted(ctx context.Context, s *suite) error {
	return s.environment(ctx, "", func(beside *environment) error {
		if err := closed().build(ctx, beside); err != nil {
			return err
		}
		began := time.Now()
		if err := fillDue(ctx, beside, s.crowd); err != nil {
			return err
		}
		s.rep.note("%d due envelopes were written in %s", s.crowd, time.Since(began).Round(time.Second))
		var empty []float64
		ours := make(map[string][]float64)
		for round := range s.rounds {
			without, err := s.emptyRate(ctx, bucketsLeft)
			if err != nil {
				return err
			}
			empty = append(empty, without)
			for i, d := range blockedBuckets() {
				if err := d.build(ctx, beside); err != nil {
					return err
				}
				r, err := beside.burnRate(ctx, (round*len(blockedBuckets())+i)*s.n, s.n, bucketsLeft)
				if err != nil {
					return fmt.Errorf("%s: %w", d.name, err)
				}
				ours[d.name] = append(ours[d.name], r)
				s.rep.note("round %d: beside one that is %s %.0f/s, without it %.0f/s", round+1, d.name, r, without)
			}
		}
		for _, d := range blockedBuckets() {
			s.rep.pair("beside: "+d.name, "/s", ours[d.name], empty, map[string]float64{"due": float64(s.crowd)})
		}
		return nil
	})
}

// fillDue inserts n due actions into backlogBucket.
func fillDue(ctx context.Context, h *environment, n int) error {
	if _, err := h.burnRate(ctx, templateNumber, 1, bucketsLeft); err != nil { // the template of the others
		return err
	}
	const step = 250_000
	for from := 0; from < n; from += step {
		if err := copyDue(ctx, h.pool, uuid.UUID(h.tenant), backlogBucket, min(step, n-from), "0"); err != nil {
			return err
		}
	}
	_, err := h.pool.Exec(ctx, "VACUUM ANALYZE outbox, actions")
	return err
}

// copyDue inserts n actions of a tenant that are due after an interval, copies of the first
// action.
func copyDue(ctx context.Context, pool *pgxpool.Pool, tenant uuid.UUID, bucket string, n int, after string) error {
	_, err := pool.Exec(ctx, `
		WITH template AS (SELECT * FROM actions LIMIT 1), due AS (
			INSERT INTO actions (tenant_id, action_id, external_id, content_digest, source_id, tool_name, args, risk, effect,
				decision_id, config_version, tool_digest, approval_state, bucket_id, rate_bucket, max_attempts)
			SELECT t.tenant_id, i.id, i.id::text, template.content_digest, template.source_id, template.tool_name, template.args, template.risk, template.effect,
				template.decision_id, t.config_version, template.tool_digest, template.approval_state, b.bucket_id, b.name, template.max_attempts
			FROM template, tenants t, buckets b, (SELECT gen_random_uuid() AS id FROM generate_series(1, $3::int)) i
			WHERE t.tenant_id = $1 AND b.tenant_id = t.tenant_id AND b.name = $2
			RETURNING tenant_id, action_id, bucket_id, max_attempts)
		INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts)
		SELECT tenant_id, action_id, bucket_id, now() + $4::interval, max_attempts FROM due`, tenant, bucket, n, after)
	return err
}

// backlogs are the sizes of ten tenants' backlogs, as multiples of the smallest.
func backlogs() []int { return []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} }

// measureTenants measures the share of a worker that each of ten tenants with very
// different backlogs got while all of them had work.
func measureTenants(ctx context.Context, s *suite) error {
	smallest := max(s.n/400, 50)
	var fewest, most []float64
	for round := range s.rounds {
		err := s.environment(ctx, "", func(h *environment) error {
			if err := fillBacklogs(ctx, h, smallest); err != nil {
				return err
			}
			const left = "SELECT EXISTS (SELECT 1 FROM tenants t WHERE t.name = 'crowd-0' AND EXISTS (SELECT 1 FROM outbox o WHERE o.tenant_id = t.tenant_id))"
			if _, err := h.burn(ctx, left); err != nil {
				return err
			}
			got, err := shares(ctx, h.pool)
			if err != nil {
				return err
			}
			least, greatest, texts := got[0], got[0], make([]string, len(got))
			for i, share := range got {
				least, greatest = min(least, share), max(greatest, share)
				texts[i] = fmt.Sprintf("%.1f%%", share)
			}
			fewest, most = append(fewest, least), append(most, greatest)
			s.rep.note("round %d: backlogs of %d times %v got %s", round+1, smallest, backlogs(), strings.Join(texts, " "))
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.rep.pair("tenants, fewest ÷ most", "%", fewest, most, map[string]float64{"tenants": float64(len(backlogs())), "smallest_backlog": float64(smallest)})
	return nil
}

// fillBacklogs creates tenants like the first, each with its backlog in three
// buckets.
func fillBacklogs(ctx context.Context, h *environment, smallest int) error {
	if _, err := h.burnRate(ctx, templateNumber, 1, bucketsLeft); err != nil { // the template of the others
		return err
	}
	for i, times := range backlogs() {
		id, err := crowdTenant(ctx, h, i, 3)
		if err != nil {
			return err
		}
		for n := range 3 {
			if err := copyDue(ctx, h.pool, id, bucketName(n), (times*smallest+2-n)/3, "0"); err != nil {
				return err
			}
		}
	}
	_, err := h.pool.Exec(ctx, "VACUUM ANALYZE outbox, actions")
	return err
}

// shares returns the number of actions of each tenant, in percent, that had
// ended when the tenant with the smallest backlog had none left.
func shares(ctx context.Context, pool *pgxpool.Pool) ([]float64, error) {
	rows, err := pool.Query(ctx, `
		WITH done AS (
			SELECT t.name, e.finished_at FROM tool_executions e JOIN tenants t USING (tenant_id) WHERE t.name LIKE 'crowd-%' AND e.status = 'sent'
		)
		SELECT (100.0 * count(d.finished_at) / sum(count(d.finished_at)) OVER ())::float8
		FROM tenants t
		LEFT JOIN done d ON d.name = t.name AND d.finished_at <= (SELECT max(finished_at) FROM done WHERE name = 'crowd-0')
		WHERE t.name LIKE 'crowd-%'
		GROUP BY t.name
		ORDER BY t.name`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[float64])
}

// measureLimited burns actions down through buckets whose limits are too wide to
// have an effect, and through buckets without limits: the cost of limits.
func measureLimited(ctx context.Context, s *suite) error {
	wide := limits.Bucket{Rate: &limits.Rate{Limit: 1_000_000, Per: envelope.Duration(100 * time.Second), Burst: 1_000_000}}
	all := wide
	all.Concurrency, all.Calendar = 100_000, &limits.Calendar{Limit: 1_000_000_000, Every: limits.PeriodDay}
	kinds := []struct {
		name   string
		bucket limits.Bucket
	}{{"without limits", limits.Bucket{}}, {"a rate", wide}, {"a ceiling", limits.Bucket{Concurrency: 100_000}}, {"all limits", all}}
	rates := make([][]float64, len(kinds))
	for round := range s.rounds {
		for i, kind := range kinds {
			err := s.environment(ctx, "", func(h *environment) error {
				if err := putBuckets(ctx, h, kind.bucket); err != nil {
					return err
				}
				r, err := h.burnRate(ctx, 0, s.n, bucketsLeft)
				rates[i] = append(rates[i], r)
				if err != nil {
					return err
				}
				return checkSent(ctx, h.pool, s.n)
			})
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			s.rep.note("round %d: with %s %.0f/s", round+1, kind.name, rates[i][round])
		}
	}
	for i, kind := range kinds[1:] {
		s.rep.pair("limited: "+kind.name, "/s", rates[i+1], rates[0], nil)
	}
	return nil
}

// putBuckets sets the limits of every measured bucket.
func putBuckets(ctx context.Context, h *environment, b limits.Bucket) error {
	return postgres.InTx(ctx, h.pool, postgres.Admin(), func(tx pgx.Tx) error {
		for n := range bucketCount {
			b.Name = bucketName(n)
			if err := limits.PutBucket(ctx, tx, h.tenant, b, "bench"); err != nil {
				return err
			}
		}
		return nil
	})
}
