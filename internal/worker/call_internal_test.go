package worker

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

// caller is a source whose calls send their goroutines, and end when one is taken.
type caller chan string

func (c caller) List(context.Context) ([]source.Tool, error) { return nil, nil }
func (c caller) Close() error                                { return nil }

func (c caller) Execute(context.Context, source.Call) source.Outcome {
	stack := make([]byte, 64)
	name, _, _ := strings.Cut(string(stack[:runtime.Stack(stack, false)]), " [")
	c <- name
	return source.Outcome{Kind: source.KindDone}
}

// TestCallsReuseGoroutines holds that calls at the same time have goroutines of their
// own, that later calls have them again, and that idle ones can be dismissed.
func TestCallsReuseGoroutines(t *testing.T) {
	t.Parallel()
	metrics, err := telemetry.NewMetrics(noop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := NewPipeline(nil, nil, nil, PipelineConfig{ID: "w1", Metrics: metrics})
		calls := make(caller)
		call := func(n int) (names []string) {
			for range n {
				it := &outbox.Item{Lease: outbox.Lease{Action: envelope.NewActionID()}, Effect: envelope.EffectIdempotent}
				p.start(attempt{item: it, claimed: time.Now(), source: calls})
			}
			synctest.Wait()
			for range n {
				names = append(names, <-calls)
			}
			synctest.Wait()
			slices.Sort(names)
			return names
		}

		first, second := call(3), call(3)
		p.dismiss()
		synctest.Wait()
		third := call(1)

		if len(slices.Compact(slices.Clone(first))) != 3 || !slices.Equal(first, second) {
			t.Errorf("three calls, twice, were made by %q and %q, want three goroutines, twice", first, second)
		}
		if slices.Contains(first, third[0]) {
			t.Errorf("%q was dismissed, and made a call", third)
		}
		close(p.attempts)
		p.callers.Wait()
	})
}
