package rest

import (
	"context"
	"net/http"
	"net/url"
	"path"

	"github.com/countersign-dev/countersign/internal/server/openapi"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/server/rest/route"
	"github.com/countersign-dev/countersign/internal/slot"
)

// handler returns the HTTP handler of a route. An error is answered with a
// problem.
func (s *Server) handler(rt route.Route, op *openapi.Operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.serve(rt, op, w, r); err != nil {
			request.WriteProblem(s.cfg.Log, w, r, err)
		}
	})
}

// serve authenticates and admits the caller, checks the request against the
// contract, and calls the route's handler.
func (s *Server) serve(rt route.Route, op *openapi.Operation, w http.ResponseWriter, r *http.Request) error {
	c := &request.Call{Backend: s.backend, W: w, R: r, Compress: route.IsCompressed(rt.Operation)}
	var err error
	if rt.Roles != nil {
		if c.By, err = c.Authenticate(); err != nil {
			return err
		}
		if err = request.SetCaller(r.Context(), c.By); err != nil {
			return err
		}
		r = r.WithContext(slot.For(r.Context(), c.By.Tenant.String()))
		c.R = r
		if err = rt.Admit(c.By); err != nil {
			return err
		}
	}
	if rt.ForeignQuery {
		c.Query = r.URL.Query()
	} else if c.Query, err = op.CheckParameters(r); err != nil {
		return err
	}
	if c.WaitFor, err = request.WaitOf(c.Query, rt.Wait); err != nil {
		return err
	}
	if rt.Endless {
		closed, err := s.backend.Streams.Open(c.By)
		if err != nil {
			return err
		}
		defer closed()
	} else {
		ctx, cancel := context.WithTimeout(r.Context(), request.WorkTimeout+c.WaitFor)
		defer cancel()
		c.R = r.WithContext(ctx)
	}
	release, err := s.bulk.hold(c.By.Tenant, r.ContentLength, rt.MaxBody)
	if err != nil {
		return err
	}
	defer release()
	if op.Media != "" {
		if err := c.ReadBody(op, rt.MaxBody, rt.OwnParser); err != nil {
			return err
		}
	}
	if route.IsShared(rt.Operation) {
		return s.reads.serve(c, rt.Operation, rt.Handle)
	}
	return rt.Handle(c)
}

// unmatched handles requests without a route: the operator's page, another
// method of an existing path, or an unknown path.
func (s *Server) unmatched(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Page != nil && s.cfg.Page.Wants(r) {
		r.Pattern = "page"
		s.cfg.Page.ServeHTTP(w, r)
		return
	}
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		probe := &http.Request{Method: method, URL: &url.URL{Path: path.Clean("/" + r.URL.Path)}, Host: r.Host}
		if _, pattern := s.mux.Handler(probe); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	var err error = request.ErrNoRoute
	if len(allowed) > 0 {
		err = &request.MethodError{Allowed: allowed}
	}
	request.WriteProblem(s.cfg.Log, w, r, err)
}
