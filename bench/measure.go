package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
)

// with gives fn a fresh database of ours and closes it.
func with(ctx context.Context, srv *server, effect envelope.Effect, fn func(h *environment, url string) error) error {
	url, drop, err := srv.fresh(ctx)
	if err != nil {
		return err
	}
	defer drop()
	if err := newTenant(ctx, url, effect, srv.rules); err != nil {
		return err
	}
	h, err := newEnvironment(ctx, url)
	if err != nil {
		return err
	}
	defer h.close(ctx)
	return fn(h, url)
}

// withPeer gives fn a fresh database of River's.
func withPeer(ctx context.Context, srv *server, fn func(p *peer, url string) error) error {
	url, drop, err := srv.fresh(ctx)
	if err != nil {
		return err
	}
	defer drop()
	p, err := newPeer(ctx, url)
	if err != nil {
		return err
	}
	defer p.close()
	return fn(p, url)
}

func rate(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

func measureBurn(ctx context.Context, o options, srv *server, rep *report) error {
	return burnDown(ctx, o, srv, rep, "burn-down", "")
}

func measureOnce(ctx context.Context, o options, srv *server, rep *report) error {
	return burnDown(ctx, o, srv, rep, "burn-down, class once", envelope.EffectOnce)
}

func burnDown(ctx context.Context, o options, srv *server, rep *report, name string, effect envelope.Effect) error {
	var ours, peers []float64
	extra := make(map[string]float64)
	for round := range o.rounds {
		err := withPeer(ctx, srv, func(p *peer, _ string) error {
			if err := p.insert(ctx, 0, o.n, 5000); err != nil {
				return err
			}
			took, err := p.burn(ctx)
			peers = append(peers, rate(o.n, took))
			return err
		})
		if err != nil {
			return fmt.Errorf("river: %w", err)
		}
		err = with(ctx, srv, effect, func(h *environment, _ string) error {
			before, err := costs(ctx, h.pool)
			if err != nil {
				return err
			}
			if err := h.submit(ctx, 0, o.n, 1000); err != nil {
				return err
			}
			between, err := costs(ctx, h.pool)
			if err != nil {
				return err
			}
			took, err := h.burn(ctx)
			if err != nil {
				return err
			}
			ours = append(ours, rate(o.n, took))
			after, err := costs(ctx, h.pool)
			if err != nil {
				return err
			}
			extra["wal_bytes_submit"] = (between.wal - before.wal) / float64(o.n)
			extra["wal_bytes_work"] = (after.wal - between.wal) / float64(o.n)
			extra["row_versions"] = (after.versions - before.versions) / float64(o.n)
			return checkLedger(ctx, h.pool, o.n)
		})
		if err != nil {
			return fmt.Errorf("ours: %w", err)
		}
		rep.note("round %d: ours %.0f/s, river %.0f/s, ratio %.2f", round+1, ours[round], peers[round], ours[round]/peers[round])
	}
	if err := rep.pair(name, "/s", ours, peers, extra); err != nil {
		return err
	}
	rep.note("per envelope: %.0f bytes of WAL to submit, %.0f to work, %.1f row versions", extra["wal_bytes_submit"], extra["wal_bytes_work"], extra["row_versions"])
	return nil
}

// checkLedger returns an error unless n envelopes were executed and recorded.
func checkLedger(ctx context.Context, pool *pgxpool.Pool, n int) error {
	var sent int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM tool_executions WHERE status = 'sent' AND result IS NOT NULL").Scan(&sent); err != nil {
		return err
	}
	if sent != n {
		return fmt.Errorf("the ledger has %d of %d envelopes", sent, n)
	}
	return nil
}

type cost struct{ wal, versions float64 }

// costs reads what the database has written so far: bytes of WAL, and
// versions of rows in our tables.
func costs(ctx context.Context, pool *pgxpool.Pool) (c cost, err error) {
	time.Sleep(1500 * time.Millisecond) // backends report their statistics once a second
	err = pool.QueryRow(ctx, `
		SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8,
			(SELECT sum(pg_stat_get_tuples_inserted(c.oid) + pg_stat_get_tuples_updated(c.oid))::float8
			FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace)`).Scan(&c.wal, &c.versions)
	return c, err
}

func measureSubmit(ctx context.Context, o options, srv *server, rep *report) error {
	const batch = 500
	var ours, peers []float64
	for range o.rounds {
		err := withPeer(ctx, srv, func(p *peer, _ string) error {
			began := time.Now()
			err := p.insert(ctx, 0, o.n, batch)
			peers = append(peers, rate(o.n, time.Since(began)))
			return err
		})
		if err != nil {
			return fmt.Errorf("river: %w", err)
		}
		err = with(ctx, srv, "", func(h *environment, _ string) error {
			began := time.Now()
			err := h.submit(ctx, 0, o.n, batch)
			ours = append(ours, rate(o.n, time.Since(began)))
			return err
		})
		if err != nil {
			return fmt.Errorf("ours: %w", err)
		}
	}
	return rep.pair("submit, batches of 500", "/s", ours, peers, nil)
}

// measureSustained submits as fast as the work allows: the submitter stops
// while more than ahead envelopes wait.
func measureSustained(ctx context.Context, o options, srv *server, rep *report) error {
	var ours, peers []float64
	for range o.rounds {
		err := withPeer(ctx, srv, func(p *peer, _ string) error {
			if err := p.client.Start(ctx); err != nil {
				return err
			}
			n, err := sustain(ctx, o.length, 5000, p.insert, p.left)
			peers = append(peers, float64(n)/o.length.Seconds())
			return errors.Join(err, p.client.Stop(context.WithoutCancel(ctx)))
		})
		if err != nil {
			return fmt.Errorf("river: %w", err)
		}
		err = with(ctx, srv, "", func(h *environment, _ string) error {
			working, cancel := context.WithCancel(ctx)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- h.work(working) }()
			n, err := sustain(ctx, o.length, 1000, h.submit, func(ctx context.Context, _ int) (int, error) { return h.left(ctx) })
			ours = append(ours, float64(n)/o.length.Seconds())
			cancel()
			return errors.Join(err, <-ended)
		})
		if err != nil {
			return fmt.Errorf("ours: %w", err)
		}
	}
	return rep.pair("sustained", "/s", ours, peers, nil)
}

// sustain submits for a while and returns how many were done by then.
func sustain(ctx context.Context, length time.Duration, batch int, submit func(ctx context.Context, from, n, batch int) error,
	left func(ctx context.Context, submitted int) (int, error),
) (int, error) {
	const ahead = 20_000
	end := time.Now().Add(length)
	submitted, known := 0, 0 // known: done at least
	for time.Now().Before(end) {
		if submitted-known >= ahead {
			waiting, err := left(ctx, submitted)
			if err != nil {
				return 0, err
			}
			if known = submitted - waiting; waiting >= ahead {
				time.Sleep(5 * time.Millisecond)
				continue
			}
		}
		if err := submit(ctx, submitted, batch, batch); err != nil {
			return 0, err
		}
		submitted += batch
	}
	waiting, err := left(ctx, submitted)
	return submitted - waiting, err
}

// left counts what waits. What has ended is what was submitted less that, and
// the outbox is small, so looking costs next to nothing.
func (h *environment) left(ctx context.Context) (n int, err error) {
	err = h.pool.QueryRow(ctx, "SELECT count(*) FROM outbox").Scan(&n)
	return n, err
}

func measurePast(ctx context.Context, o options, srv *server, rep *report) error {
	var ours, empty []float64
	return with(ctx, srv, "", func(behind *environment, _ string) error {
		began := time.Now()
		if err := fillPast(ctx, behind, o.past); err != nil {
			return err
		}
		rep.note("%d ended envelopes were written in %s", o.past, time.Since(began).Round(time.Second))
		for round := range o.rounds {
			err := with(ctx, srv, "", func(h *environment, _ string) error {
				if err := h.submit(ctx, 0, o.n, 1000); err != nil {
					return err
				}
				took, err := h.burn(ctx)
				empty = append(empty, rate(o.n, took))
				return err
			})
			if err != nil {
				return err
			}
			if err := behind.submit(ctx, round*o.n, o.n, 1000); err != nil {
				return err
			}
			took, err := behind.burn(ctx)
			if err != nil {
				return err
			}
			ours = append(ours, rate(o.n, took))
			rep.note("round %d: with the past %.0f/s, empty %.0f/s", round+1, ours[round], empty[round])
		}
		return rep.pair("burn-down, past ÷ empty", "/s", ours, empty, nil)
	})
}

// fillPast inserts envelopes that have ended.
func fillPast(ctx context.Context, h *environment, n int) error {
	if err := h.submit(ctx, -1, 1, 1); err != nil {
		return err
	}
	if _, err := h.burn(ctx); err != nil {
		return err
	}
	const step = 500_000
	for from := 0; from < n; from += step {
		_, err := h.pool.Exec(ctx, `
			WITH one AS (SELECT * FROM actions LIMIT 1), past AS (
				INSERT INTO actions (tenant_id, action_id, external_id, content_digest, source_id, tool_name, args, risk, effect,
					decision_id, config_version, tool_digest, approval_state, bucket_id, rate_bucket, max_attempts)
				SELECT one.tenant_id, gen_random_uuid(), 'past-' || g, content_digest, source_id, tool_name, args, risk, effect,
					decision_id, config_version, tool_digest, approval_state, bucket_id, rate_bucket, max_attempts
				FROM one, generate_series($1::int, $2::int) g
				RETURNING tenant_id, action_id)
			INSERT INTO tool_executions (tenant_id, action_id, attempt, status, result, worker, started_at, finished_at)
			SELECT tenant_id, action_id, 1, 'sent', '{}', 'past', now(), now() FROM past`, from+1, min(from+step, n))
		if err != nil {
			return err
		}
	}
	_, err := h.pool.Exec(ctx, "VACUUM ANALYZE")
	return err
}
