package rest

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

// validRequestID matches the request ids that are taken over from callers.
var validRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// responseRecorder stores the status and size of an answer.
type responseRecorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// Unwrap lets http.ResponseController find the connection.
func (w *responseRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader stores the first status.
func (w *responseRecorder) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes of the answer.
func (w *responseRecorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// observe serves a request with an id, a span, a log line and a measurement.
func (s *Server) observe(next http.Handler, w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	m := &request.Meta{ID: r.Header.Get("X-Request-Id"), Request: r, TrustedProxies: s.cfg.TrustedProxies}
	if !validRequestID.MatchString(m.ID) {
		m.ID = uuid.Must(uuid.NewV7()).String()
	}
	ctx := telemetry.Propagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := s.cfg.Tracer.Start(request.WithMeta(ctx, m), "http request", trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	r = r.WithContext(ctx)
	rec := &responseRecorder{ResponseWriter: w}
	setCommonHeaders(rec.Header(), m.ID)

	s.recoverPanics(next, rec, r)

	route := r.Pattern
	if route == "/" || route == "" {
		route = "unmatched"
	}
	method, took := knownMethod(r.Method), time.Since(start)
	span.SetName(route)
	span.SetAttributes(attribute.String("http.route", route), attribute.Int("http.response.status_code", rec.status), attribute.String("request.id", m.ID))
	if rec.status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(rec.status))
	}
	s.cfg.Metrics.Request(method, route, rec.status).Took(ctx, took)
	s.cfg.Log.InfoContext(ctx, "request", slog.String("request_id", m.ID), slog.String("method", method), slog.String("route", route),
		slog.Int("status", rec.status), slog.Duration("took", took), slog.Int64("bytes", rec.bytes),
		slog.String("tenant_id", m.By.Tenant.String()), slog.String("caller_id", m.By.Token.String()))
}

// recoverPanics answers 500 if a handler panics, and rejects paths that are not
// clean, which the mux would redirect.
func (s *Server) recoverPanics(next http.Handler, w *responseRecorder, r *http.Request) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		s.cfg.Log.ErrorContext(r.Context(), "request panicked", slog.String("request_id", request.ID(r.Context())),
			slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
		if w.status == 0 {
			request.WriteProblem(s.cfg.Log, w, r, fmt.Errorf("panic: %v", cause))
		}
	}()
	if clean := path.Clean("/" + r.URL.Path); r.URL.Path != clean || strings.Contains(r.URL.Path, "\x00") {
		request.WriteProblem(s.cfg.Log, w, r, request.ErrNoRoute)
		return
	}
	next.ServeHTTP(w, r)
}

// knownMethod keeps arbitrary methods out of the labels of metrics.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return method
	}
	return "OTHER"
}

// setCommonHeaders sets the headers of every answer.
func setCommonHeaders(h http.Header, id string) {
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}
