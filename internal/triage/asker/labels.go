package asker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/internal/triage/label"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// Labels reports whether a model can be asked about labels.
func (a *Asker) Labels() bool { return a.cfg.Writer != nil }

// AskLabels asks the model for texts about labels that words leave open, until new
// mail waits or some seconds are over. No transaction may be open. A question
// without a usable answer has none.
func (a *Asker) AskLabels(ctx context.Context, open []label.Open) (answers []label.Answer) {
	if len(open) == 0 {
		return nil
	}
	stop := &stop{until: time.Now().Add(stepTime)}
	ctx, end := a.interruptible(ctx, stop)
	defer end()
	var mu sync.Mutex // guards answers
	for some := range slices.Chunk(open, maxTexts) {
		var all sync.WaitGroup
		for _, o := range some {
			all.Go(func() {
				got, err := a.cfg.Writer.Ask(ctx, o.Question)
				if err != nil {
					failure, ok := errors.AsType[*model.Error](err)
					if !ok || !slices.Contains([]model.Kind{model.Cut, model.Invalid, model.TooLong}, failure.Kind) {
						stop.called.Store(true) // the next question would fail as well
					}
					a.lease.Log.DebugContext(ctx, "no answer of a model about labels", slog.String("error", measure.Problem(err)))
					return
				}
				if answer, ok := o.Answer(got.Text); ok {
					mu.Lock()
					defer mu.Unlock()
					answers = append(answers, answer)
				}
			})
		}
		if all.Wait(); stop.over() || ctx.Err() != nil {
			break
		}
	}
	return answers
}
