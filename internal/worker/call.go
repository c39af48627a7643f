package worker

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/snapshot"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/worker/background"
)

// attempt is a call to make.
type attempt struct {
	item      *outbox.Item
	claimed   time.Time
	source    source.Source
	sourceErr error
	retry     outbox.Retry
	// timeout is the tool's own time limit; 0 leaves it to the source.
	timeout time.Duration
	// probe reports whether the source's breaker is half-open, and the call shows
	// whether the source works again.
	probe bool
	// snapshot is the read before and after the call; nil for most tools.
	snapshot *snapshotRead
	// approvedBy are the settings with the approved definition of the tool, which
	// is compared with the source's once more; nil for actions without an
	// approval.
	approvedBy *settings.Settings
	// sharedBucket reports whether the bucket is the default one: a wait that one
	// source asks for must not close it for the others.
	sharedBucket bool
}

// execute makes one call and sends its outcome to a settler. The span of the
// attempt begins with the claim and ends with the commit; the call and the
// settling are its children, and the submission's span its parent.
func (p *Pipeline) execute(a attempt) {
	it := a.item
	ctx, whole, span := p.startSpans(a)
	if whole.IsRecording() {
		whole.SetAttributes(
			attribute.String("countersign.action_id", it.Action.String()), attribute.String("countersign.source", it.Source),
			attribute.String("countersign.tool", it.Tool), attribute.Int("countersign.attempt", it.Attempt+1),
			attribute.Float64("countersign.waited_seconds", it.Waited.Seconds()))
	}
	if time.Since(a.claimed) > p.cfg.Lease {
		// This process was suspended for longer than its lease. Nothing was sent, and
		// another worker may have the envelope now.
		span.End()
		if a.probe {
			p.breakerEvents <- breakerEvent{Source: sourceOf(it), kind: probeReleased}
		}
		p.executed(settlement{Settlement: outbox.Release(*it), item: it, attempt: whole, called: time.Now()})
		return
	}
	out, took := p.callApproved(ctx, a)
	out = p.returns.Schedule(ctx, it, out)
	if span.IsRecording() {
		span.SetAttributes(attribute.String("countersign.outcome", string(out.Kind)), attribute.String("countersign.code", out.Code))
		if out.Kind != source.KindDone && out.Kind != source.KindConflict {
			span.SetStatus(codes.Error, out.Code)
		}
	}
	span.End()
	p.cfg.Metrics.Call(it.Source).Took(ctx, took)
	s := outbox.SettlementOf(*it, out, took, a.retry)
	switch {
	case a.probe:
		p.probed(it, out)
	case s.CloseBucketFor > 0 && a.sharedBucket:
		p.breakerEvents <- breakerEvent{Source: sourceOf(it), kind: breakerOpened, cause: breaker.CauseRetryAfter, openFor: min(s.CloseBucketFor, outbox.MaxBucketClosed)}
	}
	if a.sharedBucket {
		s.CloseBucketFor = 0
	}
	p.executed(settlement{Settlement: s, item: it, attempt: whole, called: time.Now()})
}

// startSpans starts the spans of an attempt and of its call. They cost allocations, also
// where they record nothing.
func (p *Pipeline) startSpans(a attempt) (ctx context.Context, whole, call trace.Span) {
	if p.untraced && a.item.Traceparent == "" {
		return p.calls, noop.Span{}, noop.Span{}
	}
	ctx, whole = p.cfg.Tracer.Start(telemetry.Extract(p.calls, a.item.Traceparent), "attempt", trace.WithTimestamp(a.claimed))
	ctx, call = p.cfg.Tracer.Start(ctx, "call tool", trace.WithSpanKind(trace.SpanKindClient))
	return ctx, whole, call
}

// executed sends an outcome to a settler.
func (p *Pipeline) executed(s settlement) {
	p.executing.Add(-1)
	p.settle <- s
}

// CodeUnconfirmed is the code of a call that was not made because its source did
// not confirm, just before, that the tool is the approved one.
const CodeUnconfirmed = "unconfirmed"

// callApproved makes a call after checking that the source still lists the
// approved definition of the tool. If the definition differs, the action is
// rechecked with the source's current listing.
func (p *Pipeline) callApproved(ctx context.Context, a attempt) (source.Outcome, time.Duration) {
	if a.approvedBy == nil || a.sourceErr != nil {
		return p.callWithSnapshots(ctx, a)
	}
	same, err := p.confirm.Confirm(ctx, a.approvedBy, key(a.item), a.claimed, time.Now())
	switch {
	case source.LoginCode(err) != "":
		of, _ := a.approvedBy.Source(a.item.Source)
		return source.WithoutLogin(err, of.OnLostLogin == catalog.LostLoginFails).Outcome(a.item.Source, a.item.Effect), 0
	case err != nil:
		p.cfg.Log.WarnContext(ctx, "source was not listed before an approved call", slog.String("source_id", a.item.Source), slog.Any("error", err))
		return source.Outcome{Kind: source.KindRetry, Code: CodeUnconfirmed, Message: "the source did not answer whether the tool's definition is still the approved one"}, 0
	case !same:
		return source.Outcome{Kind: source.KindRetry, Code: CodeUnconfirmed, Message: "the tool's definition at the source differs from the approved one"}, 0
	}
	return p.callWithSnapshots(ctx, a)
}

// call calls the source. If the adapter panics, the outcome is unknown, since
// the request may have been sent.
func (p *Pipeline) call(ctx context.Context, a attempt) (out source.Outcome) {
	it := a.item
	if a.sourceErr != nil {
		p.cfg.Log.ErrorContext(ctx, "source cannot be opened", slog.String("source_id", it.Source), slog.Any("error", a.sourceErr))
		return source.Observation{Code: source.CodeUnreachable, Message: "the source cannot be opened; see the worker's log"}.Outcome(it.Source, it.Effect)
	}
	defer func() {
		if r := recover(); r != nil {
			p.cfg.Log.ErrorContext(ctx, "adapter panicked", slog.String("action_id", it.Action.String()),
				slog.String("panic", fmt.Sprint(r)), slog.String("stack", string(debug.Stack())))
			out = source.Observation{Written: true, Code: source.CodeLost, Message: "the adapter failed during the call"}.Outcome(it.Source, it.Effect)
		}
	}()
	args, withMail, err := background.WithMail(ctx, p.tx, it)
	if err != nil {
		p.cfg.Log.WarnContext(ctx, "mail of a message was not read", slog.String("action_id", it.Action.String()), slog.Any("error", err))
	}
	key, repeat := background.KeyOf(it)
	out = a.source.Execute(ctx, source.Call{
		Key: key, Repeat: repeat, Tool: it.Tool, Args: args, Effect: it.Effect, Attempt: it.Attempt + 1,
		Unsure: it.MayHaveHappened(), Timeout: a.timeout,
	})
	if withMail {
		out.Result = nil // an answer repeats the message
	}
	return out
}

// settlement is an outcome to commit, with the data of its telemetry.
type settlement struct {
	outbox.Settlement
	item *outbox.Item
	// attempt is the span that ends when the outcome is committed, called when
	// the call ended; nil and zero without a call.
	attempt trace.Span
	called  time.Time
}

// endSpans ends the spans of an attempt whose outcome is committed.
func (p *Pipeline) endSpans(ctx context.Context, s *settlement) {
	if s.attempt == nil {
		return
	}
	if s.attempt.IsRecording() {
		_, span := p.cfg.Tracer.Start(trace.ContextWithSpan(ctx, s.attempt), "settle", trace.WithTimestamp(s.called))
		span.SetAttributes(attribute.String("countersign.status", string(s.Status)))
		span.End()
	}
	s.attempt.End()
}

// snapshotRead is the read before and after a call, and the settings that
// allow it.
type snapshotRead struct {
	rule catalog.SnapshotRule
	snap *settings.Settings
}

// snapshotStoreTimeout bounds the time to store a snapshot.
const snapshotStoreTimeout = 5 * time.Second

// callWithSnapshots makes a call, and takes the snapshots before and after it that the
// tool's rules require. The duration is that of the call alone. Snapshots after the
// call are taken unless the call certainly had no effect.
func (p *Pipeline) callWithSnapshots(ctx context.Context, a attempt) (source.Outcome, time.Duration) {
	if a.snapshot != nil && a.sourceErr == nil && !p.takeSnapshot(ctx, a, snapshot.StageBefore) && a.snapshot.rule.Required {
		return source.Outcome{
			Kind: source.KindRetry, Code: snapshot.CodeFailed, Message: "the snapshot before the call could not be read or stored, and the snapshot rule requires it",
		}, 0
	}
	began := time.Now()
	out := p.call(ctx, a)
	took := time.Since(began)
	if a.snapshot != nil && happened(out) {
		p.takeSnapshot(ctx, a, snapshot.StageAfter)
	}
	return out, took
}

// happened reports whether a call had its effect, or may have.
func happened(out source.Outcome) bool {
	switch out.Kind {
	case source.KindDone, source.KindConflict, source.KindUnknown:
		return true
	case source.KindRefused, source.KindRetry:
	}
	return out.Unsure
}

// takeSnapshot takes a snapshot and keeps it, and reports whether both worked.
func (p *Pipeline) takeSnapshot(ctx context.Context, a attempt, stage snapshot.Stage) bool {
	source := func() (source.Source, error) { return a.source, a.sourceErr }
	s := snapshot.Take(ctx, p.cfg.Log, a.snapshot.snap, source, a.item, a.snapshot.rule, stage)
	// It is kept also when the process is about to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotStoreTimeout)
	defer cancel()
	err := p.tx(ctx, func(tx pgx.Tx) error { return snapshot.Insert(ctx, tx, a.item.Lease, s) })
	if err != nil {
		p.cfg.Log.ErrorContext(ctx, "snapshot was not kept", slog.String("action_id", a.item.Action.String()),
			slog.String("stage", string(stage)), slog.Any("error", err))
	}
	return err == nil && s.Code == ""
}
