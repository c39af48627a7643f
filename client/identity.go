package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// The paths of identities.
const (
	mePath        = "/api/v1/me"
	tokensPath    = "/api/v1/tokens"
	operatorsPath = "/api/v1/operators"
	providersPath = "/api/v1/identity-providers"
)

// Me is who the caller is.
type Me struct {
	TenantID string `json:"tenant_id"`
	Tenant   string `json:"tenant"`
	Name     string `json:"name"`
	Role     string `json:"role"`
	// TokenID is empty for what an issuer of OpenID Connect signed.
	TokenID    string   `json:"token_id,omitzero"`
	OperatorID string   `json:"operator_id,omitzero"`
	Email      string   `json:"email,omitzero"`
	EmployeeID string   `json:"employee_id,omitzero"`
	SessionID  string   `json:"session_id,omitzero"`
	Scopes     []string `json:"scopes,omitempty"`
	Tools      []string `json:"tools,omitempty"`
	// Operations are those of openapi.yaml that the caller may use.
	Operations []string `json:"operations"`
}

// Me asks who the caller is.
func (c *Client) Me(ctx context.Context) (Me, error) {
	var m Me
	_, err := c.do(ctx, request{method: http.MethodGet, path: mePath}, &m)
	return m, err
}

// Token is what is known of a token, without its secret.
type Token struct {
	ID         string     `json:"token_id"`
	Name       string     `json:"name"`
	Role       string     `json:"role"`
	EmployeeID string     `json:"employee_id,omitzero"`
	SessionID  string     `json:"session_id,omitzero"`
	OperatorID string     `json:"operator_id,omitzero"`
	Scopes     []string   `json:"scopes,omitempty"`
	Tools      []string   `json:"tools,omitempty"`
	IssuedBy   string     `json:"issued_by,omitzero"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	// LastUsedAt is right to about half a minute; nil is never.
	LastUsedAt *time.Time `json:"last_used_at"`
	RotatedAt  *time.Time `json:"rotated_at,omitempty"`
	// PreviousUntil is when the secret before the last rotation ends.
	PreviousUntil *time.Time `json:"previous_until,omitempty"`
	RevokedAt     *time.Time `json:"revoked_at,omitempty"`
}

// Tokens lists the tenant's tokens, newest first; with all also those that are
// over.
func (c *Client) Tokens(ctx context.Context, all bool) ([]Token, error) {
	query := url.Values{"limit": {"200"}}
	if all {
		query.Set("all", "true")
	}
	var tokens []Token
	for {
		var page struct {
			Items      []Token `json:"items"`
			NextCursor string  `json:"next_cursor"`
		}
		if _, err := c.do(ctx, request{method: http.MethodGet, path: tokensPath, query: query}, &page); err != nil {
			return nil, err
		}
		tokens = append(tokens, page.Items...)
		if page.NextCursor == "" {
			return tokens, nil
		}
		query.Set("cursor", page.NextCursor)
	}
}

// TokenInput is what a new token is to allow.
type TokenInput struct {
	Name       string            `json:"name"`
	Role       string            `json:"role"`
	EmployeeID string            `json:"employee_id,omitzero"`
	SessionID  string            `json:"session_id,omitzero"`
	OperatorID string            `json:"operator_id,omitzero"`
	Scopes     []string          `json:"scopes,omitempty"`
	Tools      []string          `json:"tools,omitempty"`
	ExpiresIn  envelope.Duration `json:"expires_in,omitzero"`
}

// IssuedToken is a token at the one moment at which it is shown.
type IssuedToken struct {
	ID         string     `json:"token_id"`
	Token      string     `json:"token"`
	Name       string     `json:"name"`
	Role       string     `json:"role"`
	EmployeeID string     `json:"employee_id,omitzero"`
	SessionID  string     `json:"session_id,omitzero"`
	OperatorID string     `json:"operator_id,omitzero"`
	Scopes     []string   `json:"scopes,omitempty"`
	Tools      []string   `json:"tools,omitempty"`
	ExpiresAt  *time.Time `json:"expires_at"`
	// PreviousUntil is how long the secret before this one is still valid.
	PreviousUntil *time.Time `json:"previous_until,omitempty"`
}

// IssueToken makes a token.
func (c *Client) IssueToken(ctx context.Context, in TokenInput) (IssuedToken, error) {
	var made IssuedToken
	_, err := c.do(ctx, request{method: http.MethodPost, path: tokensPath, in: in}, &made)
	return made, err
}

// RotateToken gives a token another secret. The old one stays valid for the
// overlap; a ttl of zero leaves the token's end as it is.
func (c *Client) RotateToken(ctx context.Context, id string, overlap, ttl time.Duration) (IssuedToken, error) {
	in := struct {
		Overlap envelope.Duration `json:"overlap"`
		TTL     envelope.Duration `json:"expires_in,omitzero"`
	}{envelope.Duration(overlap), envelope.Duration(ttl)}
	var made IssuedToken
	_, err := c.do(ctx, request{method: http.MethodPost, path: tokensPath + "/" + url.PathEscape(id) + "/rotate", in: in}, &made)
	return made, err
}

// RevokeToken ends a token's validity.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.tell(ctx, http.MethodDelete, tokensPath+"/"+url.PathEscape(id), nil, nil)
}

// OperatorInput is what can be set of a person.
type OperatorInput struct {
	Name    string `json:"name"`
	Email   string `json:"email,omitzero"`
	Issuer  string `json:"issuer,omitzero"`
	Subject string `json:"subject,omitzero"`
	// RoleSet goes before what logins make of the person.
	RoleSet   string `json:"role_set,omitzero"`
	SlackTeam string `json:"slack_team,omitzero"`
	SlackUser string `json:"slack_user,omitzero"`
	Disabled  bool   `json:"disabled,omitzero"`
}

// Operator is a person.
type Operator struct {
	ID string `json:"operator_id"`
	OperatorInput
	// Role is what the person is now; empty if nothing.
	Role       string     `json:"role"`
	DisabledAt *time.Time `json:"disabled_at,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	LastSeenAt *time.Time `json:"last_seen_at"`
}

// Operators lists people by name.
func (c *Client) Operators(ctx context.Context) ([]Operator, error) {
	return listOf[Operator](ctx, c, operatorsPath)
}

// AddOperator adds a person.
func (c *Client) AddOperator(ctx context.Context, in OperatorInput) (Operator, error) {
	var made Operator
	_, err := c.do(ctx, request{method: http.MethodPost, path: operatorsPath, in: in}, &made)
	return made, err
}

// PutOperator sets everything that can be set of a person.
func (c *Client) PutOperator(ctx context.Context, id string, in OperatorInput) error {
	return c.tell(ctx, http.MethodPut, operatorsPath+"/"+url.PathEscape(id), nil, in)
}

// ProviderInput is an issuer of OpenID Connect whose signed tokens are to be
// taken.
type ProviderInput struct {
	Issuer         string            `json:"issuer"`
	Audience       string            `json:"audience"`
	Clients        []string          `json:"clients,omitempty"`
	RoleClaim      string            `json:"role_claim,omitzero"`
	Roles          map[string]string `json:"roles,omitempty"`
	DefaultRole    string            `json:"default_role,omitzero"`
	AllowedDomains []string          `json:"allowed_domains,omitempty"`
}

// Provider is one whose tokens are taken.
type Provider struct {
	ID string `json:"provider_id"`
	ProviderInput
}

// Providers lists whose signed tokens are taken.
func (c *Client) Providers(ctx context.Context) ([]Provider, error) {
	return listOf[Provider](ctx, c, providersPath)
}

// PutProvider has an issuer's tokens taken.
func (c *Client) PutProvider(ctx context.Context, id string, in ProviderInput) error {
	return c.tell(ctx, http.MethodPut, providersPath+"/"+url.PathEscape(id), nil, in)
}

// DeleteProvider has an issuer's tokens taken no more.
func (c *Client) DeleteProvider(ctx context.Context, id string) error {
	return c.tell(ctx, http.MethodDelete, providersPath+"/"+url.PathEscape(id), nil, nil)
}
