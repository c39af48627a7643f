// Package rest is the outside face over HTTP: requests in, problems and
// representations out. schemas/openapi.yaml is its law: every request is held
// to it when it comes, and every answer in the tests. The package owns the
// table of routes with the roles that may use each, the stream of events, and
// the place where an error becomes HTTP. It refuses to decide anything: a
// handler reads, calls one function and writes.
package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/connect"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Core is what a Server stands on. All of it is required.
type Core struct {
	DB       postgres.Begins
	Catalog  *settings.Cache
	Intake   *intake.Intake
	Approval *approval.Service
}

// Config says how a Server works. Its zero value logs and counts nothing.
type Config struct {
	// Vault seals the credentials of sources. Without a key none are taken.
	Vault connect.Vault
	// Wake is called after a commit that put something on the schedule. It
	// must not block.
	Wake func()
	// Log receives a line for every request, without payloads.
	Log *slog.Logger
	// Metrics measures requests.
	Metrics *telemetry.Metrics
	// Tracer makes a span of every request.
	Tracer trace.Tracer
	// Scrape answers GET /metrics; nil is 404.
	Scrape http.Handler
	// Poll is how often events are looked for while somebody waits for them;
	// zero means 100 ms.
	Poll time.Duration
	// TrustedProxies are those whose word about a client's address counts.
	TrustedProxies []netip.Prefix
	// Heartbeat is how often a stream of events shows that it lives; zero
	// means 15 s.
	Heartbeat time.Duration
}

// Server is the HTTP interface. It is an http.Handler, safe for concurrent
// use, and must be closed.
type Server struct {
	Core
	cfg   Config
	law   *law
	auth  *identity.Authenticator
	hub   *hub
	mux   *http.ServeMux
	slots chan struct{}
	// over ends what keeps the notes of auth, and keeping waits for it.
	over    context.CancelFunc
	keeping sync.WaitGroup
}

// batchesAtOnce bounds the batches that are read and parsed at the same time,
// since each may be many megabytes.
const batchesAtOnce = 8

// New returns a Server. The error says that the embedded openapi.yaml and the
// table of routes do not fit each other, which no released build has.
func New(core Core, cfg Config) (*Server, error) {
	if core.DB == nil || core.Catalog == nil || core.Intake == nil || core.Approval == nil {
		return nil, errors.New("the API needs a database, a catalog, an intake and an approval desk")
	}
	if cfg.Wake == nil {
		cfg.Wake = func() {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Tracer == nil {
		cfg.Tracer = tracenoop.NewTracerProvider().Tracer("")
	}
	if cfg.Poll == 0 {
		cfg.Poll = 100 * time.Millisecond
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	var err error
	if cfg.Metrics == nil {
		if cfg.Metrics, err = telemetry.NewMetrics(noop.NewMeterProvider().Meter("")); err != nil {
			return nil, err
		}
	}
	s := &Server{
		Core: core, cfg: cfg, auth: identity.NewAuthenticator(core.DB), hub: newHub(core.DB, cfg.Poll, cfg.Log),
		mux: http.NewServeMux(), slots: make(chan struct{}, batchesAtOnce),
	}
	if s.law, err = loadLaw(); err != nil {
		return nil, err
	}
	for _, rt := range routes() {
		op, ok := s.law.operations[rt.operation]
		if !ok {
			return nil, errors.New("openapi.yaml has no operation " + rt.operation)
		}
		s.mux.Handle(rt.pattern, s.serve(rt, op))
	}
	s.mux.HandleFunc("/", s.unmatched)
	ctx, over := context.WithCancel(context.Background())
	s.over = over
	s.keeping.Go(func() {
		s.auth.Keep(ctx, func(err error) { s.cfg.Log.WarnContext(ctx, "use of tokens not noted", slog.Any("error", err)) })
	})
	return s, nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.observe(s.mux, w, r) }

// Close ends every stream of events and every wait, and returns when nothing
// looks for events any more, and when tokens were used last is written down.
// Requests that wait are answered with what is known. Call it before the HTTP
// server drains, which would wait for them.
func (s *Server) Close() {
	s.hub.close()
	s.over()
	s.keeping.Wait()
}
