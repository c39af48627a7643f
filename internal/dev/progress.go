package dev

import (
	"context"
	"fmt"
	"io"
	"time"
)

// progress shows which parts start, and how long each took.
type progress struct{ out io.Writer }

// run starts a part and shows its name meanwhile.
func (s progress) run(ctx context.Context, name string, up func(context.Context) (string, error)) error {
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

// printf ignores errors: a closed terminal is no reason to stop.
func (s progress) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }
