package wire

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Me is the caller with its rights.
type Me struct {
	TenantID string `json:"tenant_id"`
	Tenant   string `json:"tenant"`
	TokenGrant
	// TokenID is empty for a token that an OpenID Connect issuer signed.
	TokenID string `json:"token_id,omitzero"`
	Email   string `json:"email,omitzero"`
	// Operations are those of openapi.yaml that the caller may use.
	Operations []string `json:"operations"`
	// Session is the browser session that the caller shows; nil for a token.
	Session *SessionEnds `json:"session,omitempty"`
}

// SessionEnds are the times at which a browser session ends.
type SessionEnds struct {
	ID        string    `json:"session_id"`
	ExpiresAt time.Time `json:"expires_at"`
	// IdleAt is the time at which it ends without activity.
	IdleAt time.Time `json:"idle_at"`
}

// BrowserSession is a login in a browser.
type BrowserSession struct {
	ID string `json:"session_id"`
	// Via is oidc, code or token.
	Via       string    `json:"via"`
	CreatedAt time.Time `json:"created_at"`
	// UsedAt is the time of the last activity.
	UsedAt    time.Time `json:"used_at"`
	ExpiresAt time.Time `json:"expires_at"`
	IdleAt    time.Time `json:"idle_at"`
	// Address and Program are those of the browser at its login.
	Address string `json:"address"`
	Program string `json:"program"`
	// Current reports whether the request shows this session.
	Current bool `json:"current"`
	// Name, Role and Operator or Token are those of the person or the token that it
	// acts as; only in the list of all people.
	Name     string `json:"name,omitzero"`
	Role     string `json:"role,omitzero"`
	Operator string `json:"operator_id,omitzero"`
	Token    string `json:"token_id,omitzero"`
}

// LoginCode opens one browser session, once.
type LoginCode struct {
	Code string `json:"code"`
	// URL is the page's address with the code in its fragment.
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// ProgramRequest is a program's request for a login, as a person sees it before
// consenting.
type ProgramRequest struct {
	// Program is the name that the program gives itself.
	Program string `json:"program"`
	// VouchedBy is the host whose metadata document has the name; nil for a program
	// that registered itself.
	VouchedBy *string `json:"vouched_by"`
	// RedirectHost receives the code; Local reports whether that is a program on the
	// person's machine.
	RedirectHost string    `json:"redirect_host"`
	Local        bool      `json:"local"`
	Scopes       []string  `json:"scopes"`
	MayConsent   bool      `json:"may_consent"`
	WhyNot       string    `json:"why_not"`
	ExpiresAt    time.Time `json:"expires_at"`
}

// ConsentLocation is where a browser goes after a consent.
type ConsentLocation struct {
	Location string `json:"location"`
}

// LoginCodeHolder is the person whom a login code logs in.
type LoginCodeHolder struct {
	Name   string `json:"name"`
	Role   string `json:"role"`
	Tenant string `json:"tenant"`
}

// LoginOptions are the ways to log in to an organisation.
type LoginOptions struct {
	// Organisation is nil if it has to be named first.
	Organisation *string         `json:"organisation"`
	Providers    []LoginProvider `json:"providers"`
	IdleMinutes  int             `json:"idle_minutes"`
}

// LoginProvider is an issuer of OpenID Connect to log in at.
type LoginProvider struct {
	Name string `json:"name"`
	// Label is the text of the login button.
	Label    string `json:"label"`
	LoginURL string `json:"login_url"`
}

// TokenGrant is the owner and the rights of a token.
type TokenGrant struct {
	Name       string   `json:"name"`
	Role       string   `json:"role"`
	EmployeeID string   `json:"employee_id,omitzero"`
	SessionID  string   `json:"session_id,omitzero"`
	OperatorID string   `json:"operator_id,omitzero"`
	Scopes     []string `json:"scopes,omitempty"`
	Tools      []string `json:"tools,omitempty"`
	// Automations, Employees and Sessions are the names that proposals may use.
	Automations []string `json:"automations,omitempty"`
	Employees   []string `json:"employees,omitempty"`
	Sessions    []string `json:"sessions,omitempty"`
	// ExternalIDPrefix is the prefix that external ids must have.
	ExternalIDPrefix string `json:"external_id_prefix,omitzero"`
}

// Token is a token without its secret.
type Token struct {
	ID string `json:"token_id"`
	TokenGrant
	IssuedBy  envelope.Actor `json:"issued_by,omitzero"`
	CreatedAt time.Time      `json:"created_at"`
	ExpiresAt *time.Time     `json:"expires_at"`
	// LastUsedAt is exact to about half a minute; nil is never.
	LastUsedAt *time.Time `json:"last_used_at"`
	RotatedAt  *time.Time `json:"rotated_at,omitempty"`
	// PreviousUntil is the time at which the secret before the last rotation ends.
	PreviousUntil *time.Time `json:"previous_until,omitempty"`
	RevokedAt     *time.Time `json:"revoked_at,omitempty"`
}

// TokenInput is a token to issue.
type TokenInput struct {
	TokenGrant
	ExpiresIn envelope.Duration `json:"expires_in,omitzero"`
}

// TokenNarrowing holds the rights that are left to a token; zero fields stay as
// they are.
type TokenNarrowing struct {
	Scopes           []string          `json:"scopes,omitempty"`
	Tools            []string          `json:"tools,omitempty"`
	Automations      []string          `json:"automations,omitempty"`
	Employees        []string          `json:"employees,omitempty"`
	Sessions         []string          `json:"sessions,omitempty"`
	ExternalIDPrefix string            `json:"external_id_prefix,omitzero"`
	ExpiresIn        envelope.Duration `json:"expires_in,omitzero"`
}

// IssuedToken is a token with its secret, which is shown only once.
type IssuedToken struct {
	ID    string `json:"token_id"`
	Token string `json:"token"`
	TokenGrant
	ExpiresAt *time.Time `json:"expires_at"`
	// PreviousUntil is the time until which the secret before this one is still
	// valid.
	PreviousUntil *time.Time `json:"previous_until,omitempty"`
}

// OperatorInput holds the settings of an operator.
type OperatorInput struct {
	Name    string `json:"name"`
	Email   string `json:"email,omitzero"`
	Issuer  string `json:"issuer,omitzero"`
	Subject string `json:"subject,omitzero"`
	// RoleSet takes precedence over the role that logins give.
	RoleSet   string `json:"role_set,omitzero"`
	SlackTeam string `json:"slack_team,omitzero"`
	SlackUser string `json:"slack_user,omitzero"`
	Disabled  bool   `json:"disabled"`
}

// Operator is a person who decides or administers.
type Operator struct {
	ID string `json:"operator_id"`
	OperatorInput
	// Role is the current role; empty for none.
	Role       string     `json:"role,omitzero"`
	DisabledAt *time.Time `json:"disabled_at,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	LastSeenAt *time.Time `json:"last_seen_at"`
	ETag       string     `json:"etag,omitzero"`
}

// ProviderInput is an OpenID Connect issuer to trust.
type ProviderInput struct {
	ProviderFields
	// WebClientSecret is the secret of the web client. Nil keeps the stored one,
	// and "" is none.
	WebClientSecret *string `json:"web_client_secret,omitempty"`
}

// ProviderFields are the visible settings of an OpenID Connect issuer whose
// tokens are accepted.
type ProviderFields struct {
	Issuer         string            `json:"issuer"`
	Audience       string            `json:"audience,omitzero"`
	Clients        []string          `json:"clients,omitempty"`
	RoleClaim      string            `json:"role_claim,omitzero"`
	Roles          map[string]string `json:"roles,omitempty"`
	DefaultRole    string            `json:"default_role,omitzero"`
	AllowedDomains []string          `json:"allowed_domains,omitempty"`
	// Label is the text of the login button.
	Label string `json:"label,omitzero"`
	// WebClientID is its name of the API, where people log in in a browser.
	WebClientID string `json:"web_client_id,omitzero"`
}

// Provider is an identity provider.
type Provider struct {
	ID string `json:"provider_id"`
	ProviderFields
	HasWebClientSecret bool   `json:"has_web_client_secret,omitzero"`
	ETag               string `json:"etag,omitzero"`
}

// Rotation gives a token another secret. The old one stays valid for Overlap;
// an ExpiresIn of zero keeps the token's expiry.
type Rotation struct {
	Overlap   envelope.Duration `json:"overlap"`
	ExpiresIn envelope.Duration `json:"expires_in,omitzero"`
}
