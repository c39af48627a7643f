package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// bursts is the number of parts in which measureBloat submits its actions. Each is
// executed before the next, so that the tables after the first can be compared
// with those after the last.
const bursts = 10

// tableSize is the size of a table that vacuum works on, or that only grows.
type tableSize struct {
	Name        string
	Bytes       int64
	Live, Dead  int64
	Autovacuums int64
}

// measureBloat burns -n actions down in ten bursts and reports the dead space in
// the tables: at the end of the work, and after autovacuum. The ratio is to the
// space after the first burst, a tenth of the actions.
func measureBloat(ctx context.Context, s *suite) error {
	return s.environment(ctx, "", func(h *environment) error {
		empty, err := tableSizes(ctx, h.pool)
		if err != nil {
			return err
		}
		var first, full, end []tableSize
		for i := range bursts {
			from, to := s.n*i/bursts, s.n*(i+1)/bursts
			if err := h.submit(ctx, from, to-from, 1000); err != nil {
				return err
			}
			if full, err = tableSizes(ctx, h.pool); err != nil {
				return err
			}
			if _, err := h.burn(ctx, outboxLeft); err != nil {
				return err
			}
			if end, err = tableSizes(ctx, h.pool); err != nil {
				return err
			}
			if i == 0 {
				first = end
			}
		}
		if err := checkSent(ctx, h.pool, s.n); err != nil {
			return err
		}
		rested, err := untilVacuumed(ctx, h.pool)
		if err != nil {
			return err
		}
		s.rep.note("%d envelopes in %d bursts; sizes with indexes, in MB", s.n, bursts)
		for i, t := range end {
			s.rep.single(fmt.Sprintf("bloat, %s", t.Name), "MB", megabytes(t.Bytes), map[string]float64{
				"envelopes": float64(s.n), "empty_mb": megabytes(empty[i].Bytes), "full_mb": megabytes(full[i].Bytes), "first_mb": megabytes(first[i].Bytes),
				"rested_mb": megabytes(rested[i].Bytes), "ratio": float64(t.Bytes) / float64(first[i].Bytes),
				"live": float64(rested[i].Live), "dead": float64(t.Dead), "rested_dead": float64(rested[i].Dead), "autovacuums": float64(rested[i].Autovacuums),
			})
			s.rep.note("empty %.2f, after the first burst %.2f, ratio %.2f; %d dead rows, after autovacuum %d in %.2f; %d autovacuums",
				megabytes(empty[i].Bytes), megabytes(first[i].Bytes), float64(t.Bytes)/float64(first[i].Bytes),
				t.Dead, rested[i].Dead, megabytes(rested[i].Bytes), rested[i].Autovacuums)
		}
		return nil
	})
}

func megabytes(n int64) float64 { return float64(n) / (1 << 20) }

// tableSizes returns sizes and dead rows, with partitions.
func tableSizes(ctx context.Context, pool *pgxpool.Pool) ([]tableSize, error) {
	time.Sleep(1500 * time.Millisecond) // backends report their statistics once a second
	rows, err := pool.Query(ctx, `
		SELECT coalesce(p.relname, c.relname)::text, sum(pg_total_relation_size(c.oid))::bigint,
			sum(pg_stat_get_live_tuples(c.oid))::bigint, sum(pg_stat_get_dead_tuples(c.oid))::bigint, sum(pg_stat_get_autovacuum_count(c.oid))::bigint
		FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
		LEFT JOIN pg_class p ON p.oid = i.inhparent
		WHERE c.relkind = 'r' AND n.nspname = 'countersign_data'
			AND coalesce(p.relname, c.relname) IN ('outbox', 'buckets', 'actions', 'tool_executions', 'events', 'decisions')
		GROUP BY 1
		ORDER BY array_position(ARRAY['outbox', 'buckets', 'decisions', 'events', 'actions', 'tool_executions'], coalesce(p.relname, c.relname)::text)`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[tableSize])
}

// untilVacuumed waits until autovacuum, which runs once a minute, has vacuumed
// the outbox; two minutes at most.
func untilVacuumed(ctx context.Context, pool *pgxpool.Pool) ([]tableSize, error) {
	for until := time.Now().Add(2 * time.Minute); ; {
		tables, err := tableSizes(ctx, pool)
		if err != nil || tables[0].Dead < 1000 || time.Now().After(until) {
			return tables, err
		}
	}
}
