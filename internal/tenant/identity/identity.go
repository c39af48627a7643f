// Package identity owns the identities that may use Countersign: tenants, the
// tokens of agents and people, people themselves, and the OpenID Connect issuers
// that vouch for them. A token is stored as a hash and shown once, to its
// requester. The package decides who may create which identity. Each route
// decides about the other rights of a role.
package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Role is the role of a token's holder in its tenant.
type Role string

// The roles.
const (
	// RoleAgent proposes, and sees the actions of its own session.
	RoleAgent Role = "agent"
	// RoleViewer reads the actions of the tenant's agents and changes nothing.
	RoleViewer Role = "viewer"
	// RoleOperator decides, and handles failures.
	RoleOperator Role = "operator"
	// RoleAdmin also configures sources, policy and tokens.
	RoleAdmin Role = "admin"
	// RoleOwner also creates owners and administrators.
	RoleOwner Role = "owner"
)

// roles are all roles, ordered by rank.
var roles = [...]Role{RoleAgent, RoleViewer, RoleOperator, RoleAdmin, RoleOwner}

// Valid reports whether r is one of the constants.
func (r Role) Valid() bool { return slices.Contains(roles[:], r) }

// rank returns the rank of a person's role, from 1. It is 0 for an agent and for
// no role.
func (r Role) rank() int { return max(0, slices.Index(roles[:], r)) }

// atMost returns the role of a token whose operator has the role person: the
// lower of the two. An agent remains an agent under any operator.
func (r Role) atMost(person Role) Role {
	if person.rank() < r.rank() {
		return person
	}
	return r
}

// ErrToken means that a token is malformed, unknown, expired or revoked, without
// distinction.
var ErrToken = errors.New("the token is not valid")

// TokenID identifies a token. It is not a secret.
type TokenID uuid.UUID

// String returns the id in the usual form of 36 characters, in lower case.
func (id TokenID) String() string { return uuid.UUID(id).String() }

// MarshalText returns the same as String and never an error.
func (id TokenID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// Principal is the holder of an authenticated token.
type Principal struct {
	Token  TokenID
	Tenant envelope.TenantID
	Name   string
	Role   Role
	// Employee and Session bind the principal's proposals; they are zero if
	// unbound. An agent always has a session.
	Employee envelope.EmployeeID
	Session  string
	// Operator is the person behind the token, the same for all tokens of the
	// person; zero if unknown.
	Operator uuid.UUID
	// Scopes restrict the rights; nil means all rights of the role.
	Scopes []Scope
	// Tools are the patterns of visible and available tools; nil means all.
	Tools []string
	// Names are the automations, employees and sessions that its proposals may
	// name.
	Names Names
	// Maker is the person who created the token, and who counts as the person
	// behind it if it has no operator; zero if none.
	Maker uuid.UUID
	// Resource is the address at which alone the token is accepted; empty for all of
	// the API.
	Resource string
	// Browser is the browser session that was used in place of a token; zero if
	// none.
	Browser BrowserSession
}

// Equal reports whether two principals are the same and have the same rights, by
// any credential.
func (p Principal) Equal(q Principal) bool {
	return p.Token == q.Token && p.Tenant == q.Tenant && p.Name == q.Name && p.Role == q.Role && p.Employee == q.Employee &&
		p.Session == q.Session && p.Operator == q.Operator &&
		slices.Equal(p.Scopes, q.Scopes) && (p.Scopes == nil) == (q.Scopes == nil) &&
		slices.Equal(p.Tools, q.Tools) && (p.Tools == nil) == (q.Tools == nil) &&
		slices.Equal(p.Names.Automations, q.Names.Automations) && slices.Equal(p.Names.Employees, q.Names.Employees) &&
		slices.Equal(p.Names.Sessions, q.Names.Sessions) && p.Names.ExternalIDPrefix == q.Names.ExternalIDPrefix && p.Maker == q.Maker && p.Resource == q.Resource
}

// Person identifies the person behind a principal, for votes and grants: the
// operator of the token, or else the person who created it, so that nobody
// becomes another person by creating a token. An agent, and a token that was
// created on the database without an operator, counts as a person of its own.
func (p Principal) Person() uuid.UUID {
	switch {
	case p.Operator != uuid.Nil:
		return p.Operator
	case p.Maker != uuid.Nil && p.Role != RoleAgent:
		return p.Maker
	}
	return uuid.UUID(p.Token)
}

// Actor returns the name of the principal in the audit log.
func (p Principal) Actor() envelope.Actor {
	return envelope.NewActor(p.Name, uuid.UUID(p.Token), p.Operator)
}

// Token is the text of a token: cs_, the role, and 256 random bits in base64url.
// Secrets of browser sessions and login codes have another word in place of the
// role and are not valid as tokens. It is hidden in logs; Text returns it.
type Token struct {
	text string
}

const (
	tokenPrefix = "cs_"
	tokenBytes  = 32
)

func newToken(role Role) Token { return newSecret(string(role)) }

// newSecret returns a secret whose text contains its kind.
func newSecret(kind string) Token {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // never fails: it ends the process rather than give less
	return Token{tokenPrefix + kind + "_" + base64.RawURLEncoding.EncodeToString(secret)}
}

// parseToken rejects texts that cannot be a token, before any query.
func parseToken(text string) (Token, error) {
	return parseSecret(text, func(kind string) bool { return Role(kind).Valid() })
}

// parseSecret rejects texts that are not a secret of a kind.
func parseSecret(text string, is func(kind string) bool) (Token, error) {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	kind, secret, found := strings.Cut(rest, "_")
	if !ok || !found || !is(kind) {
		return Token{}, ErrToken
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	if err != nil || len(raw) != tokenBytes {
		return Token{}, ErrToken
	}
	return Token{text}, nil
}

// Text returns the text of the token.
func (t Token) Text() string { return t.text }

// String hides the token.
func (Token) String() string { return "[REDACTED]" }

// LogValue hides the token.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// hash returns the stored form of a token.
func (t Token) hash() [sha256.Size]byte { return sha256.Sum256([]byte(t.text)) }

// Scope is a right of the API to which a token can be restricted. It never
// extends the holder's role: a route requires both.
type Scope string

// The scopes. A new route uses an existing one if possible; a new one is added
// only for a right that is useful on its own.
const (
	// ActionsPropose submits actions and takes back own ones.
	ActionsPropose Scope = "actions:propose"
	// ActionsRead reads actions, their outcomes, and events.
	ActionsRead Scope = "actions:read"
	// ApprovalsDecide approves, denies and edits actions that wait for a person.
	ApprovalsDecide Scope = "approvals:decide"
	// DeadLettersRead reads dead letters.
	DeadLettersRead Scope = "dead_letters:read"
	// DeadLettersManage replays, discards and resolves them.
	DeadLettersManage Scope = "dead_letters:manage"
	// CatalogRead reads sources and tools.
	CatalogRead Scope = "catalog:read"
	// CatalogWrite configures sources and tools, and accepts definitions.
	CatalogWrite Scope = "catalog:write"
	// PolicyRead reads modes, rules, grants and preferences, and explains
	// decisions.
	PolicyRead Scope = "policy:read"
	// PolicyWrite changes them.
	PolicyWrite Scope = "policy:write"
	// LimitsRead reads buckets, quiet hours, employees, pauses and settings.
	LimitsRead Scope = "limits:read"
	// LimitsWrite changes them, except pauses.
	LimitsWrite Scope = "limits:write"
	// PausesWrite pauses and resumes the tenant's actions, in part or whole.
	PausesWrite Scope = "pauses:write"
	// ContactsRead reads the do-not-contact list.
	ContactsRead Scope = "contacts:read"
	// ContactsWrite changes the do-not-contact list.
	ContactsWrite Scope = "contacts:write"
	// SubscriptionsRead reads the subscriptions to events.
	SubscriptionsRead Scope = "subscriptions:read"
	// SubscriptionsWrite configures subscriptions.
	SubscriptionsWrite Scope = "subscriptions:write"
	// AuditRead reads and verifies the audit log.
	AuditRead Scope = "audit:read"
	// AuditWrite sets the retention of the audit log, and notes its head.
	AuditWrite Scope = "audit:write"
	// DatabaseRecover opens a database that is held.
	DatabaseRecover Scope = "database:recover"
	// TokensManage lists, creates, rotates and revokes tokens.
	TokensManage Scope = "tokens:manage"
	// OperatorsManage configures people and login providers.
	OperatorsManage Scope = "operators:manage"
	// TriageRead reads the mail accounts of triage and their schedules.
	TriageRead Scope = "triage:read"
	// TriageManage configures accounts and requests runs.
	TriageManage Scope = "triage:manage"
	// MailRead reads texts of mails, and corrects decisions about them.
	MailRead Scope = "mail:read"
)

// Scopes returns all scopes, ordered by name.
func Scopes() []Scope {
	return []Scope{
		ActionsPropose, ActionsRead, ApprovalsDecide, AuditRead, AuditWrite, CatalogRead, CatalogWrite,
		ContactsRead, ContactsWrite, DatabaseRecover, DeadLettersManage, DeadLettersRead, LimitsRead, LimitsWrite, MailRead, OperatorsManage,
		PausesWrite, PolicyRead, PolicyWrite, SubscriptionsRead, SubscriptionsWrite, TokensManage, TriageManage, TriageRead,
	}
}

// Valid reports whether s is one of the constants.
func (s Scope) Valid() bool { return slices.Contains(Scopes(), s) }

// Has reports whether a principal has a scope, or no restriction to scopes. It
// is independent of the role, which a route also checks.
func (p Principal) Has(s Scope) bool { return p.Scopes == nil || slices.Contains(p.Scopes, s) }

// MayLoosen reports whether a principal may loosen policy and limits:
// administrators and owners with the scope policy:write. All others can only
// make settings stricter.
func (p Principal) MayLoosen() bool {
	return (p.Role == RoleAdmin || p.Role == RoleOwner) && p.Has(PolicyWrite)
}

// checkScopes rejects unknown scopes, and an empty list, which could be mistaken
// for no list.
func checkScopes(all []Scope) error {
	if all != nil && len(all) == 0 {
		return fault.New(fault.Invalid, "scopes must name at least one right; omit them for all that the role may do")
	}
	for i, s := range all {
		if !s.Valid() {
			return fault.New(fault.Invalid, "scope %d is unknown", i+1)
		}
		if slices.Contains(all[:i], s) {
			return fault.New(fault.Invalid, "scope %d is named twice", i+1)
		}
	}
	return nil
}
