package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/countersign-dev/countersign/client/wire"
)

// The paths of identities.
const (
	tokensPath     = "/api/v1/tokens"
	operatorsPath  = "/api/v1/operators"
	providersPath  = "/api/v1/identity-providers"
	mySessionsPath = "/api/v1/me/sessions"
)

// Me reads who the caller is.
func (c *Client) Me(ctx context.Context) (wire.Me, error) {
	return read[wire.Me](ctx, c, "/api/v1/me", nil)
}

// CreateLoginCode makes a code that opens one session in a browser, once, for the
// caller.
func (c *Client) CreateLoginCode(ctx context.Context) (wire.LoginCode, error) {
	return post[wire.LoginCode](ctx, c, "/api/v1/login-codes", nil)
}

// BrowserSessions lists the caller's sessions in browsers, newest first.
func (c *Client) BrowserSessions(ctx context.Context) ([]wire.BrowserSession, error) {
	return list[wire.BrowserSession](ctx, c, mySessionsPath, given("limit", "200"))
}

// EndBrowserSession ends one of the caller's sessions in browsers, everywhere
// within ten seconds.
func (c *Client) EndBrowserSession(ctx context.Context, id string) error {
	return c.tell(ctx, http.MethodDelete, mySessionsPath+"/"+url.PathEscape(id), nil, nil)
}

// Sessions lists the sessions of all people in browsers, newest first.
func (c *Client) Sessions(ctx context.Context) ([]wire.BrowserSession, error) {
	return list[wire.BrowserSession](ctx, c, operatorsPath+"/sessions", given("limit", "200"))
}

// EndSession ends a session of anybody in a browser, everywhere within ten
// seconds.
func (c *Client) EndSession(ctx context.Context, id string) error {
	return c.tell(ctx, http.MethodDelete, operatorsPath+"/sessions/"+url.PathEscape(id), nil, nil)
}

// Tokens lists the tenant's tokens, newest first; with all, revoked and
// expired ones too.
func (c *Client) Tokens(ctx context.Context, all bool) ([]wire.Token, error) {
	return list[wire.Token](ctx, c, tokensPath, given("limit", "200", "all", flag(all)))
}

// IssueToken makes a token.
func (c *Client) IssueToken(ctx context.Context, in wire.TokenInput) (wire.IssuedToken, error) {
	return post[wire.IssuedToken](ctx, c, tokensPath, in)
}

// RotateToken gives a token another secret.
func (c *Client) RotateToken(ctx context.Context, id string, in wire.Rotation) (wire.IssuedToken, error) {
	return post[wire.IssuedToken](ctx, c, tokensPath+"/"+url.PathEscape(id)+"/rotate", in)
}

// NarrowToken takes rights from a token.
func (c *Client) NarrowToken(ctx context.Context, id string, in wire.TokenNarrowing) (wire.Token, error) {
	return post[wire.Token](ctx, c, tokensPath+"/"+url.PathEscape(id)+"/narrow", in)
}

// RevokeToken ends the validity of a token, everywhere within ten seconds.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.tell(ctx, http.MethodDelete, tokensPath+"/"+url.PathEscape(id), nil, nil)
}

// Operators lists people by name.
func (c *Client) Operators(ctx context.Context) ([]wire.Operator, error) {
	return list[wire.Operator](ctx, c, operatorsPath, nil)
}

// AddOperator adds a person.
func (c *Client) AddOperator(ctx context.Context, in wire.OperatorInput) (wire.Operator, error) {
	return post[wire.Operator](ctx, c, operatorsPath, in)
}

// PutOperator replaces everything that can be set of a person.
func (c *Client) PutOperator(ctx context.Context, id string, in wire.OperatorInput) error {
	return c.tell(ctx, http.MethodPut, operatorsPath+"/"+url.PathEscape(id), nil, in)
}

// Providers lists the identity providers.
func (c *Client) Providers(ctx context.Context) ([]wire.Provider, error) {
	return list[wire.Provider](ctx, c, providersPath, nil)
}

// PutProvider makes or replaces an identity provider.
func (c *Client) PutProvider(ctx context.Context, id string, in wire.ProviderInput) error {
	return c.tell(ctx, http.MethodPut, providersPath+"/"+url.PathEscape(id), nil, in)
}

// DeleteProvider removes an identity provider.
func (c *Client) DeleteProvider(ctx context.Context, id string) error {
	return c.tell(ctx, http.MethodDelete, providersPath+"/"+url.PathEscape(id), nil, nil)
}
