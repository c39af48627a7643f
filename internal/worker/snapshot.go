package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/snapshot"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// snapshotRead is the read before and after a call, and the settings that
// allow it.
type snapshotRead struct {
	rule catalog.SnapshotRule
	snap *settings.Settings
}

// snapshotStoreTimeout bounds the time to store a snapshot.
const snapshotStoreTimeout = 5 * time.Second

// callWithSnapshots makes a call, with the snapshots before and after it where the tool
// has any. The time is the call's alone. Snapshots are taken after whatever
// may have had an effect.
func (p *Pipeline) callWithSnapshots(ctx context.Context, a attempt) (source.Outcome, time.Duration) {
	if a.snapshot != nil && a.sourceErr == nil && !p.takeSnapshot(ctx, a, snapshot.StageBefore) && a.snapshot.rule.Required {
		return source.Outcome{
			Kind: source.KindRetry, Code: snapshot.CodeFailed, Message: "how things stand before the call could not be read or kept, and its rule requires that",
		}, 0
	}
	began := time.Now()
	out := p.call(ctx, a.item, a.source, a.sourceErr)
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
