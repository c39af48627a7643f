package check

import (
	"context"
	"runtime"
	"sync"
)

// longSlots holds a value for each piece of long work that is running. Half of
// the processors are left to everything else, so that one tenant's long work
// does not delay the requests of others.
var longSlots = sync.OnceValue(func() chan struct{} { return make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)) })

// TakeSlot waits until long work, of more than about a millisecond, may begin.
// Whoever got no error calls GiveSlot when it is done. The error is the
// context's.
func TakeSlot(ctx context.Context) error {
	select {
	case longSlots() <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// GiveSlot ends long work.
func GiveSlot() { <-longSlots() }

// longText is the length in bytes from which reading a text is long work.
const longText = 64 << 10

// Reading calls read, which reads a text of so many bytes, as long work if the
// text is long. The error is that of read, or the context's. read must not
// begin long work itself.
func Reading(ctx context.Context, length int, read func() error) error {
	if length > longText {
		if err := TakeSlot(ctx); err != nil {
			return err
		}
		defer GiveSlot()
	}
	return read()
}
