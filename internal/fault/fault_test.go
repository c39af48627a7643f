package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/countersign-dev/countersign/internal/fault"
)

func kinds() []fault.Kind {
	return []fault.Kind{
		fault.NotFound, fault.Invalid, fault.Conflict, fault.Denied, fault.Busy, fault.Gone,
	}
}

func TestKindIsFoundThroughWraps(t *testing.T) {
	t.Parallel()

	for _, kind := range kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()

			err := fmt.Errorf("claim item 7: %w", fault.New(kind, "item %d", 7))

			for _, other := range kinds() {
				if got, want := errors.Is(err, other), other == kind; got != want {
					t.Errorf("errors.Is(%v, %s) = %t, want %t", err, other, got, want)
				}
			}
			if got := fault.KindOf(err); got != kind {
				t.Errorf("KindOf(%v) = %q, want %q", err, got, kind)
			}
		})
	}
}

func TestWrapKeepsKindAndCause(t *testing.T) {
	t.Parallel()

	cause := errors.New("connection reset")
	err := fault.Wrap(cause, fault.Busy, "source %s is away", "slack")

	if !errors.Is(err, fault.Busy) || !errors.Is(err, cause) {
		t.Errorf("Wrap lost its kind or its cause: %v", err)
	}
	if got, want := err.Error(), "source slack is away: connection reset"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	typed, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Fatalf("AsType(%v) found no *fault.Error", err)
	}
	if got, want := typed.Text, "source slack is away"; got != want {
		t.Errorf("Text = %q, want %q", got, want)
	}
}

func TestKindOfOtherErrors(t *testing.T) {
	t.Parallel()

	for _, err := range []error{nil, errors.New("disk full"), fmt.Errorf("read: %w", errors.New("eof"))} {
		if got := fault.KindOf(err); got != "" {
			t.Errorf("KindOf(%v) = %q, want none", err, got)
		}
	}
}

func TestKindOfABareKind(t *testing.T) {
	t.Parallel()

	err := fmt.Errorf("approve: %w", fault.Gone)

	if got := fault.KindOf(err); got != fault.Gone {
		t.Errorf("KindOf(%v) = %q, want %q", err, got, fault.Gone)
	}
}

func TestOutermostKindWins(t *testing.T) {
	t.Parallel()

	err := fault.Wrap(fault.New(fault.NotFound, "no such tool"), fault.Invalid, "tool is unknown")

	if got := fault.KindOf(err); got != fault.Invalid {
		t.Errorf("KindOf(%v) = %q, want %q", err, got, fault.Invalid)
	}
}
