package config

import (
	"crypto/rand"
	_ "embed" // for the texts of --help
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/listen"
	"github.com/countersign-dev/countersign/internal/safehttp"
)

// The texts of --help, with a placeholder for the table of variables.
var (
	//go:embed api.txt
	apiUsage string
	//go:embed worker.txt
	workerUsage string
	//go:embed triage.txt
	triageUsage string
)

const databaseForm = "postgres://user:password@host:5432/database"

// Shared is the configuration common to all server processes.
type Shared struct {
	// DatabaseURL may contain a password.
	DatabaseURL string
	MaxConns    int32
	// Pooled is set if the database is behind a pooler in transaction mode.
	Pooled bool
	// PollOnly disables notifications of the database.
	PollOnly bool
	// SecretKey is empty, or 32 bytes in base64.
	SecretKey string
	LogLevel  slog.Level
	// MetricsListen is the address of a listener for metrics and probes, or
	// empty.
	MetricsListen string
	// OTLP is the base URL of a collector, or empty.
	OTLP string
}

func (c *Shared) variables(conns string, least int32) []variable {
	return []variable{
		{name: "DATABASE_URL", required: true, parse: database(&c.DatabaseURL), shown: databaseOf, about: "the database: " + databaseForm},
		{name: prefix + "DB_MAX_CONNS", standard: conns, parse: number(&c.MaxConns, least, 1000),
			about: fmt.Sprintf("connections to the database at most, %d to 1000", least)},
		{name: prefix + "DB_POOLED", standard: "false", parse: boolean(&c.Pooled), about: "true behind a pooler in transaction mode (PgBouncer); the login then has a search_path of its own, see docs/operations.md"},
		{name: prefix + "POLL_ONLY", standard: "false", parse: boolean(&c.PollOnly), about: "does without LISTEN, which a pooler in transaction mode does not pass on"},
		{name: prefix + "SECRET_KEY", parse: secretKey(&c.SecretKey), shown: isSet,
			about: "encrypts the credentials of sources: 32 bytes in base64, the same for api and worker (openssl rand -base64 32)"},
		{name: prefix + "LOG_LEVEL", standard: "info", parse: level(&c.LogLevel), about: "debug, info, warn or error"},
		{name: prefix + "METRICS_LISTEN", parse: address(&c.MetricsListen), about: "serves /metrics, /healthz and /readyz on this address, such as :9090"},
		{name: "OTEL_EXPORTER_OTLP_ENDPOINT", parse: collector(&c.OTLP), shown: hostOf,
			about: "sends traces and metrics to this collector over OTLP/HTTP, such as http://collector:4318"},
	}
}

// API is the configuration of the command api.
type API struct {
	logged
	Shared
	Listen string
	// PublicURL is the address of the API for people, or empty.
	PublicURL string
	// TriageKey is empty, or 32 bytes in base64.
	TriageKey    string
	ApprovalWait time.Duration
	MCPWait      time.Duration
	// TokenStreams and TokenWaits bound the open streams and waits of one token.
	TokenStreams, TokenWaits int
	// IssuerNetworks are allowed for login issuers, in addition to the public
	// internet.
	IssuerNetworks []netip.Prefix
	// SourceNetworks are those of Worker, for logins of sources.
	SourceNetworks []netip.Prefix
	// OAuth has programs log in by the URL of /mcp alone.
	OAuth bool
	// Limits bound connections and their resources.
	Limits listen.Limits
	// DBWait bounds the wait of a request for a database connection.
	DBWait time.Duration
	// Linger is the time after SIGTERM during which requests are still answered.
	Linger time.Duration
}

// Address returns the address of the API for people: PublicURL, or the listen
// address if it is a loopback address, or "".
func (c *API) Address() string {
	host, _, err := net.SplitHostPort(c.Listen)
	if c.PublicURL == "" && err == nil && safehttp.Local(host) {
		return "http://" + c.Listen
	}
	return c.PublicURL
}

// maxMCPWait bounds API.MCPWait, since clients and proxies time out.
const maxMCPWait = 5 * time.Minute

// maxApprovalWait is the maximum wait of a review rule.
const maxApprovalWait = 30 * 24 * time.Hour

func (c *API) name() string { return "api" }

func (c *API) usage() string { return apiUsage }

func (c *API) variables() []variable {
	return slices.Concat(c.Shared.variables("10", 1), []variable{
		{name: prefix + "LISTEN", standard: "127.0.0.1:8080", parse: address(&c.Listen), about: "the address to listen on"},
		{name: prefix + "PUBLIC_URL", parse: origin(&c.PublicURL),
			about: "the address of the API in people's browsers, such as https://countersign.acme.com; unless set, the address to listen on, if that is of this machine alone"},
		{name: prefix + "TRIAGE_KEY", parse: secretKey(&c.TriageKey), shown: isSet,
			about: "encrypts the passwords with which mail is read: 32 bytes in base64, the same for api and triage, and another than COUNTERSIGN_SECRET_KEY"},
		{name: prefix + "APPROVAL_WAIT", standard: "5m", parse: duration(&c.ApprovalWait, time.Second, maxApprovalWait),
			about: "how long an action waits for a decision, unless a review rule sets another time"},
		{name: prefix + "MCP_WAIT", standard: "45s", parse: duration(&c.MCPWait, time.Second, maxMCPWait),
			about: "how long a call over MCP waits for its action to end before it is answered as pending, 1s to 5m"},
		{name: prefix + "TOKEN_STREAMS", standard: "100", parse: number(&c.TokenStreams, 1, 100_000),
			about: "event streams and exports that one token has open at once in this process, 1 to 100000; a tenant has five times as many"},
		{name: prefix + "TOKEN_WAITS", standard: "200", parse: number(&c.TokenWaits, 1, 100_000),
			about: "requests and calls of one token that wait for an action to end at once, 1 to 100000; a tenant has five times as many"},
		{name: prefix + "TRUSTED_PROXIES", parse: networks(&c.Limits.TrustedProxies),
			about: "addresses and networks of the proxies in front, such as 10.0.0.0/8, whose X-Forwarded-For is trusted; their connections count for the clients that it names"},
		{name: prefix + "READ_TIMEOUT", standard: "30s", parse: duration(&c.Limits.Read, time.Second, 10*time.Minute),
			about: "how long a request may take to arrive with its body, 1s to 10m"},
		{name: prefix + "WRITE_TIMEOUT", standard: "15s", parse: duration(&c.Limits.Write, time.Second, 10*time.Minute),
			about: "how long an answer, or a piece of a stream, may take to be sent, 1s to 10m"},
		{name: prefix + "CONNECTIONS", standard: "5000", parse: number(&c.Limits.Connections, 10, 1_000_000),
			about: "connections that are open at once in this process, 10 to 1000000"},
		{name: prefix + "ADDRESS_CONNECTIONS", standard: "200", parse: number(&c.Limits.AddressConnections, 1, 1_000_000),
			about: "connections of one address (of IPv6, one /64 network) that are open at once without a login, 1 to 1000000"},
		{name: prefix + "TOKEN_CONNECTIONS", standard: "400", parse: number(&c.Limits.CallerConnections, 1, 1_000_000),
			about: "connections of one token or login that are open at once, 1 to 1000000; a tenant has five times as many"},
		{name: prefix + "DB_WAIT", standard: "5s", parse: duration(&c.DBWait, 10*time.Millisecond, time.Minute),
			about: "how long a request waits for a connection to the database before it is answered with 503, 10ms to 1m"},
		{name: prefix + "ISSUER_NETWORKS", parse: networks(&c.IssuerNetworks),
			about: "addresses and networks, such as 10.1.0.0/16, outside the public internet where issuers of logins may be"},
		{name: prefix + "SOURCE_NETWORKS", parse: networks(&c.SourceNetworks),
			about: "addresses and networks, such as 10.1.0.0/16, outside the public internet where sources that log in, and their authorization servers, may be"},
		{name: prefix + "OAUTH", standard: "false", parse: boolean(&c.OAuth),
			about: "lets MCP clients log in by the URL of /mcp alone, after a person consents; needs COUNTERSIGN_PUBLIC_URL and COUNTERSIGN_SECRET_KEY"},
		{name: prefix + "LINGER", standard: "5s", parse: duration(&c.Linger, 0, 5*time.Minute),
			about: "how long requests are answered after SIGTERM, with /readyz at 503, up to 5m; at least as long as load balancers take to notice"},
	})
}

// Worker is the configuration of the command worker.
type Worker struct {
	logged
	Shared
	// ID is unique among all workers.
	ID           string
	Concurrency  int
	Batch        int
	Lease        time.Duration
	Grace        time.Duration
	StdioSources bool
	// Maildirs are the directories in which sources may change Maildirs.
	Maildirs []string
	// SourceNetworks are allowed for sources, in addition to the public
	// internet.
	SourceNetworks []netip.Prefix
	// PublicURL is the address of the API for people, or empty.
	PublicURL string
	// DatabaseID is the database that the worker is for; zero for any.
	DatabaseID uuid.UUID
	// StateFile is a memory outside the database; empty for none.
	StateFile string
	// StateConfigMap is such a memory in Kubernetes; empty for none.
	StateConfigMap string
}

func (c *Worker) name() string { return "worker" }

func (c *Worker) usage() string { return workerUsage }

func (c *Worker) variables() []variable {
	c.ID = workerID()
	return slices.Concat(c.Shared.variables("20", 4), []variable{
		{name: prefix + "WORKER_ID", parse: text(&c.ID), about: "the worker's name in records and logs; unless set, made of host, process id and random letters"},
		{name: prefix + "CONCURRENCY", standard: "100", parse: number(&c.Concurrency, 1, 10_000), about: "calls that are open at once, 1 to 10000; up to twice as many while slow calls hold them all and others wait"},
		{name: prefix + "BATCH", standard: "500", parse: number(&c.Batch, 1, 5_000), about: "actions that one claim takes, at most, 1 to 5000"},
		{name: prefix + "LEASE", standard: "30s", parse: duration(&c.Lease, 5*time.Second, time.Hour),
			about: "how long a claim holds without being renewed, 5s to 1h; after that others take up the work of a worker that died"},
		{name: prefix + "GRACE", standard: "20s", parse: duration(&c.Grace, time.Millisecond, time.Hour),
			about: "how long running calls may go on after SIGTERM, up to 1h; less than the time after which your platform kills"},
		{name: prefix + "SOURCE_NETWORKS", parse: networks(&c.SourceNetworks),
			about: "addresses and networks, such as 10.1.0.0/16, outside the public internet where sources may be called"},
		{name: prefix + "PUBLIC_URL", parse: origin(&c.PublicURL),
			about: "the address of the API in people's browsers, such as https://countersign.acme.com; messages in Slack lead there"},
		{name: prefix + "STDIO_SOURCES", standard: "false", parse: boolean(&c.StdioSources),
			about: "lets sources of transport stdio start their programs as this process's user; who sets up sources can then run any program"},
		{name: prefix + "MAILDIRS", parse: folders(&c.Maildirs),
			about: "folders, separated by commas, in which sources of kind mail may change Maildirs; who sets up sources can then change any mailbox in them"},
		{name: prefix + "DATABASE_ID", parse: databaseID(&c.DatabaseID),
			about: "the database that this worker is for, as countersign recover prints it; it claims nothing in another one"},
		{name: prefix + "STATE_FILE", parse: text(&c.StateFile),
			about: "a file of this worker alone, on another disk than the database, with its last commits; it reveals a database that was restored to an earlier state"},
		{name: prefix + "STATE_CONFIGMAP", parse: text(&c.StateConfigMap),
			about: "the same on Kubernetes for all workers: a ConfigMap of their namespace, which their service account may get and patch"},
	})
}

// Triage is the configuration of the command triage.
type Triage struct {
	logged
	// Shared has no SecretKey, and the database login is bound to a tenant.
	Shared
	// Key is empty, or 32 bytes in base64. It decrypts the passwords of
	// accounts.
	Key      string
	Accounts int
	Lease    time.Duration
	// DNS enables lookups of senders' keys and policies.
	DNS bool
	// Networks are allowed in addition to the public internet.
	Networks []netip.Prefix
	// Mailboxes are the directories for accounts in files, and Passwords the
	// directories for files with the passwords of accounts.
	Mailboxes, Passwords []string
	// Programs allows accounts to start programs as MCP servers.
	Programs bool
	// Models is the path of the file that configures language models; empty if
	// none.
	Models string
}

// secretPrefix is the prefix of the variables that may hold passwords of
// accounts.
const secretPrefix = prefix + "TRIAGE_SECRET_"

func (c *Triage) name() string { return "triage" }

func (c *Triage) usage() string { return triageUsage }

func (c *Triage) variables() []variable {
	// Triage does not have the key for credentials of sources.
	shared := slices.DeleteFunc(c.Shared.variables("10", 4), func(v variable) bool { return v.name == prefix+"SECRET_KEY" })
	return slices.Concat(shared, []variable{
		{name: prefix + "TRIAGE_KEY", parse: secretKey(&c.Key), shown: isSet,
			about: "decrypts the passwords of mail accounts: 32 bytes in base64, the same for api and triage (openssl rand -base64 32)"},
		{name: prefix + "TRIAGE_ACCOUNTS", standard: "20", parse: number(&c.Accounts, 1, 1000), about: "accounts that are read at once, 1 to 1000"},
		{name: prefix + "TRIAGE_LEASE", standard: "1m", parse: duration(&c.Lease, 5*time.Second, time.Hour),
			about: "how long a process holds an account without renewing it, 5s to 1h; after that others take it up"},
		{name: prefix + "TRIAGE_DNS", standard: "true", parse: boolean(&c.DNS),
			about: "false looks up no keys and policies of senders, and believes the trusted host of each account alone"},
		{name: prefix + "TRIAGE_STDIO", standard: "false", parse: boolean(&c.Programs),
			about: "lets accounts of kind mcp start their programs as this process's user; who sets up accounts can then run any program"},
		{name: prefix + "TRIAGE_NETWORKS", parse: networks(&c.Networks),
			about: "addresses and networks, such as 10.1.0.0/16, outside the public internet where mail servers may be"},
		{name: prefix + "MAILDIRS", parse: folders(&c.Mailboxes),
			about: "folders, separated by commas, in which Maildirs, mboxes and .eml files of accounts may be; who sets up accounts can then read all mail in them"},
		{name: prefix + "TRIAGE_PASSWORDS", standard: "/run/secrets", parse: folders(&c.Passwords),
			about: "folders, separated by commas, with the files that accounts may take their passwords from"},
		{name: prefix + "TRIAGE_MODELS", parse: file(&c.Models),
			about: "a file with the language models on servers of your own that answer what the rules leave open; read once, when the process starts"},
	})
}

// workerID returns a name that is unique among workers.
func workerID() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "worker"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:6]))
}
