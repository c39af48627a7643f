// Package identity owns who may talk to Countersign: tenants, the tokens that
// agents and people show, people themselves, and the issuers of OpenID Connect
// that vouch for them. A token is stored as a hash and seen once, by the
// person who asked for it. The package says who may make whom; it refuses to say what
// else a role may do, which stands with each route.
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
	// RoleViewer reads the actions of the tenant's agents, and changes nothing.
	RoleViewer Role = "viewer"
	// RoleOperator decides, and looks after what failed.
	RoleOperator Role = "operator"
	// RoleAdmin also sets up sources, policy and tokens.
	RoleAdmin Role = "admin"
	// RoleOwner also makes owners and administrators.
	RoleOwner Role = "owner"
)

// roles are all roles, in the order of their rank.
var roles = [...]Role{RoleAgent, RoleViewer, RoleOperator, RoleAdmin, RoleOwner}

// Valid reports whether r is one of the constants.
func (r Role) Valid() bool { return slices.Contains(roles[:], r) }

// rank returns the order of the roles of people, from 1. It is 0 for an agent
// and for no role.
func (r Role) rank() int { return max(0, slices.Index(roles[:], r)) }

// atMost returns the role of a token whose operator has the role person: the
// lower of the two. An agent stays an agent under any operator.
func (r Role) atMost(person Role) Role {
	if person.rank() < r.rank() {
		return person
	}
	return r
}

// ErrToken reports whether a token is malformed, unknown, expired or revoked. Which
// of them is not said.
var ErrToken = errors.New("the token is not valid")

// TokenID identifies a token without being one.
type TokenID uuid.UUID

// String returns the 36 characters of the usual form, in lower case.
func (id TokenID) String() string { return uuid.UUID(id).String() }

// MarshalText returns the same as String and never an error.
func (id TokenID) MarshalText() ([]byte, error) { return uuid.UUID(id).MarshalText() }

// Principal is the holder of a token that was shown.
type Principal struct {
	Token  TokenID
	Tenant envelope.TenantID
	Name   string
	Role   Role
	// Employee and Session bind the principal's proposals; they are zero for
	// those who are bound to none. An agent always has a session.
	Employee envelope.EmployeeID
	Session  string
	// Operator is the person behind it, the same for all tokens of the person; zero
	// where nobody said who that is.
	Operator uuid.UUID
	// Scopes are the rights that it is narrowed to; nil is all that the role
	// may.
	Scopes []Scope
	// Tools are the patterns of the tools that it may see and use; nil is all.
	Tools []string
	// Names are the automations, employees and sessions that its proposals may
	// name.
	Names Names
	// Maker is the person who made the token, and whom it stands for if it has
	// no operator; zero for none.
	Maker uuid.UUID
	// Browser is the browser session that was shown in place of a token; zero for
	// none.
	Browser BrowserSession
}

// Equal reports whether two principals are the same and have the same rights, by
// any proof.
func (p Principal) Equal(q Principal) bool {
	return p.Token == q.Token && p.Tenant == q.Tenant && p.Name == q.Name && p.Role == q.Role && p.Employee == q.Employee &&
		p.Session == q.Session && p.Operator == q.Operator &&
		slices.Equal(p.Scopes, q.Scopes) && (p.Scopes == nil) == (q.Scopes == nil) &&
		slices.Equal(p.Tools, q.Tools) && (p.Tools == nil) == (q.Tools == nil) &&
		slices.Equal(p.Names.Automations, q.Names.Automations) && slices.Equal(p.Names.Employees, q.Names.Employees) &&
		slices.Equal(p.Names.Sessions, q.Names.Sessions) && p.Names.ExternalIDPrefix == q.Names.ExternalIDPrefix && p.Maker == q.Maker
}

// Person identifies the person behind a principal, whom votes and grants count
// for: the operator of the token, or else the person who made it, so that
// nobody becomes another person by making a token. An agent, and a token that
// was made on the database for no operator, stands for itself.
func (p Principal) Person() uuid.UUID {
	switch {
	case p.Operator != uuid.Nil:
		return p.Operator
	case p.Maker != uuid.Nil && p.Role != RoleAgent:
		return p.Maker
	}
	return uuid.UUID(p.Token)
}

// Actor returns the principal as the record names it.
func (p Principal) Actor() envelope.Actor {
	return envelope.NewActor(p.Name, uuid.UUID(p.Token), p.Operator)
}

// Token is the text that its holder shows: cs_, the role, and 256 random bits
// in base64url. The secrets of browser sessions and login codes have another word
// in place of the role, and are no tokens. It hides itself from logs; Text reveals it.
type Token struct {
	text string
}

const (
	tokenPrefix = "cs_"
	tokenBytes  = 32
)

func newToken(role Role) Token { return newSecret(string(role)) }

// newSecret returns a secret whose text shows its purpose.
func newSecret(kind string) Token {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // never fails: it ends the process rather than give less
	return Token{tokenPrefix + kind + "_" + base64.RawURLEncoding.EncodeToString(secret)}
}

// parseToken refuses what cannot be a token, before anybody is asked.
func parseToken(text string) (Token, error) {
	return parseSecret(text, func(kind string) bool { return Role(kind).Valid() })
}

// parseSecret rejects texts that are no secret of a kind.
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

// Text returns the token as its holder shows it.
func (t Token) Text() string { return t.text }

// String hides the token.
func (Token) String() string { return "[REDACTED]" }

// LogValue hides the token.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// hash is the stored form of a token.
func (t Token) hash() [sha256.Size]byte { return sha256.Sum256([]byte(t.text)) }

// Scope is a right of the API that a token can be narrowed to. It never gives
// more than the holder's role: a route asks for both.
type Scope string

// The scopes. A new route takes the one that fits; a new one is added only for
// a right that is useful on its own.
const (
	// ActionsPropose submits actions, and takes back those of one's own.
	ActionsPropose Scope = "actions:propose"
	// ActionsRead sees actions, what became of them, and events.
	ActionsRead Scope = "actions:read"
	// ApprovalsDecide approves, denies and edits what waits for a person.
	ApprovalsDecide Scope = "approvals:decide"
	// DeadLettersRead sees dead letters.
	DeadLettersRead Scope = "dead_letters:read"
	// DeadLettersManage replays, discards and resolves them.
	DeadLettersManage Scope = "dead_letters:manage"
	// CatalogRead sees sources and tools.
	CatalogRead Scope = "catalog:read"
	// CatalogWrite sets sources and tools up, and accepts definitions.
	CatalogWrite Scope = "catalog:write"
	// PolicyRead sees modes, rules, grants and preferences, and asks why.
	PolicyRead Scope = "policy:read"
	// PolicyWrite changes them.
	PolicyWrite Scope = "policy:write"
	// LimitsRead sees buckets, quiet hours, employees, pauses and settings.
	LimitsRead Scope = "limits:read"
	// LimitsWrite changes them, except pauses.
	LimitsWrite Scope = "limits:write"
	// PausesWrite stops the fleet, in part or whole, and lets it go on.
	PausesWrite Scope = "pauses:write"
	// ContactsRead sees who must not be contacted.
	ContactsRead Scope = "contacts:read"
	// ContactsWrite changes who must not be.
	ContactsWrite Scope = "contacts:write"
	// SubscriptionsRead sees the subscriptions to events.
	SubscriptionsRead Scope = "subscriptions:read"
	// SubscriptionsWrite sets subscriptions up.
	SubscriptionsWrite Scope = "subscriptions:write"
	// AuditRead reads and verifies the record of everything.
	AuditRead Scope = "audit:read"
	// AuditWrite sets how long the record is kept, and notes its head.
	AuditWrite Scope = "audit:write"
	// TokensManage lists, makes, rotates and revokes tokens.
	TokensManage Scope = "tokens:manage"
	// OperatorsManage sets up people, and where they log in.
	OperatorsManage Scope = "operators:manage"
	// TriageRead sees which mail accounts triage reads, and when.
	TriageRead Scope = "triage:read"
	// TriageManage sets accounts up and asks for runs.
	TriageManage Scope = "triage:manage"
	// MailRead sees text of mails, and corrects decisions about them.
	MailRead Scope = "mail:read"
)

// Scopes returns all scopes, in the order of their names.
func Scopes() []Scope {
	return []Scope{
		ActionsPropose, ActionsRead, ApprovalsDecide, AuditRead, AuditWrite, CatalogRead, CatalogWrite,
		ContactsRead, ContactsWrite, DeadLettersManage, DeadLettersRead, LimitsRead, LimitsWrite, MailRead, OperatorsManage,
		PausesWrite, PolicyRead, PolicyWrite, SubscriptionsRead, SubscriptionsWrite, TokensManage, TriageManage, TriageRead,
	}
}

// Valid reports whether s is one of the constants.
func (s Scope) Valid() bool { return slices.Contains(Scopes(), s) }

// Has reports whether a principal is not narrowed to other scopes than s. It says
// nothing about the role, which a route asks for as well.
func (p Principal) Has(s Scope) bool { return p.Scopes == nil || slices.Contains(p.Scopes, s) }

// MayLoosen reports whether a principal may loosen what policy and limits hold:
// administrators and owners may, with the scope policy:write. All others can
// only make settings stricter.
func (p Principal) MayLoosen() bool {
	return (p.Role == RoleAdmin || p.Role == RoleOwner) && p.Has(PolicyWrite)
}

// checkScopes refuses scopes that are none, and a list that is empty: nobody
// could tell it from no list.
func checkScopes(all []Scope) error {
	if all != nil && len(all) == 0 {
		return fault.New(fault.Invalid, "scopes name at least one right; leave them out for all that the role may")
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
