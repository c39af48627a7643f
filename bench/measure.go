package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
)

// suite is what all benchmarks of a run share.
type suite struct {
	options
	srv *server
	rep *report
}

// environment gives fn a tenant in a fresh database.
func (s *suite) environment(ctx context.Context, effect envelope.Effect, fn func(h *environment, url string) error) error {
	url, drop, err := s.srv.fresh(ctx)
	if err != nil {
		return err
	}
	defer drop()
	if err := newTenant(ctx, url, effect, s.rules); err != nil {
		return err
	}
	h, err := newEnvironment(ctx, url)
	if err != nil {
		return err
	}
	defer h.close(ctx)
	return fn(h, url)
}

// peer gives fn River in a fresh database.
func (s *suite) peer(ctx context.Context, fn func(p *peer, url string) error) error {
	url, drop, err := s.srv.fresh(ctx)
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

// compare measures River and Countersign in turn, in every round, and returns
// the rates of each.
func (s *suite) compare(ctx context.Context, effect envelope.Effect, river func(p *peer, url string) (float64, error),
	countersign func(h *environment, url string) (float64, error),
) (ours, peers []float64, err error) {
	for range s.rounds {
		err := s.peer(ctx, func(p *peer, url string) error {
			r, err := river(p, url)
			peers = append(peers, r)
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("river: %w", err)
		}
		err = s.environment(ctx, effect, func(h *environment, url string) error {
			r, err := countersign(h, url)
			ours = append(ours, r)
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("ours: %w", err)
		}
	}
	return ours, peers, nil
}

// timed returns the rate at which fn does n things.
func timed(n int, fn func() error) (float64, error) {
	began := time.Now()
	err := fn()
	return rate(n, time.Since(began)), err
}

func rate(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

func measureBurn(ctx context.Context, s *suite) error {
	return s.burnDown(ctx, "burn-down", "")
}

func measureOnce(ctx context.Context, s *suite) error {
	return s.burnDown(ctx, "burn-down, class once", envelope.EffectOnce)
}

func (s *suite) burnDown(ctx context.Context, name string, effect envelope.Effect) error {
	extra := make(map[string]float64)
	ours, peers, err := s.compare(ctx, effect,
		func(p *peer, _ string) (float64, error) {
			if err := p.insert(ctx, 0, s.n, 5000); err != nil {
				return 0, err
			}
			took, err := p.burn(ctx)
			return rate(s.n, took), err
		},
		func(h *environment, _ string) (float64, error) { return s.burnWithCosts(ctx, h, extra) })
	if err != nil {
		return err
	}
	for round := range ours {
		s.rep.note("round %d: ours %.0f/s, river %.0f/s, ratio %.2f", round+1, ours[round], peers[round], ours[round]/peers[round])
	}
	if err := s.rep.pair(name, "/s", ours, peers, extra); err != nil {
		return err
	}
	s.rep.note("per envelope: %.0f bytes of WAL to submit, %.0f to work, %.1f row versions", extra["wal_bytes_submit"], extra["wal_bytes_work"], extra["row_versions"])
	return nil
}

// burnWithCosts also reads what an action costs.
func (s *suite) burnWithCosts(ctx context.Context, h *environment, extra map[string]float64) (float64, error) {
	before, err := costs(ctx, h.pool)
	if err != nil {
		return 0, err
	}
	if err := h.submit(ctx, 0, s.n, 1000); err != nil {
		return 0, err
	}
	between, err := costs(ctx, h.pool)
	if err != nil {
		return 0, err
	}
	took, err := h.burn(ctx, outboxLeft)
	if err != nil {
		return 0, err
	}
	after, err := costs(ctx, h.pool)
	if err != nil {
		return 0, err
	}
	extra["wal_bytes_submit"] = (between.wal - before.wal) / float64(s.n)
	extra["wal_bytes_work"] = (after.wal - between.wal) / float64(s.n)
	extra["row_versions"] = (after.versions - before.versions) / float64(s.n)
	return rate(s.n, took), checkSent(ctx, h.pool, s.n)
}

// checkSent returns an error unless n actions were executed and recorded.
func checkSent(ctx context.Context, pool *pgxpool.Pool, n int) error {
	var sent int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM tool_executions WHERE status = 'sent' AND result IS NOT NULL").Scan(&sent); err != nil {
		return err
	}
	if sent != n {
		return fmt.Errorf("%d of %d actions are recorded as sent", sent, n)
	}
	return nil
}

type cost struct{ wal, versions float64 }

// costs reads what the database has written so far: bytes of WAL, and versions
// of rows in Countersign's tables.
func costs(ctx context.Context, pool *pgxpool.Pool) (c cost, err error) {
	time.Sleep(1500 * time.Millisecond) // backends report their statistics once a second
	err = pool.QueryRow(ctx, `
		SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8,
			(SELECT sum(pg_stat_get_tuples_inserted(c.oid) + pg_stat_get_tuples_updated(c.oid))::float8
			FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace)`).Scan(&c.wal, &c.versions)
	return c, err
}

func measureSubmit(ctx context.Context, s *suite) error {
	const batch = 500
	ours, peers, err := s.compare(ctx, "",
		func(p *peer, _ string) (float64, error) {
			return timed(s.n, func() error { return p.insert(ctx, 0, s.n, batch) })
		},
		func(h *environment, _ string) (float64, error) {
			return timed(s.n, func() error { return h.submit(ctx, 0, s.n, batch) })
		})
	if err != nil {
		return err
	}
	return s.rep.pair("submit, batches of 500", "/s", ours, peers, nil)
}

// measureSustained submits as fast as the work allows: the submitter stops
// while more than ahead actions wait.
func measureSustained(ctx context.Context, s *suite) error {
	ours, peers, err := s.compare(ctx, "",
		func(p *peer, _ string) (float64, error) {
			if err := p.client.Start(ctx); err != nil {
				return 0, err
			}
			done, err := sustain(ctx, s.length, 5000, p.insert, p.left)
			return done, errors.Join(err, p.client.Stop(context.WithoutCancel(ctx)))
		},
		func(h *environment, _ string) (done float64, err error) {
			err = h.whileWorking(ctx, func() error {
				done, err = sustain(ctx, s.length, 1000, h.submit, func(ctx context.Context, _ int) (int, error) { return h.left(ctx) })
				return err
			})
			return done, err
		})
	if err != nil {
		return err
	}
	return s.rep.pair("sustained", "/s", ours, peers, nil)
}

// sustain submits for a while and returns at what rate actions ended.
func sustain(ctx context.Context, length time.Duration, batch int, submit func(ctx context.Context, from, n, batch int) error,
	left func(ctx context.Context, submitted int) (int, error),
) (float64, error) {
	const ahead = 20_000
	end := time.Now().Add(length)
	submitted, known := 0, 0 // known: ended at least
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
	return float64(submitted-waiting) / length.Seconds(), err
}

// left counts what waits. Submitted actions that do not wait have ended, and
// the outbox is small, so that the query costs next to nothing.
func (h *environment) left(ctx context.Context) (n int, err error) {
	err = h.pool.QueryRow(ctx, "SELECT count(*) FROM outbox").Scan(&n)
	return n, err
}

func measurePast(ctx context.Context, s *suite) error {
	var ours, empty []float64
	return s.environment(ctx, "", func(behind *environment, _ string) error {
		began := time.Now()
		if err := fillPast(ctx, behind, s.past); err != nil {
			return err
		}
		s.rep.note("%d ended envelopes were written in %s", s.past, time.Since(began).Round(time.Second))
		for round := range s.rounds {
			err := s.environment(ctx, "", func(h *environment, _ string) error {
				r, err := h.burnRate(ctx, 0, s.n, outboxLeft)
				empty = append(empty, r)
				return err
			})
			if err != nil {
				return err
			}
			r, err := behind.burnRate(ctx, round*s.n, s.n, outboxLeft)
			if err != nil {
				return err
			}
			ours = append(ours, r)
			s.rep.note("round %d: with the past %.0f/s, empty %.0f/s", round+1, ours[round], empty[round])
		}
		return s.rep.pair("burn-down, past ÷ empty", "/s", ours, empty, nil)
	})
}

// fillPast inserts actions that have ended.
func fillPast(ctx context.Context, h *environment, n int) error {
	if _, err := h.burnRate(ctx, -1, 1, outboxLeft); err != nil { // the template of the others
		return err
	}
	const step = 500_000
	for from := 0; from < n; from += step {
		_, err := h.pool.Exec(ctx, `
			WITH template AS (SELECT * FROM actions LIMIT 1), past AS (
				INSERT INTO actions (tenant_id, action_id, external_id, content_digest, source_id, tool_name, args, risk, effect,
					decision_id, config_version, tool_digest, approval_state, bucket_id, rate_bucket, max_attempts)
				SELECT tenant_id, gen_random_uuid(), 'past-' || g, content_digest, source_id, tool_name, args, risk, effect,
					decision_id, config_version, tool_digest, approval_state, bucket_id, rate_bucket, max_attempts
				FROM template, generate_series($1::int, $2::int) g
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
