package worker_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/catalog"
	"github.com/countersign-dev/countersign/internal/executor/executortest"
	"github.com/countersign-dev/countersign/internal/policy"
	"github.com/countersign-dev/countersign/internal/verify"
)

func TestTheFleetLooksIntoWhatNobodyHeardTheEndOf(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		snap, err := catalog.NewCache().Current(ctx, tx, y.tenant)
		if err != nil {
			return err
		}
		return verify.Put(ctx, tx, snap, policy.Key{Source: "fake", Action: toolOnce}, &verify.Rule{Tool: toolRead, Happened: "/found"})
	})
	y.src.Next(toolOnce, executortest.Lost())
	y.src.Next(toolRead, executortest.Done(`{"structured":{"found":true}}`))
	id := y.submit(toolOnce, 1)[0]
	y.work()
	y.exec("UPDATE dead_letters SET verify_after = now()")

	y.run(y.fleet(y.src, config("w1")))
	y.until("SELECT NOT EXISTS (SELECT 1 FROM dead_letters)")

	if got := y.view(id).Envelope.Result.Status; got != envelope.StatusSent || y.effects(id) != 1 {
		t.Errorf("the envelope is %s after %d effects, want sent after one", got, y.effects(id))
	}
}
