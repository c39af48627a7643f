package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/worker/background"
)

const (
	// searches is the number of searches for each kind of words.
	searches = 100
	// searchPast is the number of actions that are searched, unless -n is larger.
	searchPast = 1_000_000
	// fillStep is the number of actions that one statement inserts.
	fillStep = 50_000
)

// fillSearch inserts actions, and their words as a worker stores them: each has the words
// common and one of its own, every second one even, every thousandth scarce, an address of
// one of 5,000 people, and twenty of 20,000 words of which some are frequent.
const fillSearch = `
WITH template AS (SELECT * FROM actions LIMIT 1), past AS (
	INSERT INTO actions (tenant_id, action_id, external_id, content_digest, source_id, tool_name, args, risk, effect,
		decision_id, config_version, tool_digest, approval_state, bucket_id, rate_bucket, max_attempts)
	SELECT t.tenant_id, (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7000' || '8' || lpad(to_hex(g), 15, '0'))::uuid,
		'past-' || g, content_digest, source_id, tool_name, args, risk, effect, decision_id, config_version, tool_digest, approval_state,
		bucket_id, rate_bucket, max_attempts
	FROM template t, generate_series($1::int, $2::int) g
	RETURNING tenant_id, action_id, substr(external_id, 6)::int AS g)
INSERT INTO action_words (tenant_id, action_id, part, words, people)
SELECT p.tenant_id, p.action_id, action_word_part(c.tenant_no, p.g), array_to_tsvector(array_remove(ARRAY[
		'common', 'own' || p.g, CASE WHEN p.g % 2 = 0 THEN 'even' ELSE 'odd' END, CASE WHEN p.g % 1000 = 0 THEN 'scarce' END,
		'person' || p.g % 5000, 'example', 'org'], NULL)
	|| ARRAY(SELECT 'v' || floor(20000 * power(random(), 3))::int FROM generate_series(1, 20) n WHERE p.g > 0)), array_to_tsvector('{bench}')
FROM past p
JOIN action_word_cursors c ON c.tenant_id = p.tenant_id`

// skipToIndex moves the cursors of the index to the last events, so that it has no backlog
// when a round begins.
const skipToIndex = `
UPDATE action_word_cursors c SET next_at = now(), (cursor_txid, cursor_event) = (
	SELECT e.txid, e.event_id FROM events e WHERE e.tenant_id = c.tenant_id ORDER BY e.txid DESC, e.event_id DESC LIMIT 1)
WHERE EXISTS (SELECT 1 FROM events e WHERE e.tenant_id = c.tenant_id)`

// measureSearch measures searches over the words of many actions, as the page makes them,
// and submitting while a worker indexes.
func measureSearch(ctx context.Context, s *suite) error {
	return s.environment(ctx, "", func(h *environment) error {
		if _, err := h.burnRate(ctx, -1, 1, outboxLeft); err != nil { // the template of the others
			return err
		}
		n := max(s.n, searchPast)
		if err := h.fillSearch(ctx, s, n); err != nil {
			return err
		}
		err := h.withAPI(ctx, func(api *process.API, token string) error {
			caller := &restCaller{base: api.Base, token: token, http: &http.Client{}}
			for _, kind := range []struct {
				name  string
				words func(i int) string
			}{
				{"a word of one action", func(i int) string { return fmt.Sprintf("own%d", (i*7919)%n+1) }},
				{"the beginning of a word", func(i int) string { return fmt.Sprintf("own%d", i+100) }},
				{"an address", func(i int) string { return fmt.Sprintf("person%d@example.org", i*37%5000) }},
				{"a word of every action", func(int) string { return "common" }},
				{"two frequent words", func(int) string { return "even common" }},
				{"two frequent words that never meet", func(int) string { return "even odd" }},
				{"a word of every thousandth, and of all", func(int) string { return "scarce common" }},
				{"a word of none", func(i int) string { return fmt.Sprintf("nowhere%d", i) }},
			} {
				took := make([]float64, searches)
				for i := range took {
					var err error
					if took[i], _, err = caller.send(ctx, http.MethodGet, api.Base+"/api/v1/actions?q="+url.QueryEscape(kind.words(i)), nil, http.StatusOK); err != nil {
						return err
					}
				}
				p50, p99 := quantiles(took)
				s.rep.aimed("search: "+kind.name+", p50", "ms", p50, 50, map[string]float64{"p99_ms": p99, "actions": float64(n)})
				s.rep.note("p99 %.1f ms", p99)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return h.submitWhileIndexing(ctx, s)
	})
}

// fillSearch inserts actions with their words. The index is built at the end, which is faster.
func (h *environment) fillSearch(ctx context.Context, s *suite, n int) error {
	began := time.Now()
	var index string
	if err := h.pool.QueryRow(ctx, "SELECT pg_get_indexdef('action_words_keys'::regclass)").Scan(&index); err != nil {
		return err
	}
	if _, err := h.pool.Exec(ctx, "DROP INDEX action_words_keys"); err != nil {
		return err
	}
	for from := 0; from < n; from += fillStep {
		if _, err := h.pool.Exec(ctx, fillSearch, from+1, min(from+fillStep, n)); err != nil {
			return err
		}
	}
	s.rep.note("%d actions were written in %s", n, time.Since(began).Round(time.Second))
	for _, statement := range []string{
		"SET maintenance_work_mem = '1GB'; " + index, "UPDATE action_word_cursors SET filled = " + strconv.Itoa(n), "VACUUM ANALYZE actions, action_words",
	} {
		if _, err := h.pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	s.rep.note("and indexed in %s", time.Since(began).Round(time.Second))
	return nil
}

// submitWhileIndexing compares submitting while a worker indexes with submitting while none
// does, in each order as often.
func (h *environment) submitWhileIndexing(ctx context.Context, s *suite) error {
	var with, without []float64
	const n = 50_000
	for i := range 2 * s.rounds {
		for _, indexed := range []bool{i%2 == 0, i%2 == 1} {
			if _, err := h.pool.Exec(ctx, skipToIndex); err != nil {
				return err
			}
			rate, err := h.submitRate(ctx, (len(with)+len(without))*n, n, indexed)
			if err != nil {
				return err
			}
			if indexed {
				with = append(with, rate)
			} else {
				without = append(without, rate)
			}
			if _, err := h.burn(ctx, outboxLeft); err != nil {
				return err
			}
		}
	}
	s.rep.against("alone", "submit, indexed meanwhile", "/s", with, without, nil)
	return nil
}

// submitRate returns the rate of submitting n actions.
func (h *environment) submitRate(ctx context.Context, from, n int, indexed bool) (float64, error) {
	indexing, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		if indexed {
			done <- h.index(indexing)
		}
		close(done)
	}()
	began := time.Now()
	err := h.submit(ctx, from, n, 500)
	took := time.Since(began)
	stop()
	return rate(n, took), errors.Join(err, <-done)
}

// index indexes as a worker does, until ctx ends.
func (h *environment) index(ctx context.Context) error {
	work := background.Index(h.pool)
	for {
		pause, err := work(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if process.Wait(ctx, max(pause, time.Second/10)) != nil {
			return nil
		}
	}
}
