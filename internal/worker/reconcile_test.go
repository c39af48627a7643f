package worker_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func TestTheFleetReconcilesUnknownOutcomes(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		snap, err := settings.NewCache().Current(ctx, tx, y.tenant)
		if err != nil {
			return err
		}
		return reconcile.Put(ctx, tx, snap, policy.Key{Source: "fake", Action: toolOnce}, &reconcile.Rule{Tool: toolRead, Happened: "/found"})
	})
	y.src.Next(toolOnce, sourcetest.Lost())
	y.src.Next(toolRead, sourcetest.Done(`{"structured":{"found":true}}`))
	id := y.submit(toolOnce, 1)[0]
	y.work()
	y.exec("UPDATE dead_letters SET reconcile_at = now()")

	y.run(y.fleet(y.src, config("w1")))
	y.until("SELECT NOT EXISTS (SELECT 1 FROM dead_letters)")

	if got := y.view(id).Envelope.Result.Status; got != envelope.StatusSent || y.effects(id) != 1 {
		t.Errorf("the envelope is %s after %d effects, want sent after one", got, y.effects(id))
	}
}
