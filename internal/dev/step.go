package dev

import (
	"context"
	"fmt"
	"io"
	"time"
)

// steps shows what comes up, and how long it took.
type steps struct{ out io.Writer }

// run does a step, whose name shows while it goes on.
func (s steps) run(ctx context.Context, name string, up func(context.Context) (string, error)) error {
	began := time.Now()
	s.printf("  %-9s ", name)
	detail, err := up(ctx)
	switch {
	case ctx.Err() != nil:
		s.printf("stopped\n")
		return context.Cause(ctx)
	case err != nil:
		s.printf("failed\n")
		return fmt.Errorf("%s: %w", name, err)
	}
	s.printf("%s (%.1f s)\n", detail, time.Since(began).Seconds())
	return nil
}

// printf shows something. A terminal that has gone away is no reason to stop.
func (s steps) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }
