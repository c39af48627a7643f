package slot

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// processors are the slots for long work. Half of the processors remain for
// short requests, so that one tenant's long work does not delay the others.
var processors = sync.OnceValue(func() *Queue { return NewQueue(max(1, runtime.GOMAXPROCS(0)/2)) })

// ErrLong is the error of work within Briefly that turned out to be long.
var ErrLong = errors.New("long work needs a slot")

type stateKey struct{}

// state is the value that a context carries for this package.
type state struct {
	tenant string
	// held is set if a slot is held already, brief if the work must not wait for
	// one.
	held, brief bool
}

func stateOf(ctx context.Context) state {
	s, _ := ctx.Value(stateKey{}).(state)
	return s
}

// For returns a context for the work of a tenant. Work without a tenant counts
// as that of a separate tenant.
func For(ctx context.Context, tenant string) context.Context {
	s := stateOf(ctx)
	s.tenant = tenant
	return context.WithValue(ctx, stateKey{}, s)
}

// Begin waits until long work, of more than about a millisecond, may begin. If
// it returns no error, the caller must call end when the work is done. Within
// Long it does nothing. The error is that of ctx, or ErrLong within Briefly.
func Begin(ctx context.Context) (end func(), err error) {
	s := stateOf(ctx)
	switch {
	case s.held:
		return func() {}, nil
	case s.brief:
		if !processors().Try(s.tenant) {
			return nil, ErrLong
		}
	default:
		if err := processors().Take(ctx, s.tenant); err != nil {
			return nil, err
		}
	}
	return func() { processors().Give(s.tenant) }, nil
}

// Long calls do as long work. Work that do begins with its context is part of
// it.
func Long(ctx context.Context, do func(ctx context.Context) error) error {
	end, err := Begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s := stateOf(ctx)
	s.held, s.brief = true, false
	return do(context.WithValue(ctx, stateKey{}, s))
}

// turnLength is the time after which long work yields to others.
const turnLength = 50 * time.Millisecond

// InTurns calls do as long work that may take seconds. do calls next between its
// parts, which yields to others after turnLength. An error of next, that of the
// context, must end do.
func InTurns(ctx context.Context, do func(next func() error) error) error {
	end, err := Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { end() }()
	began := time.Now()
	return do(func() error {
		if time.Since(began) < turnLength {
			return ctx.Err()
		}
		end()
		end = func() {}
		again, err := Begin(ctx)
		if err == nil {
			end, began = again, time.Now()
		}
		return err
	})
}

const (
	// longText is the length in bytes from which parsing a text is long work.
	longText = 64 << 10
	// longTexts is the length from which handling texts that were parsed before
	// is long work. Most batches are shorter and need no slot.
	longTexts = 256 << 10
)

// Reading calls read, which parses a text of length bytes, as long work if the
// text is long. The error is that of read or of Begin.
func Reading(ctx context.Context, length int, read func() error) error {
	if length <= longText {
		return read()
	}
	return Long(ctx, func(context.Context) error { return read() })
}

// Briefly calls do, which holds a shared resource such as a connection and
// handles texts of length bytes. While do runs, nothing waits for a slot: if it
// needs one, or the texts are long, it is called again as long work. Therefore
// do must have no effect when it returns an error.
func Briefly(ctx context.Context, length int, do func(ctx context.Context) error) error {
	s := stateOf(ctx)
	if s.held || s.brief {
		return do(ctx)
	}
	if length <= longTexts {
		s.brief = true
		err := do(context.WithValue(ctx, stateKey{}, s))
		if !errors.Is(err, ErrLong) {
			return err
		}
	}
	return Long(ctx, do)
}
