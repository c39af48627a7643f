package rest

import (
	"context"
	"net/http"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Mount has another face answer at a path, with the log lines, measurements
// and headers of every request. Call it before the server serves.
func (s *Server) Mount(path string, face http.Handler) { s.mux.Handle(path, face) }

// NoteCaller puts who makes a request into its log line, for faces that are
// mounted and let callers in themselves.
func NoteCaller(ctx context.Context, by identity.Principal) { noteCaller(ctx, by) }

// May says whether a caller may use an operation, by the one table of routes,
// for faces that are mounted and offer the same in another form. The error is
// fault.Denied.
func (s *Server) May(by identity.Principal, operation string) error {
	for _, rt := range routes() {
		if rt.operation == operation {
			return rt.admit(by)
		}
	}
	return fault.New(fault.Denied, "there is no operation of that name")
}

// Auth is how the Server finds out who makes a request, for faces that are
// mounted and let callers in themselves.
func (s *Server) Auth() *identity.Authenticator { return s.auth }

// Watch tells on nudged when something happens to an action after it has
// returned; several things are perhaps told once. stop ends it and must be
// called. The error is fault.Busy once the server closes.
func (s *Server) Watch(ctx context.Context, tenant envelope.TenantID, action envelope.ActionID) (nudged <-chan struct{}, stop func(), err error) {
	w, err := s.hub.watch(ctx, tenant, action)
	if err != nil {
		return nil, nil, err
	}
	return w.nudged, func() { s.hub.unwatch(w) }, nil
}
