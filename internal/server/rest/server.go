// Package rest is the REST API over HTTP: the table of routes, and the
// processing of every request before and after its handler. The contract is
// schemas/openapi.yaml: requests are checked against it at run time, responses
// in the tests. The handlers are in the packages below, one for each group of
// resources. A handler reads the request, calls one function and writes the
// response.
package rest

import (
	"cmp"
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

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/encryption"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/broker"
	"github.com/countersign-dev/countersign/internal/server/oauth"
	"github.com/countersign-dev/countersign/internal/server/openapi"
	"github.com/countersign-dev/countersign/internal/server/rest/browser"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/server/rest/route"
	"github.com/countersign-dev/countersign/internal/server/rest/triage"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/web"
)

// Core holds the services that a Server calls. All are required.
type Core struct {
	DB       postgres.Begins
	Catalog  *settings.Cache
	Intake   *intake.Intake
	Approval *approval.Service
}

// Config configures a Server. With the zero value the server neither logs nor
// measures.
type Config struct {
	// Vault encrypts the credentials of sources. Without a key none are taken.
	Vault connection.Cipher
	// MailKey encrypts the passwords of mail accounts. Without a key none are
	// taken.
	MailKey encryption.Key
	// Wake is called after a commit that put something on the schedule. It
	// must not block.
	Wake func()
	// Log receives a line for every request, without payloads.
	Log *slog.Logger
	// Metrics measures requests.
	Metrics *telemetry.Metrics
	// Tracer makes a span of every request.
	Tracer trace.Tracer
	// Events notifies of tenants with new events; nil for a database that cannot
	// notify, such as one behind a pooler in transaction mode.
	Events broker.Listen
	// Poll is the broker's poll interval while events are awaited; zero means 100
	// ms. With Events it polls less often.
	Poll time.Duration
	// Streams and Waits bound the open streams and waits of one token in this
	// process (COUNTERSIGN_TOKEN_STREAMS and COUNTERSIGN_TOKEN_WAITS); zero means
	// 100 and 200. A tenant has five times as many.
	Streams, Waits int
	// PublicURL is the API's address for people: an https address without a path,
	// or http on this machine. Without it there are no login codes and no logins at
	// issuers.
	PublicURL string
	// OAuth has programs log in at /mcp by its URL alone. It needs PublicURL, and a
	// Vault with a key where several processes answer.
	OAuth bool
	// ProgramNetworks are where metadata documents of programs may be, besides the
	// public internet.
	ProgramNetworks []netip.Prefix
	// SourceNetworks are where sources and their authorization servers may be, besides
	// the public internet, for logins.
	SourceNetworks []netip.Prefix
	// TrustedProxies are the proxies whose headers about a client's address count.
	TrustedProxies []netip.Prefix
	// IssuerNetworks are networks, in addition to the public internet, in which
	// issuers of logins may be.
	IssuerNetworks []netip.Prefix
	// Heartbeat is the interval at which a silent stream of events sends
	// something; zero means 15 s.
	Heartbeat time.Duration
	// Page handles requests without a route, if it accepts them.
	Page Page
	// Ready returns the reason why requests should go to another process, for
	// /readyz; nil checks the schema of the database.
	Ready func(ctx context.Context) error
}

// Page is the operator's page.
type Page interface {
	http.Handler
	// Wants reports whether the page answers a request.
	Wants(r *http.Request) bool
}

// withDefaults sets the defaults of empty fields.
func (cfg Config) withDefaults(db postgres.Begins) (Config, error) {
	if cfg.Wake == nil {
		cfg.Wake = func() {}
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Tracer = cmp.Or(cfg.Tracer, trace.Tracer(tracenoop.NewTracerProvider().Tracer("")))
	cfg.Streams, cfg.Waits = cmp.Or(cfg.Streams, 100), cmp.Or(cfg.Waits, 200)
	cfg.Poll = cmp.Or(cfg.Poll, 100*time.Millisecond)
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, 15*time.Second)
	if cfg.Ready == nil {
		cfg.Ready = func(ctx context.Context) error { return postgres.CheckSchema(ctx, db) }
	}
	var err error
	if cfg.Metrics == nil {
		cfg.Metrics, err = telemetry.NewMetrics(noop.NewMeterProvider().Meter(""))
	}
	return cfg, err
}

// Server is the HTTP server's handler. It is safe for concurrent use, and must
// be closed.
type Server struct {
	cfg     Config
	backend *request.Backend
	mux     *http.ServeMux
	bulk    bulk
	reads   sharedReads
	// stop ends the goroutine that records when tokens were used last, and
	// background waits for it.
	stop       context.CancelFunc
	background sync.WaitGroup
}

// New returns a Server. The error is for an embedded openapi.yaml that does
// not match the table of routes, which no released build has.
func New(core Core, cfg Config) (*Server, error) {
	if core.DB == nil || core.Catalog == nil || core.Intake == nil || core.Approval == nil {
		return nil, errors.New("the API needs a database, a catalog, an intake and an approval service")
	}
	cfg, err := cfg.withDefaults(core.DB)
	if err != nil {
		return nil, err
	}
	cookies, err := browser.New(web.Base(cfg.PublicURL), cfg.Vault)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), bulk: bulk{tenants: make(map[envelope.TenantID]int64)}, reads: newSharedReads()}
	s.backend = &request.Backend{
		DB: core.DB, Catalog: core.Catalog, Settings: settings.NewReader(core.DB, core.Catalog), Intake: core.Intake, Actions: outbox.NewReader(core.DB), Approval: core.Approval,
		Auth: identity.NewAuthenticator(core.DB, cfg.IssuerNetworks...), Broker: broker.New(core.DB, cfg.Events, cfg.Poll, cfg.Log), Browser: cookies, Routes: route.Access(),
		Vault: cfg.Vault, SourceNetworks: cfg.SourceNetworks, MailKey: cfg.MailKey, Mail: triage.ActionMail, CheckEdit: triage.CheckEdit, Wake: cfg.Wake, Log: cfg.Log, Poll: cfg.Poll, Heartbeat: cfg.Heartbeat, Ready: cfg.Ready, Gzip: request.NewGzip(),
		Streams: request.NewOpenLimit("streams", cfg.Streams), Waits: request.NewOpenLimit("waits", cfg.Waits),
	}
	if cfg.OAuth && s.backend.Browser.Links().Known() {
		programs := oauth.New(s.backend.Auth, oauth.Config{
			Base: web.Base(cfg.PublicURL), Cipher: cookies.Cipher(), Networks: cfg.ProgramNetworks, TrustedProxies: cfg.TrustedProxies, Log: cfg.Log,
			Bind: cookies.BeginConsent,
		})
		for _, path := range oauth.Paths() {
			s.mux.Handle(path, programs)
		}
		s.backend.OAuth = programs
	}
	contract, err := openapi.Load()
	if err != nil {
		return nil, err
	}
	for _, rt := range route.Table() {
		op, err := contract.Operation(rt.Operation)
		if err != nil {
			return nil, err
		}
		s.mux.Handle(rt.Pattern, s.handler(rt, op))
	}
	s.mux.HandleFunc("/", s.unmatched)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.background.Go(func() {
		s.backend.Auth.Keep(ctx, func(err error) { cfg.Log.WarnContext(ctx, "use of tokens not recorded", slog.Any("error", err)) })
	})
	return s, nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.observe(s.mux, w, r) }

// Mount serves a path with another handler, with the log lines, measurements
// and headers of every request. Call it before the server serves.
func (s *Server) Mount(path string, handler http.Handler) { s.mux.Handle(path, handler) }

// Backend returns the backend of the server's handlers, for mounted handlers.
func (s *Server) Backend() *request.Backend { return s.backend }

// Close ends every stream of events and every wait, whose requests are answered
// with the current state, and returns when every goroutine of the server has
// ended. Call it before the HTTP server drains, which would wait for them.
func (s *Server) Close() {
	s.backend.Broker.Close()
	s.stop()
	s.background.Wait()
}
