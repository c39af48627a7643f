// Package account owns the mail accounts that triage reads: what people set of
// them, the checks of that, their rows, the password for reading, and the reader
// that an account is opened with. It schedules nothing and reads no mail.
package account

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/draft"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// Kind is what an account is.
type Kind string

// The kinds.
const (
	IMAP    Kind = "imap"
	Maildir Kind = "maildir"
	Mbox    Kind = "mbox"
	// EML is a folder of .eml files.
	EML Kind = "eml"
	// MCP is a mailbox behind an MCP mail server.
	MCP Kind = "mcp"
)

// Security is how the connection to a server is protected.
type Security string

// The ways. Plain connects to the local machine alone.
const (
	TLS      Security = "tls"
	StartTLS Security = "starttls"
	Plain    Security = "plain"
)

// Auth is how the password is shown to the server. The last two take an access
// token.
type Auth string

// The ways.
const (
	Password    Auth = "plain"
	OAuthBearer Auth = "oauthbearer"
	XOAuth2     Auth = "xoauth2"
)

// What an account has unless it says otherwise.
const (
	DefaultEvery        = time.Minute
	DefaultBackfillDays = 30
)

// Account is a mail account that triage reads.
type Account struct {
	Tenant envelope.TenantID
	ID     uuid.UUID
	// Name is what people call the account. It is unique within a tenant, and never
	// changes.
	Name       string
	Kind       Kind
	Connection Connection
	// Settings are what decisions depend on.
	Settings decide.Settings
	// Proposals are what proposals take from the configuration. With the zero value
	// nothing is proposed.
	Proposals plan.Config
	// Texts are what a language model writes, and how.
	Texts draft.Settings
	// SecretFrom says where the triage process finds the password: "env:" and a
	// variable, or "file:" and an absolute path. Secret is the password itself,
	// encrypted. At most one of the two is set.
	SecretFrom string
	Secret     []byte
	Enabled    bool
	// Every is how often the account is read where nothing tells of changes.
	Every time.Duration
	// BackfillDays is how far back mail is read that was there before the account;
	// 0 is none.
	BackfillDays int
	// Version rises with every change.
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Connection is where an account is. Host to Auth are of an IMAP account, URL to
// Names of one behind an MCP server, Path of the other kinds.
type Connection struct {
	Host string `json:"host,omitzero"`
	// Port is 993 with TLS and 143 without, if it is 0.
	Port     int      `json:"port,omitzero"`
	User     string   `json:"user,omitzero"`
	Auth     Auth     `json:"auth,omitzero"`
	Security Security `json:"security,omitzero"`
	// URL is where the MCP server is, over streamable HTTP, or Command the program
	// that is one, with its arguments. Either is set.
	URL     string   `json:"url,omitzero"`
	Command []string `json:"command,omitempty"`
	// SecretName is the header in which the server gets the password, or the
	// variable in which the program does; empty is a bearer token, and TOKEN.
	SecretName string `json:"secret_name,omitzero"`
	// Server is the kind of MCP server, one of mcpmail.Servers; empty is the generic
	// one, whose names of tools, arguments and fields Names changes.
	Server string            `json:"server,omitzero"`
	Names  map[string]string `json:"names,omitempty"`
	// Path is an absolute path on the machine that triage runs on.
	Path string `json:"path,omitzero"`
	// Folders are those to read; empty is the inbox and the folder of sent mail.
	Folders []string `json:"folders,omitempty"`
	// TrustedHost is the authserv-id whose Authentication-Results are believed;
	// without one none are.
	TrustedHost string `json:"trusted_host,omitzero"`
	// MaxMessageBytes is the size over which a message is not read; 0 is 32 MiB.
	MaxMessageBytes int64 `json:"max_message_bytes,omitzero"`
}

// Proposes reports whether the account names a source to propose for.
func (a Account) Proposes() bool { return a.Proposals.Source != "" }

// SameServer reports whether two connections lead to the same server as the same
// user with the same protection, so that a password for one may be sent to the
// other.
func (c Connection) SameServer(d Connection) bool {
	return c.URL == d.URL && slices.Equal(c.Command, d.Command) && c.SecretName == d.SecretName && strings.EqualFold(c.Host, d.Host) && c.port() == d.port() && c.User == d.User && c.auth() == d.auth() && c.security() == d.security()
}
