// Package request has the common parts of the REST API's handlers: the admitted
// and checked request, transactions, responses, pages, cursors and problems. It
// has no routes (see rest) and decides nothing.
package request

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/encryption"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/broker"
	"github.com/countersign-dev/countersign/internal/server/rest/browser"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// WorkTimeout bounds a request, not counting the wait that it asked for.
	WorkTimeout = 30 * time.Second
	// firstRead is as many bytes of a body as memory is taken for before any of
	// them has arrived.
	firstRead = 64 << 10
)

// Programs is the authorization server for programs, as handlers use it.
type Programs interface {
	// Pending returns the request that a consent page shows. ok is false for one that
	// is too old or was made elsewhere.
	Pending(text string, now time.Time) (p identity.PendingProgram, ok bool)
	// Consented and Denied return the address to send the browser to.
	Consented(p identity.PendingProgram, code identity.Token) string
	Denied(p identity.PendingProgram) string
	// Challenge returns the WWW-Authenticate header of an answer 401 at /mcp.
	Challenge(invalid bool) string
}

// Backend holds the services that handlers call.
type Backend struct {
	DB       postgres.Begins
	Catalog  *settings.Cache
	Settings *settings.Reader
	Intake   *intake.Intake
	Actions  *outbox.Reader
	Approval *approval.Service
	Auth     *identity.Authenticator
	Broker   *broker.Broker
	// Browser keeps the sessions of people in their browsers.
	Browser *browser.Browser
	// OAuth is the authorization server for programs, or nil.
	OAuth Programs
	// Routes are every route of the API, for the routes of a caller.
	Routes access.Table
	// Vault encrypts the credentials of sources. Without a key none are taken.
	Vault connection.Cipher
	// SourceNetworks are where sources and their authorization servers may be, besides
	// the public internet, for logins.
	SourceNetworks []netip.Prefix
	// MailKey encrypts the passwords of mail accounts. Without a key none are
	// taken.
	MailKey encryption.Key
	// Mail returns the messages that actions of triage are about. Only a caller who
	// access.ReadsMail may be shown them.
	Mail func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actions ...envelope.ActionID) (map[envelope.ActionID]*wire.ActionMail, error)
	// CheckEdit checks arguments that a person wrote in place of those of an action,
	// if triage proposed it or its source is a mailbox.
	CheckEdit func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, args json.RawMessage) error
	// Wake is called after a commit that put something on the schedule. It does
	// not block.
	Wake func()
	Log  *slog.Logger
	// Poll is the poll interval of waits.
	Poll time.Duration
	// Gzip compresses answers.
	Gzip *Gzip
	// Streams limits the answers without an end, Waits the requests that wait for
	// an action or a workflow.
	Streams, Waits *OpenLimit
	// Heartbeat is the interval at which a silent stream of events sends
	// something.
	Heartbeat time.Duration
	// Ready returns the reason why requests should go to another process, or nil.
	Ready func(ctx context.Context) error
}
