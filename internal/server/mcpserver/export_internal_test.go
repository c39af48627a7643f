package mcpserver

import (
	"context"

	"github.com/countersign-dev/countersign/envelope"
)

// OnWaitEnd calls ended after every wait that ends. It must be called before the
// first request.
func (srv *Server) OnWaitEnd(ended func()) {
	watch := srv.watch
	srv.watch = func(ctx context.Context, tenant envelope.TenantID, action envelope.ActionID) (<-chan struct{}, func(), error) {
		changed, stop, err := watch(ctx, tenant, action)
		return changed, func() {
			stop()
			ended()
		}, err
	}
}

// RecheckTokens is recheckTokens, which otherwise runs at an interval.
func (srv *Server) RecheckTokens(ctx context.Context) { srv.recheckTokens(ctx) }
