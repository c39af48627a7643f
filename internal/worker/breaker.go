package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/breaker"
)

// breakerEvent is a change of a breaker that is published to the fleet.
type breakerEvent struct {
	breaker.Source
	kind    breakerEventKind
	cause   breaker.Cause
	openFor time.Duration
}

// breakerEventKind is the kind of a change.
type breakerEventKind int

const (
	breakerOpened breakerEventKind = iota
	breakerClosed
	probeReleased
)

func sourceOf(it *outbox.Item) breaker.Source {
	return breaker.Source{Tenant: it.Tenant, ID: it.Source}
}

// breakerChanged is called when one of this process's breakers changes. It must
// not block.
func (p *Pipeline) breakerChanged(tenant envelope.TenantID, source, to string) {
	p.cfg.Metrics.Breaker(source, to).Add(context.WithoutCancel(p.calls), 1)
	p.cfg.Log.Warn("breaker changed", slog.String("tenant_id", tenant.String()), slog.String("source_id", source), slog.String("state", to))
	c := breakerEvent{Source: breaker.Source{Tenant: tenant, ID: source}}
	switch breaker.State(to) {
	case breaker.StateOpen:
		c.kind, c.cause, c.openFor = breakerOpened, breaker.CauseFailures, p.live.OpenFor()
	case breaker.StateClosed:
		c.kind = breakerClosed
	case breaker.StateHalfOpen:
		return
	}
	select {
	case p.breakerEvents <- c:
	default:
		p.cfg.Log.Warn("a breaker's change is not published", slog.String("source_id", source), slog.String("state", to))
	}
}

// probed publishes the result of a probe: a call to a source whose breaker is
// half-open.
func (p *Pipeline) probed(it *outbox.Item, out source.Outcome) {
	c := breakerEvent{Source: sourceOf(it), kind: breakerClosed}
	switch {
	case out.Code == source.CodeCancelled || out.Code == source.CodeClosed || out.ToolHeld:
		c.kind = probeReleased // it was cut short, or held back, on this side
	case out.Deferred:
		c.kind, c.cause, c.openFor = breakerOpened, breaker.CauseFailures, max(out.RetryAfter, probeWait)
	case out.SourceFailed():
		c.kind, c.cause, c.openFor = breakerOpened, breaker.CauseFailures, p.live.OpenFor()
	case out.RetryAfter > 0:
		c.kind, c.cause, c.openFor = breakerOpened, breaker.CauseRetryAfter, min(out.RetryAfter, outbox.MaxBucketClosed)
	}
	p.breakerEvents <- c
}

// breakerLoop publishes changes of breakers until no more can come. A change that
// cannot be written is lost: the fleet's breaker stays open until its time is
// over, or only this process's own breaker is open.
func (p *Pipeline) breakerLoop() {
	ctx := context.WithoutCancel(p.calls)
	for c := range p.breakerEvents {
		err := p.tx(ctx, func(tx pgx.Tx) error {
			switch c.kind {
			case breakerOpened:
				return breaker.Open(ctx, tx, c.Source, c.cause, c.openFor, p.cfg.ID)
			case breakerClosed:
				_, err := breaker.Close(ctx, tx, c.Source, p.cfg.ID)
				return err
			case probeReleased:
				return breaker.Release(ctx, tx, c.Source, p.cfg.ID)
			}
			return nil
		})
		if err != nil {
			p.cfg.Log.WarnContext(ctx, "a breaker's change is not published", slog.String("source_id", c.ID), slog.Any("error", err))
		}
	}
}
