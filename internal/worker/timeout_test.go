package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

func TestToolsTimeLimitGoesWithTheCall(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.configure(func(ctx context.Context, tx pgx.Tx) error {
		rule := limits.ToolRule{Source: "fake", Name: toolOnce, Scopes: []string{}, Timeout: envelope.Duration(20 * time.Minute)}
		return limits.PutToolRule(ctx, tx, y.tenant, rule, "ada")
	})
	y.submit(toolOnce, 1)
	y.submit(toolRead, 1)

	y.work()

	for _, call := range y.src.Calls() {
		want := map[string]time.Duration{toolOnce: 20 * time.Minute}[call.Tool]
		if call.Timeout != want {
			t.Errorf("time limit of %s = %v, want %v", call.Tool, call.Timeout, want)
		}
	}
	if n := len(y.src.Calls()); n != 2 {
		t.Errorf("%d calls were made, want 2", n)
	}
}
