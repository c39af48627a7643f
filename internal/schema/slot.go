package schema

import (
	"context"
	"runtime"
	"sync"
)

// longSlots holds a value for each long check or compilation that is running.
// Half of the processors are left to everything else, so that one tenant's long
// work does not delay the requests of others.
var longSlots = sync.OnceValue(func() chan struct{} { return make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)) })

func takeSlot(ctx context.Context) error {
	select {
	case longSlots() <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func giveSlot() { <-longSlots() }
