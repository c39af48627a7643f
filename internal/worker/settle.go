package worker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/worker/background"
)

// settleLoop commits outcomes in batches until no more can come.
func (p *Pipeline) settleLoop(commits *fence.Loop) {
	room := make([]settlement, 0, p.cfg.Batch)
	for {
		batch := p.nextBatch(room)
		if batch == nil {
			return
		}
		p.commit(commits, batch)
		clear(batch)
	}
}

// nextBatch returns the outcomes to commit together, in room; nil if no more can come. One
// settler at a time collects, so that outcomes are not divided among batches.
func (p *Pipeline) nextBatch(room []settlement) []settlement {
	p.collecting <- struct{}{}
	defer func() { <-p.collecting }()
	first, open := <-p.settle
	if !open {
		return nil
	}
	return p.collect(append(room, first))
}

// longestWindow bounds the window where commits take longer than the configured one.
const longestWindow = 10 * time.Millisecond

// collect waits for more outcomes of a batch for at most the window, or as long as a
// commit took, and for none if no call is being made.
func (p *Pipeline) collect(batch []settlement) []settlement {
	window := time.NewTimer(max(p.cfg.Window, min(time.Duration(p.commitTook.Load()), longestWindow)))
	defer window.Stop()
	for len(batch) < p.cfg.Batch && (p.executing.Load() > 0 || len(p.settle) > 0) {
		select {
		case s, open := <-p.settle:
			if !open {
				return batch
			}
			batch = append(batch, s)
		case <-window.C:
			return batch
		}
	}
	return batch
}

// commit writes a batch, however long the database is unavailable, and only
// then frees the slots. A batch that the database rejects for its content is
// divided until the offending envelope is found.
func (p *Pipeline) commit(commits *fence.Loop, batch []settlement) {
	// A stop must not interrupt the commit: a call that was made has to be
	// recorded.
	ctx := context.WithoutCancel(p.calls)
	settled, err := p.write(ctx, commits, batch)
	for failures := 0; err != nil && !rejectedByDatabase(err); {
		failures++
		p.markDatabaseAway()
		if failures > 20 && p.stopping.Load() {
			break // stopped, and the database is still unavailable
		}
		p.cfg.Log.ErrorContext(ctx, "worker waits for the database", slog.String("operation", "settle"),
			slog.Int("envelopes", len(batch)), slog.Int("failures", failures), slog.Any("error", err))
		p.sleepFor(ctx, min(50*time.Millisecond<<min(failures, 6), longestSettlePause))
		settled, err = p.write(ctx, commits, batch)
	}
	if err != nil && !rejectedByDatabase(err) {
		p.cfg.Log.ErrorContext(ctx, "outcomes are lost; their leases run out", slog.Int("envelopes", len(batch)), slog.Any("error", err))
		p.finish(ctx, batch, nil)
		return
	}
	switch {
	case err != nil && len(batch) > 1:
		half := len(batch) / 2
		p.commit(commits, batch[:half])
		p.commit(commits, batch[half:])
		return
	case err != nil && string(batch[0].Result) != unstorable:
		// The tool's answer cannot be stored; the fact of an answer can.
		batch[0].Result, batch[0].ProviderID = json.RawMessage(unstorable), ""
		p.commit(commits, batch)
		return
	case err != nil:
		p.cfg.Log.ErrorContext(ctx, "outcome is lost; its lease runs out", slog.String("action_id", batch[0].Action.String()), slog.Any("error", err))
	}
	p.finish(ctx, batch, settled)
}

// longestSettlePause is the longest wait between two tries to commit a batch.
const longestSettlePause = time.Second

// unstorable replaces a result that the database rejects.
const unstorable = `{"_unstorable":true}`

// rejectedByDatabase reports whether the database rejects the batch for its
// content, so that trying again is of no use.
func rejectedByDatabase(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || missingPartition(pg) {
		return false
	}
	switch pg.Code[:2] {
	case "22", "23", "42": // data, constraint, statement
		return true
	}
	return false
}

// missingPartition reports whether the execution log has no partition for this
// month. The error has the code of a check and no name of one.
func missingPartition(pg *pgconn.PgError) bool {
	return pg.Code == "23514" && pg.ConstraintName == ""
}

func (p *Pipeline) write(ctx context.Context, commits *fence.Loop, batch []settlement) ([]outbox.Lease, error) {
	rows := make([]outbox.Settlement, len(batch))
	for i := range batch {
		rows[i] = batch[i].Settlement
	}
	p.guard.Ended(rows)
	var settled []outbox.Lease
	mark := commits.Next()
	began := time.Now()
	defer func() { p.commitTook.Store(int64(time.Since(began))) }()
	err := p.tx(ctx, func(tx pgx.Tx) error {
		var err error
		if settled, err = outbox.Settle(ctx, tx, mark, p.cfg.ID, rows); err != nil {
			return err
		}
		return audit.WriteLast(ctx, tx, p.events(audit.Settled, settledItems(p.cfg.ID, rows, settled))...)
	})
	if err == nil && len(settled) > 0 {
		commits.Confirm(mark)
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && missingPartition(pg) {
		err = errors.Join(err, background.EnsurePartitions(ctx, p.db))
	}
	return settled, err
}

// settledItems returns the audit items of settled envelopes by tenant. Deferred
// envelopes have none.
func settledItems(worker string, rows []outbox.Settlement, settled []outbox.Lease) map[envelope.TenantID][]audit.Item {
	items := make(map[envelope.TenantID][]audit.Item)
	next := 0
	for i := range rows {
		s := &rows[i]
		if next == len(settled) {
			break
		}
		if settled[next] != s.Lease {
			continue
		}
		next++
		if !s.Deferred {
			of, ok := items[s.Tenant]
			if !ok { // nearly always all are of one tenant
				of = make([]audit.Item, 0, len(settled)-next+1)
			}
			items[s.Tenant] = append(of, audit.Item{
				Action: s.Action, Status: s.Status, Attempt: s.Attempt, Code: s.Code, Digests: audit.Digests{Attempt: attemptDigest(worker, s)},
			})
		}
	}
	return items
}

// attemptDigest returns the digest of the row that Settle wrote.
func attemptDigest(worker string, s *outbox.Settlement) audit.Hash {
	r := audit.AttemptRecord{
		Tenant: s.Tenant, Action: s.Action, Attempt: s.Attempt, Status: string(s.Status), Code: s.Code, Message: s.Message,
		Result: s.Result, Worker: worker, StartedAt: s.StartedAt, FinishedAt: s.FinishedAt,
	}
	if s.Status != envelope.StatusPending {
		r.ProviderID = s.ProviderID
	}
	return r.Digest()
}

func (p *Pipeline) events(kind audit.Kind, items map[envelope.TenantID][]audit.Item) []audit.Event {
	return audit.EventsOf(kind, envelope.Actor("worker/"+p.cfg.ID), items)
}

// finish releases the leases and slots of a committed batch.
func (p *Pipeline) finish(ctx context.Context, batch []settlement, settled []outbox.Lease) {
	metered := context.Background() // a measurement looks for a span in ctx, which has none, and allocates for it
	leases := make([]outbox.Lease, len(batch))
	freed := false
	for i := range batch {
		s := &batch[i]
		leases[i] = s.Lease
		freed = freed || s.item.HoldsConcurrency || s.UnusedPermit != (outbox.Permit{})
		p.cfg.Metrics.Outcome(s.item.Tool, s.item.Source, string(s.Status)).Add(metered, 1)
		if s.Deferred {
			p.drainReturned.Add(p.draining())
		} else {
			p.drainFinished.Add(p.draining())
		}
		if envelope.Terminal(s.Status) {
			p.cfg.Metrics.EndToEnd.Took(metered, s.item.Age+s.Took)
		}
		p.endSpans(ctx, s)
	}
	if lost := len(batch) - len(settled); lost > 0 {
		p.cfg.Metrics.FenceLost.Add(ctx, int64(lost))
		p.cfg.Log.WarnContext(ctx, "outcomes came after their leases were lost", slog.Int("envelopes", lost))
	}
	p.cfg.Metrics.SettleBatch.Record(ctx, float64(len(batch)))
	p.inFlight.drop(leases)
	p.semaphore.release(len(batch))
	p.cfg.Settled()
	if freed {
		p.Poll() // a bucket that was at its limit can grant again
	}
}

// draining returns 1 while the pipeline drains, else 0.
func (p *Pipeline) draining() int64 {
	if p.stopping.Load() {
		return 1
	}
	return 0
}

// renewLoop keeps the leases of calls that run long, and no idle goroutines.
func (p *Pipeline) renewLoop(ctx context.Context) {
	every := p.cfg.Lease / 3
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		p.renew(ctx, p.inFlight.since(now.Add(-every/2), now))
		p.dismiss()
	}
}

// renew extends leases, including expired ones that no worker has reclaimed.
func (p *Pipeline) renew(ctx context.Context, leases []outbox.Lease) {
	if len(leases) == 0 {
		return
	}
	err := p.tx(ctx, func(tx pgx.Tx) error {
		_, err := outbox.Renew(ctx, tx, leases, p.cfg.Lease)
		return err
	})
	if err != nil && ctx.Err() == nil {
		p.markDatabaseAway()
		p.cfg.Log.ErrorContext(ctx, "leases were not renewed", slog.Int("envelopes", len(leases)), slog.Any("error", err))
	}
}
