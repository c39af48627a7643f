package identity

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/jackc/pgx/v5"
	"golang.org/x/oauth2"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// Login is the state of a login in progress, which the browser keeps until it
// returns. Its members are secrets of that browser.
type Login struct {
	Tenant   envelope.TenantID
	Provider string
	// State binds the response to the browser, Nonce the issuer's token to the
	// login, and Verifier the issuer's code to the browser that requested it
	// (PKCE).
	State, Nonce, Verifier string
}

// WebClient is the API as an issuer's client for logins in a browser.
type WebClient struct {
	// Redirect is the address to which the browser returns.
	Redirect string
	// Secret decrypts the client secret of a provider that has one.
	Secret func(tenant envelope.TenantID, provider string, encrypted []byte) ([]byte, error)
}

// errLogin is the error of a login that the issuer refused, or whose response is
// invalid. The cause is only logged: it may quote the request.
func errLogin(cause error) error {
	return fault.WrapCoded(cause, wire.CodeLoginRefused, fault.Denied, "the login was refused; try again, or ask your administrator")
}

// errNoLogin is the error of a provider without logins in a browser.
var errNoLogin = fault.New(fault.NotFound, "the provider has no web client's id, which logins in a browser need")

// LoginTenant returns the tenant with a name; without a name the only tenant.
// The id is zero if there is none.
func (a *Authenticator) LoginTenant(ctx context.Context, name string) (id envelope.TenantID, is string, err error) {
	err = postgres.InTx(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) (err error) {
		id, is, err = loginTenant(ctx, tx, name)
		return err
	})
	return id, is, err
}

// LoginProviders returns the name of the tenant that LoginTenant finds, and its
// providers with logins in a browser. For an unknown tenant it returns none.
func (a *Authenticator) LoginProviders(ctx context.Context, name string) (is string, found []Provider, err error) {
	id, is, err := a.LoginTenant(ctx, name)
	if err != nil || id == (envelope.TenantID{}) {
		return is, nil, err
	}
	all, err := postgres.InTxReturning(ctx, a.db, postgres.API(id), func(tx pgx.Tx) ([]Provider, error) { return Providers(ctx, tx, id) })
	return is, slices.DeleteFunc(all, func(p Provider) bool { return p.WebClientID == "" }), err
}

// BeginLogin begins a login at a provider of a tenant, and returns the address
// to which to send the browser. fault.NotFound means that the provider has no
// logins in a browser, fault.Busy that the issuer does not answer.
func (a *Authenticator) BeginLogin(ctx context.Context, tenant envelope.TenantID, provider string, client WebClient, now time.Time) (Login, string, error) {
	_, flow, err := a.flow(ctx, tenant, provider, client, now)
	if err != nil {
		return Login{}, "", err
	}
	random := oauth2.GenerateVerifier // 256 bits in base64url
	in := Login{Tenant: tenant, Provider: provider, State: random(), Nonce: random(), Verifier: random()}
	return in, flow.AuthCodeURL(in.State, oidc.Nonce(in.Nonce), oauth2.S256ChallengeOption(in.Verifier), oauth2.SetAuthURLParam("response_mode", "query")), nil
}

// flow returns a provider and its OAuth configuration.
func (a *Authenticator) flow(ctx context.Context, tenant envelope.TenantID, id string, client WebClient, now time.Time) (Provider, *oauth2.Config, error) {
	p, err := postgres.InTxReturning(ctx, a.db, postgres.API(tenant), func(tx pgx.Tx) (Provider, error) { return ProviderByID(ctx, tx, tenant, id) })
	if err != nil {
		return p, nil, err
	}
	endpoint, err := a.issuers.endpointOf(ctx, p.Issuer, now)
	if err != nil {
		return p, nil, err
	}
	if p.WebClientID == "" || endpoint.AuthURL == "" {
		return p, nil, errNoLogin
	}
	flow := &oauth2.Config{ClientID: p.WebClientID, Endpoint: endpoint, RedirectURL: client.Redirect, Scopes: []string{oidc.ScopeOpenID, "email", "profile"}}
	if len(p.WebClientSecret) == 0 {
		flow.Endpoint.AuthStyle = oauth2.AuthStyleInParams // a public client only names itself
		return p, flow, nil
	}
	secret, err := client.Secret(tenant, id, p.WebClientSecret)
	flow.ClientSecret = string(secret)
	return p, flow, err
}

// FinishLogin exchanges the code of a browser's return for a browser session.
// issuer is the issuer in the response; "" if none. The caller must have
// verified that the browser is the one that began the login. The error is
// fault.Denied if the issuer or the provider's rules do not allow the login. An
// empty code means that the issuer refused it.
func (a *Authenticator) FinishLogin(ctx context.Context, in Login, code, issuer string, client WebClient, from Visitor, now time.Time) (OpenedSession, error) {
	who, subject, err := a.identify(ctx, in, code, issuer, client, now)
	if err == nil && who.Role == "" {
		err = errNoRole
	}
	if err != nil {
		who.Tenant = in.Tenant
		return OpenedSession{}, a.refuse(ctx, refusal{who: who, provider: in.Provider, subject: subject, via: ViaOIDC, from: from}, err)
	}
	return a.openFor(ctx, holder{Principal: who}, ViaOIDC, from, now)
}

// identify returns the principal of a login at an issuer, and the issuer's
// subject if the issuer vouches for it.
func (a *Authenticator) identify(ctx context.Context, in Login, code, issuer string, client WebClient, now time.Time) (who Principal, subject string, err error) {
	p, flow, err := a.flow(ctx, in.Tenant, in.Provider, client, now)
	switch {
	case err != nil:
		return who, "", err
	case code == "":
		return who, "", errLogin(errors.New("the issuer refused the login"))
	case issuer != "" && issuer != p.Issuer:
		return who, "", errLogin(errors.New("the response came from another issuer"))
	}
	got, err := flow.Exchange(oidc.ClientContext(ctx, a.issuers.client), code, oauth2.VerifierOption(in.Verifier))
	if err != nil {
		return who, "", errLogin(exchangeError(err))
	}
	text, ok := got.Extra("id_token").(string)
	if !ok {
		return who, "", errLogin(errors.New("the issuer returned no ID token"))
	}
	// The token is for the web client, not the audience of other programs.
	p.Audience = p.WebClientID
	verified, err := a.verifyLogin(ctx, p, text, in.Nonce, now)
	if err != nil {
		return who, "", err
	}
	who, err = postgres.InTxReturning(ctx, a.db, postgres.API(in.Tenant), func(tx pgx.Tx) (Principal, error) {
		return logIn(ctx, tx, tenantProvider{p, in.Tenant}, verified)
	})
	return who, verified.subject, err
}

// verifyLogin returns the claims of an issuer's token, if the issuer signed it
// for this login.
func (a *Authenticator) verifyLogin(ctx context.Context, p Provider, text, nonce string, now time.Time) (*claims, error) {
	token, err := parseSigned(text)
	if err != nil {
		return nil, errLogin(err)
	}
	keys, err := a.issuers.keysFor(ctx, p.Issuer, token.header, now)
	if errors.Is(err, ErrToken) {
		return nil, errLogin(err)
	}
	if err != nil {
		return nil, err
	}
	if _, err := token.verify(ctx, &p, keys, now); err != nil {
		return nil, errLogin(err)
	}
	signed, _ := token.claims.all["nonce"].(string)
	if subtle.ConstantTimeCompare([]byte(signed), []byte(nonce)) != 1 {
		return nil, errLogin(errors.New("the issuer's token belongs to another login"))
	}
	return token.claims, nil
}

// exchangeError returns the reason why an issuer gave no token, without quoting
// its answer.
func exchangeError(err error) error {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response != nil {
		return fmt.Errorf("the issuer returned no token: status %d", e.Response.StatusCode)
	}
	return errors.New("the issuer does not answer")
}
