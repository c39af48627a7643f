package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
)

// suite holds the shared parts of a run's benchmarks.
type suite struct {
	options
	srv *server
	rep *report
}

// system is Countersign or River in a database, with one worker in this process.
type system interface {
	// submit inserts n actions, numbered from a number on.
	submit(ctx context.Context, from, n, batch int) error
	// batchSize is the size of its batches where the benchmark sets none.
	batchSize() int
	// left counts the submitted actions that have not ended.
	left(ctx context.Context, submitted int) (int, error)
	// untilDone waits until every action has ended.
	untilDone(ctx context.Context) error
	// whileWorking runs a worker while fn runs.
	whileWorking(ctx context.Context, fn func() error) error
	// worker returns the name of its worker as a process, and its database's URL.
	worker() (kind, url string)
}

// environment gives fn a tenant in a fresh database.
func (s *suite) environment(ctx context.Context, effect envelope.Effect, fn func(h *environment) error) error {
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
	return fn(h)
}

// compare measures River and Countersign in turn, in every round, and returns
// the rates of each.
func (s *suite) compare(ctx context.Context, effect envelope.Effect, measure func(system) (float64, error)) (ours, peers []float64, err error) {
	for range s.rounds {
		url, drop, err := s.srv.fresh(ctx)
		if err != nil {
			return nil, nil, err
		}
		p, err := newPeer(ctx, url)
		if err == nil {
			var r float64
			r, err = measure(p)
			peers = append(peers, r)
			p.pool.Close()
		}
		drop()
		if err != nil {
			return nil, nil, fmt.Errorf("river: %w", err)
		}
		err = s.environment(ctx, effect, func(h *environment) error {
			r, err := measure(h)
			ours = append(ours, r)
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("ours: %w", err)
		}
	}
	return ours, peers, nil
}

// emptyRate returns the rate at which -n actions are burned down in a fresh
// database.
func (s *suite) emptyRate(ctx context.Context, left string) (r float64, err error) {
	err = s.environment(ctx, "", func(h *environment) error {
		r, err = h.burnRate(ctx, 0, s.n, left)
		return err
	})
	return r, err
}

// burn works until fn returns, and returns the duration.
func burn(ctx context.Context, sys system, fn func() error) (took time.Duration, err error) {
	began := time.Now()
	err = sys.whileWorking(ctx, func() error {
		err := fn()
		took = time.Since(began)
		return err
	})
	return took, err
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
	ours, peers, err := s.compare(ctx, effect, func(sys system) (float64, error) {
		if err := sys.submit(ctx, 0, s.n, sys.batchSize()); err != nil {
			return 0, err
		}
		took, err := burn(ctx, sys, func() error { return sys.untilDone(ctx) })
		if h, ok := sys.(*environment); ok && err == nil {
			err = checkSent(ctx, h.pool, s.n)
		}
		return rate(s.n, took), err
	})
	if err != nil {
		return err
	}
	for round := range ours {
		s.rep.note("round %d: ours %.0f/s, river %.0f/s, ratio %.2f", round+1, ours[round], peers[round], ours[round]/peers[round])
	}
	s.rep.pair(name, "/s", ours, peers, nil)
	return nil
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

func measureSubmit(ctx context.Context, s *suite) error {
	const batch = 500
	ours, peers, err := s.compare(ctx, "", func(sys system) (float64, error) {
		return timed(s.n, func() error { return sys.submit(ctx, 0, s.n, batch) })
	})
	if err == nil {
		s.rep.pair("submit, batches of 500", "/s", ours, peers, nil)
	}
	return err
}

// measureSustained submits as fast as the work allows: the submitter stops
// while more than ahead actions wait.
func measureSustained(ctx context.Context, s *suite) error {
	ours, peers, err := s.compare(ctx, "", func(sys system) (done float64, err error) {
		err = sys.whileWorking(ctx, func() error {
			done, err = sustain(ctx, s.length, sys)
			return err
		})
		return done, err
	})
	if err == nil {
		s.rep.pair("sustained", "/s", ours, peers, nil)
	}
	return err
}

// sustain submits for a while and returns the rate at which actions ended.
func sustain(ctx context.Context, length time.Duration, sys system) (float64, error) {
	const ahead = 20_000
	batch := sys.batchSize()
	end := time.Now().Add(length)
	submitted, known := 0, 0 // known: ended at least
	for time.Now().Before(end) {
		if submitted-known >= ahead {
			waiting, err := sys.left(ctx, submitted)
			if err != nil {
				return 0, err
			}
			if known = submitted - waiting; waiting >= ahead {
				time.Sleep(5 * time.Millisecond)
				continue
			}
		}
		if err := sys.submit(ctx, submitted, batch, batch); err != nil {
			return 0, err
		}
		submitted += batch
	}
	waiting, err := sys.left(ctx, submitted)
	return float64(submitted-waiting) / length.Seconds(), err
}
