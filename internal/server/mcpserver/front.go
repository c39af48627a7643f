// Package mcpserver is the outside face over MCP: any client that speaks the
// Model Context Protocol sees the tenant's catalog as tools, and each of its
// calls becomes an envelope by way of intake, the one door. It owns the names
// under which tools are offered, the sessions, how long a call is kept open,
// and how the end of an envelope reads as the result of a call. It refuses to
// decide, to execute, and to promise what a tool will answer: a result may be
// that the action waits for a person.
package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MetaIdempotencyKey is the key of a call's _meta under which a client may
// give the call a name of its own, as the external id of an envelope is: the
// same name with the same content is the same action, however often it is
// sent. It is the key that Countersign itself sends to the servers behind it,
// so that one Countersign behind another acts once.
const MetaIdempotencyKey = "countersign.dev/idempotency-key"

// MetaAction is the key of a result's _meta that says which action the result
// is of.
const MetaAction = "countersign.dev/action"

// Watcher tells when something happens to actions.
type Watcher interface {
	// Watch begins to watch an action. What happens to it after Watch has
	// returned is told on nudged, several things perhaps once. stop ends it
	// and must be called.
	Watch(ctx context.Context, tenant envelope.TenantID, action envelope.ActionID) (nudged <-chan struct{}, stop func(), err error)
}

// Core is what a Front stands on. All of it is required.
type Core struct {
	DB      postgres.Begins
	Catalog *settings.Cache
	Intake  *intake.Intake
	Watcher Watcher
	// May says whether a caller may use an operation of the REST API; it is
	// asked about the operation that does what a request here does.
	May func(by identity.Principal, operation string) error
}

// Config says how a Front works. Its zero value logs nothing.
type Config struct {
	// Version is the build's, as clients see it.
	Version string
	// Wait is how long a call is kept open for its action to end; zero means
	// 45 s, below the minute after which many clients give up. It is at most
	// MaxWait.
	Wait time.Duration
	// Progress is how often a client that asked for progress hears of a call
	// that is open; zero means 5 s.
	Progress time.Duration
	// Poll is how often it is looked whether catalogs changed; zero means 2 s.
	Poll time.Duration
	// Page is how many tools a page lists; zero means 100.
	Page int
	// Sessions bounds the sessions that one token has open at once; zero means
	// 50. As many as that again may be opened in a minute.
	Sessions int
	// Idle is after which time without a request a session is closed; zero
	// means an hour.
	Idle time.Duration
	// Auth finds out who makes a request; nil means one of the Front's own.
	Auth *identity.Authenticator
	// Caller, if set, is told who makes a request, for its log line.
	Caller func(context.Context, identity.Principal)
	// Origin, if set, tells where the request of a context comes from, to be
	// kept with what it proposes.
	Origin func(context.Context) json.RawMessage
	// Log receives what goes wrong, without payloads.
	Log *slog.Logger
}

// waitSeconds is Wait in whole seconds.
func (c *Config) waitSeconds() int { return max(1, int(c.Wait.Seconds())) }

// MaxWait bounds how long a call can be kept open.
const MaxWait = 5 * time.Minute

// firstStateless is the first version of the protocol that knows no sessions.
const firstStateless = "2026-07-28"

// Front is the MCP interface: an http.Handler for one path. It is safe for
// concurrent use and must be closed.
type Front struct {
	Core
	cfg  Config
	auth *identity.Authenticator
	// sessions serves the versions of the protocol that know sessions, single
	// the others.
	sessions, single http.Handler

	closing  chan struct{}
	watching sync.WaitGroup

	mu    sync.Mutex
	over  bool
	desks map[identity.TokenID]*desk
	calls map[string]*open
}

// New returns a Front.
func New(core Core, cfg Config) (*Front, error) {
	if core.DB == nil || core.Catalog == nil || core.Intake == nil || core.Watcher == nil || core.May == nil {
		return nil, errors.New("the MCP front needs a database, a catalog, an intake, a watcher and who may do what")
	}
	cfg.Version = cmp.Or(cfg.Version, "unknown")
	cfg.Wait = min(cmp.Or(cfg.Wait, 45*time.Second), MaxWait)
	cfg.Progress = cmp.Or(cfg.Progress, 5*time.Second)
	cfg.Poll = cmp.Or(cfg.Poll, 2*time.Second)
	cfg.Page = cmp.Or(cfg.Page, 100)
	cfg.Sessions = cmp.Or(cfg.Sessions, 50)
	cfg.Idle = cmp.Or(cfg.Idle, time.Hour)
	if cfg.Origin == nil {
		cfg.Origin = func(context.Context) json.RawMessage { return nil }
	}
	if cfg.Caller == nil {
		cfg.Caller = func(context.Context, identity.Principal) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	f := &Front{
		Core: core, cfg: cfg, auth: cfg.Auth, closing: make(chan struct{}),
		desks: make(map[identity.TokenID]*desk), calls: make(map[string]*open),
	}
	if f.auth == nil {
		f.auth = identity.NewAuthenticator(core.DB)
		f.watching.Go(f.keepAuth)
	}
	// The host of a request is looked at by admit, which knows a browser from
	// a client behind a proxy.
	options := sdk.StreamableHTTPOptions{
		MaxRequestBodyBytes: maxBody, SessionTimeout: cfg.Idle, DisableLocalhostProtection: true, PropagateRequestCancellation: true,
	}
	f.sessions = sdk.NewStreamableHTTPHandler(serverOf, &options)
	options.Stateless = true
	f.single = sdk.NewStreamableHTTPHandler(serverOf, &options)
	f.watching.Go(f.watch)
	return f, nil
}

// Close ends every wait, which is answered with what is known, and every
// session, and returns when nothing of the Front runs any more. Call it before
// the HTTP server drains, which would wait for them. Closing twice is no
// error.
func (f *Front) Close() {
	f.mu.Lock()
	if !f.over {
		f.over = true
		close(f.closing)
	}
	f.mu.Unlock()
	f.watching.Wait()
	f.drain()
	for _, d := range f.taken() {
		d.leave() // none of its calls waits for anything now
	}
}

// keepAuth has the Front's own Authenticator write down when tokens were used,
// until the Front closes.
func (f *Front) keepAuth() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f.watching.Go(func() {
		<-f.closing
		cancel()
	})
	f.auth.Keep(ctx, func(err error) { f.cfg.Log.WarnContext(ctx, "use of tokens not noted", slog.Any("error", err)) })
}

// drainFor bounds how long answers may take to go out when the Front closes.
const drainFor = 5 * time.Second

// drain waits for the answers of requests that are open. A session that is
// closed would lose them.
func (f *Front) drain() {
	f.mu.Lock()
	calls := slices.Collect(maps.Values(f.calls))
	f.mu.Unlock()
	over := time.NewTimer(drainFor)
	defer over.Stop()
	for _, o := range calls {
		if !o.answers {
			continue
		}
		select {
		case <-o.done:
		case <-over.C:
			return
		}
	}
}

// taken are the desks that there are now.
func (f *Front) taken() []*desk {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.desks))
}

// workFor bounds what a request does, not counting the time that it waits.
const workFor = 30 * time.Second

// inTx runs fn in a transaction of a tenant.
func (f *Front) inTx(ctx context.Context, tenant envelope.TenantID, fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, workFor)
	defer cancel()
	return postgres.InTx(ctx, f.DB, postgres.API(tenant), func(tx pgx.Tx) error { return fn(ctx, tx) })
}
