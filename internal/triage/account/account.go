// Package account owns the mail accounts that triage reads: their settings and
// the checks of them, their rows, the password for reading, and the reader of
// an account. It schedules nothing and reads no mail.
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

// Kind is the kind of an account.
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

// Security is the protection of the connection to a server.
type Security string

// The protections. Plain only connects to the local machine.
const (
	TLS      Security = "tls"
	StartTLS Security = "starttls"
	Plain    Security = "plain"
)

// Auth is the method of authentication. The last two take an access token.
type Auth string

// The methods.
const (
	Password    Auth = "plain"
	OAuthBearer Auth = "oauthbearer"
	XOAuth2     Auth = "xoauth2"
)

// Defaults of an account.
const (
	DefaultEvery        = time.Minute
	DefaultBackfillDays = 30
)

// Account is a mail account that triage reads.
type Account struct {
	Tenant envelope.TenantID
	ID     uuid.UUID
	// Name is people's name for the account. It is unique within a tenant and
	// never changes.
	Name       string
	Kind       Kind
	Connection Connection
	// Settings are the settings for decisions.
	Settings decide.Settings
	// Proposals is the configuration of proposals. With the zero value nothing
	// is proposed.
	Proposals plan.Config
	// Texts are the settings for texts by a language model.
	Texts draft.Settings
	// SecretFrom is where the triage process finds the password: "env:" and a
	// variable, or "file:" and an absolute path. Secret is the encrypted
	// password itself. At most one of the two is set.
	SecretFrom string
	Secret     []byte
	Enabled    bool
	// Every is the interval of reading an account without notifications.
	Every time.Duration
	// BackfillDays is the age up to which existing mail is read; 0 means none.
	BackfillDays int
	// Operator is the person whose mail it is, who takes back alone what triage
	// did there; zero for none.
	Operator uuid.UUID
	// Version rises with every change.
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Connection is the location of an account. Host to Auth are for an IMAP
// account, URL to Names for one behind an MCP server, Path for the other kinds.
type Connection struct {
	Host string `json:"host,omitzero"`
	// Port is the port; 0 means 993 with TLS and 143 without.
	Port     int      `json:"port,omitzero"`
	User     string   `json:"user,omitzero"`
	Auth     Auth     `json:"auth,omitzero"`
	Security Security `json:"security,omitzero"`
	// URL is the address of an MCP server over streamable HTTP; Command is the
	// program of one, with its arguments. Exactly one is set.
	URL     string   `json:"url,omitzero"`
	Command []string `json:"command,omitempty"`
	// SecretName is the header or the environment variable for the password; ""
	// means a bearer token, or TOKEN.
	SecretName string `json:"secret_name,omitzero"`
	// Server is the kind of MCP server, one of mcpmail.Servers; "" means the
	// generic one, for which Names maps the names of tools, arguments and
	// fields.
	Server string            `json:"server,omitzero"`
	Names  map[string]string `json:"names,omitempty"`
	// Path is an absolute path on the machine of the triage process.
	Path string `json:"path,omitzero"`
	// Folders are the folders to read; empty means the inbox and the folder of
	// sent mail.
	Folders []string `json:"folders,omitempty"`
	// TrustedHost is the authserv-id of the trusted Authentication-Results; if
	// empty, none are trusted.
	TrustedHost string `json:"trusted_host,omitzero"`
	// MaxMessageBytes limits the size of a message that is read; 0 means 32
	// MiB.
	MaxMessageBytes int64 `json:"max_message_bytes,omitzero"`
}

// Proposes reports whether the account names a source for proposals.
func (a Account) Proposes() bool { return a.Proposals.Source != "" }

// SameServer reports whether two connections lead to the same server as the
// same user with the same protection, so that a password for one may be sent to
// the other.
func (c Connection) SameServer(d Connection) bool {
	return c.URL == d.URL && slices.Equal(c.Command, d.Command) && c.SecretName == d.SecretName && strings.EqualFold(c.Host, d.Host) && c.port() == d.port() && c.User == d.User && c.auth() == d.auth() && c.security() == d.security()
}
