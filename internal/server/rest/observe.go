package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
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

	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// saneID is a request id that is taken over from the caller.
var saneID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

type noteKey struct{}

// note is what is found out about a request on its way, for its log line.
type note struct {
	id string
	by identity.Principal
	// request is the request itself, and trusted the proxies in front of this
	// server, for Origin.
	request *http.Request
	trusted []netip.Prefix
}

func noteOf(ctx context.Context) *note {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		return n
	}
	return &note{}
}

func noteCaller(ctx context.Context, by identity.Principal) { noteOf(ctx).by = by }

// requestID is the id that the request has in logs and problems.
func requestID(ctx context.Context) string { return noteOf(ctx).id }

// recorder remembers what was answered, and bounds how long that may take.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// record begins an answer. A connection may still have the deadline of the
// answer before. What cannot have one is a test's recorder.
func record(w http.ResponseWriter) *recorder {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	return &recorder{ResponseWriter: w}
}

// Unwrap lets http.ResponseController find the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the first status. From then on the answer has to go out in
// time.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeFor))
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts what goes out.
func (w *recorder) Write(b []byte) (int, error) {
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
	n := &note{id: r.Header.Get("X-Request-Id"), request: r, trusted: s.cfg.TrustedProxies}
	if !saneID.MatchString(n.id) {
		n.id = uuid.Must(uuid.NewV7()).String()
	}
	ctx := telemetry.Propagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := s.cfg.Tracer.Start(context.WithValue(ctx, noteKey{}, n), "http request", trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	r = r.WithContext(ctx)
	rec := record(w)
	secure(rec.Header(), n.id)

	s.guard(next, rec, r)

	route := r.Pattern
	if route == "/" || route == "" {
		route = "unmatched"
	}
	method, took := knownMethod(r.Method), time.Since(start)
	span.SetName(route)
	span.SetAttributes(attribute.String("http.route", route), attribute.Int("http.response.status_code", rec.status), attribute.String("request.id", n.id))
	if rec.status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(rec.status))
	}
	s.cfg.Metrics.Request(method, route, rec.status).Took(ctx, took)
	s.cfg.Log.InfoContext(ctx, "request", slog.String("request_id", n.id), slog.String("method", method), slog.String("route", route),
		slog.Int("status", rec.status), slog.Duration("took", took), slog.Int64("bytes", rec.bytes),
		slog.String("tenant_id", n.by.Tenant.String()), slog.String("caller_id", n.by.Token.String()))
}

// guard answers 500 to what panics, and refuses paths that are not clean,
// which the mux would redirect.
func (s *Server) guard(next http.Handler, w *recorder, r *http.Request) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		s.cfg.Log.ErrorContext(r.Context(), "request panicked", slog.String("request_id", requestID(r.Context())),
			slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
		if w.status == 0 {
			s.writeProblem(w, r, fmt.Errorf("panic: %v", cause))
		}
	}()
	if clean := path.Clean("/" + r.URL.Path); r.URL.Path != clean || strings.Contains(r.URL.Path, "\x00") {
		s.writeProblem(w, r, errNoRoute)
		return
	}
	next.ServeHTTP(w, r)
}

// knownMethod keeps what anybody may send out of the names of measurements.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return method
	}
	return "OTHER"
}

// secure sets the headers that every answer has.
func secure(h http.Header, id string) {
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}
