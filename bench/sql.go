package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/bench/application"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/proposal"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// sqlBatch is the number of envelopes in a transaction, and in a request.
const sqlBatch = 500

// measureSQL submits -n envelopes in batches over the API, and as many in SQL, until
// all of them are actions; then it measures the time from the commit of a proposal
// in SQL to the call of its tool.
func measureSQL(ctx context.Context, s *suite) error {
	var overAPI, inSQL, ratios []float64
	for range s.rounds {
		var api, sql float64
		err := s.environment(ctx, "", func(h *environment) (err error) {
			api, err = rateOverAPI(ctx, h, s.n)
			return err
		})
		if err == nil {
			err = s.environment(ctx, "", func(h *environment) (err error) {
				sql, err = rateInSQL(ctx, h, s.n)
				return err
			})
		}
		if err != nil {
			return err
		}
		s.rep.note("in SQL %.0f/s, over the API %.0f/s, ratio %.2f", sql, api, sql/api)
		overAPI, inSQL, ratios = append(overAPI, api), append(inSQL, sql), append(ratios, sql/api)
	}
	s.rep.single("proposed in SQL, until actions", "/s", median(inSQL), nil)
	s.rep.single("batches of 500 over the API", "/s", median(overAPI), nil)
	s.rep.single("in SQL ÷ over the API, median", "×", median(ratios), nil)
	return s.environment(ctx, "", func(h *environment) error { return sqlLatency(ctx, s, h) })
}

// body returns an envelope as measureSubmit's are.
func (h *environment) body(n int) json.RawMessage {
	return fmt.Appendf(nil, `{"type":"mcp.exec","external_id":"%s-%d","tool":{"name":"countersign.noop","source":"countersign"},`+
		`"args":{"n":%d,"note":%q},"constraints":{"rate_bucket":%q}}`, h.run, n, n, strings.Repeat("x", 100), bucketName(n))
}

// inBatches calls fn with the envelopes from 0 to n in batches.
func (h *environment) inBatches(n int, fn func([]json.RawMessage) error) error {
	for from := 0; from < n; from += sqlBatch {
		batch := make([]json.RawMessage, min(sqlBatch, n-from))
		for i := range batch {
			batch[i] = h.body(from + i)
		}
		if err := fn(batch); err != nil {
			return err
		}
	}
	return nil
}

func rateOverAPI(ctx context.Context, h *environment, n int) (float64, error) {
	var rate float64
	err := h.withAPI(ctx, func(api *process.API, token string) error {
		c, err := client.New(api.Base, token, client.Config{})
		if err != nil {
			return err
		}
		rate, err = timed(n, func() error {
			return h.inBatches(n, func(batch []json.RawMessage) error {
				items, err := c.SubmitBatch(ctx, batch)
				if err == nil && (len(items) != len(batch) || items[0].Problem != nil) {
					err = fmt.Errorf("a batch was answered with %+v", items[:min(1, len(items))])
				}
				return err
			})
		})
		return err
	})
	return rate, err
}

const proposeMany = "SELECT countersign.propose_many($1)"

func rateInSQL(ctx context.Context, h *environment, n int) (float64, error) {
	app, done, err := application.Connect(ctx, h.pool, h.tenant)
	if err != nil {
		return 0, err
	}
	defer done()
	taker := proposal.NewTaker(h.pool, intake.New(h.pool, settings.NewCache(), intake.Config{}), h.tel.Log)
	return timed(n, func() error {
		return whileRunning(ctx, func(ctx context.Context) error { return take(ctx, h.pool, taker) }, func() error {
			err := h.inBatches(n, func(batch []json.RawMessage) error {
				_, err := app.Exec(ctx, proposeMany, batch)
				return err
			})
			return errors.Join(err, untilNone(ctx, h.pool, "SELECT EXISTS (SELECT 1 FROM proposals)"))
		})
	})
}

// take takes and counts proposals like a worker, but without notifications.
func take(ctx context.Context, db *pgxpool.Pool, taker *proposal.Taker) error {
	counting := make(chan error, 1)
	go func() {
		var err error
		for err == nil && process.Wait(ctx, 2*time.Second) == nil {
			err = proposal.Count(ctx, db)
		}
		if ctx.Err() != nil {
			err = nil
		}
		counting <- err
	}()
	return errors.Join(takeAll(ctx, taker), <-counting)
}

func takeAll(ctx context.Context, taker *proposal.Taker) error {
	for {
		more, _, err := taker.Step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !more {
			if err := process.Wait(ctx, 5*time.Millisecond); err != nil {
				return nil
			}
		}
	}
}

// sqlLatency proposes one envelope at a time in SQL, to an idle worker.
func sqlLatency(ctx context.Context, s *suite, h *environment) error {
	called := make(chan time.Time, 1)
	tools := toolServer(called)
	defer tools.Close()
	if err := addMCP(ctx, h, h.tenant, "clock", tools.URL); err != nil {
		return err
	}
	app, done, err := application.Connect(ctx, h.pool, h.tenant)
	if err != nil {
		return err
	}
	defer done()
	propose := func(name string) func(ctx context.Context, i int) error {
		return func(ctx context.Context, i int) error {
			_, err := app.Exec(ctx, "SELECT countersign.propose($1)", touch(name, i))
			return err
		}
	}
	var quiet, beside []float64
	err = h.whileFleet(ctx, slowSlots, func() (err error) {
		if quiet, err = sample(ctx, called, propose("sql")); err != nil {
			return err
		}
		other, done, err := application.Connect(ctx, h.pool, h.tenant)
		if err != nil {
			return err
		}
		defer done()
		return whileRunning(ctx, func(ctx context.Context) error { return flood(ctx, other) }, func() (err error) {
			beside, err = sample(ctx, called, propose("beside"))
			return err
		})
	})
	if err != nil {
		return err
	}
	s.rep.quantiles("commit in SQL → tool called", quiet)
	_, alone := quantiles(quiet)
	p50, p99 := quantiles(beside)
	s.rep.aimed("commit → called, next to refused proposals, p99", "ms", p99, 25, map[string]float64{"p50_ms": p50, "alone_p99_ms": alone})
	s.rep.single("next to refused proposals ÷ alone, p99", "×", p99/alone, nil)
	return nil
}

// flood proposes envelopes that intake refuses, 500 in a transaction and as fast as
// it may, until ctx ends.
func flood(ctx context.Context, app *pgxpool.Pool) error {
	batch := make([]json.RawMessage, sqlBatch)
	for i := range batch {
		batch[i] = fmt.Appendf(nil, `{"type":"mcp.exec","tool":{"name":"touch","source":"clock"},"args":{},"colour":%d,"note":%q}`, i, strings.Repeat("x", 500))
	}
	for ctx.Err() == nil {
		if _, err := app.Exec(ctx, proposeMany, batch); err != nil && ctx.Err() == nil {
			if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "53400" { // too many of them wait
				return err
			}
			if err := process.Wait(ctx, 10*time.Millisecond); err != nil {
				return nil
			}
		}
	}
	return nil
}
