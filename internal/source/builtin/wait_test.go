package builtin_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/builtin"
)

func waitFor(seconds string) source.Call {
	return source.Call{Key: "k", Tool: builtin.ToolWait, Args: json.RawMessage(`{"seconds":` + seconds + `}`), Effect: envelope.EffectRead}
}

func TestWaitDuration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()

		got := builtin.New().Execute(t.Context(), waitFor("1.5"))

		if took := time.Since(start); got.Kind != source.KindDone || string(got.Result) != `{"seconds":1.5}` || took != 1500*time.Millisecond {
			t.Errorf("Execute() = %s %s after %v, want done after 1.5 s", got.Kind, got.Result, took)
		}
	})
}

func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	short, err := builtin.With(builtin.Config{MaxWait: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for seconds, src := range map[string]source.Source{"-1": builtin.New(), "60.1": builtin.New(), "1e300": builtin.New(), `"1"`: builtin.New(), "2.1": short} {
		got := src.Execute(t.Context(), waitFor(seconds))

		if got.Kind != source.KindRefused || got.Code != source.CodeInvalidArgs {
			t.Errorf("Execute() for %s seconds = %s %q, want refused invalid_args", seconds, got.Kind, got.Code)
		}
	}
}

func TestWaitIsCanceled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(src *builtin.Source, cancel context.CancelFunc) error
		code string
	}{
		"by its caller": {func(_ *builtin.Source, cancel context.CancelFunc) error { cancel(); return nil }, source.CodeCancelled},
		"by closing":    {func(src *builtin.Source, _ context.CancelFunc) error { return src.Close() }, source.CodeClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				src := builtin.New()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan source.Outcome)
				go func() { ended <- src.Execute(ctx, waitFor("50")) }() // the receive below waits for it
				synctest.Wait()

				if err := test.end(src, cancel); err != nil {
					t.Fatalf("ending the wait: %v", err)
				}
				got := <-ended

				if got.Kind != source.KindRetry || got.Code != test.code || got.Unsure {
					t.Errorf("Execute() = %s %q, want retry %q", got.Kind, got.Code, test.code)
				}
			})
		})
	}
}
