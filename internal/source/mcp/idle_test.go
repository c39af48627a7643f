package mcp_test

import (
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
)

func TestProgressKeepsACallAlive(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]source.Source{
		"http":  open(t, newWeb(t, nil).config()),
		"stdio": open(t, stdio(t, "serve", newEffectLog(t))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps, hang := callOf(t, "steps", envelope.EffectRead), callOf(t, "hang", envelope.EffectRead)
			steps.Timeout, hang.Timeout = 2*time.Second, 100*time.Millisecond

			expect(t, src.Execute(t.Context(), steps), source.KindDone, "")
			expect(t, src.Execute(t.Context(), hang), source.KindRetry, source.CodeTimeout)
		})
	}
}
