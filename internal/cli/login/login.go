// Package login gets a person's token from an issuer of OpenID Connect on the
// person's own machine, through a browser, and keeps it there: by the
// authorization code flow with PKCE, as a public client, on a port of the
// loopback interface. It owns the file that tokens are kept in, one for each
// server that they are for, and their renewal. It refuses to send a token
// anywhere but to its issuer; that is for whoever asks for it.
package login

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/countersign-dev/countersign/internal/listen"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const (
	// answerFor bounds a request to the issuer.
	answerFor = 15 * time.Second
	// personFor bounds how long the person may take.
	personFor = 5 * time.Minute

	callbackPath = "/callback"
)

// Session is the result of a login. It hides its secrets from logs.
type Session struct {
	// Server is the address that the token is for.
	Server   string   `json:"server"`
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"client_id"`
	Scopes   []string `json:"scopes"`
	// Token is the token for the server, until ExpiresAt.
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
	// Refresh gets another token; empty if the issuer gave none.
	Refresh string `json:"refresh_token,omitzero"`
}

// String names the server and the issuer, and hides the secrets.
func (s Session) String() string { return "login at " + s.Issuer + " for " + s.Server }

// LogValue hides the secrets.
func (s Session) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Config holds the issuer and the client of a login. Issuer, ClientID and Show
// are required.
type Config struct {
	// Server is the address that the token is for.
	Server string
	// Issuer is the issuer's address, and ClientID the id of this command line
	// at the issuer: a public client.
	Issuer, ClientID string
	// Scopes are asked for; none means openid, email, profile and
	// offline_access.
	Scopes []string
	// Port is the port of the redirect, for issuers that must know it
	// beforehand; zero is any.
	Port int
	// Show shows the person the address to open. It must not block.
	Show func(address string)
}

// Begin lets a person log in and returns the session. It ends with ctx, and
// after five minutes.
func Begin(ctx context.Context, cfg Config) (Session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, personFor, errors.New("nobody logged in within five minutes"))
	defer cancel()
	provider, flow, err := discover(ctx, cfg.Issuer, cfg.ClientID)
	if err != nil {
		return Session{}, err
	}
	at, err := listen.Open(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.Port)), "--port")
	if err != nil {
		return Session{}, err
	}
	flow.RedirectURL = "http://" + at.Addr().String() + callbackPath
	flow.Scopes = cfg.Scopes
	if len(flow.Scopes) == 0 {
		flow.Scopes = []string{oidc.ScopeOpenID, "email", "profile", oidc.ScopeOfflineAccess}
	}
	random := oauth2.GenerateVerifier // 256 bits in base64url
	state, nonce, verifier := random(), random(), random()
	back := &callback{state: state, issuer: cfg.Issuer, came: make(chan answer, 1)}
	web := &http.Server{Handler: back, ReadHeaderTimeout: answerFor, ReadTimeout: answerFor, WriteTimeout: answerFor}
	served := make(chan error, 1)
	go func() { served <- web.Serve(at) }() // Begin waits for it
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = web.Shutdown(last) // the browser has its answer
		<-served
	}()
	// An issuer gives offline access only to who was asked.
	cfg.Show(flow.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("prompt", "consent")))
	select {
	case a := <-back.came:
		if a.err != nil {
			return Session{}, a.err
		}
		return redeem(ctx, cfg, provider, flow, a.code, nonce, verifier)
	case <-ctx.Done():
		return Session{}, context.Cause(ctx)
	}
}

// discover asks an issuer how to log in there.
func discover(ctx context.Context, issuer, client string) (*oidc.Provider, *oauth2.Config, error) {
	if err := identity.CheckIssuer(issuer); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(asked(ctx), answerFor)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return nil, nil, fmt.Errorf("the metadata of the issuer at %s has no login endpoints", issuer)
	}
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInParams
	return provider, &oauth2.Config{ClientID: client, Endpoint: endpoint}, nil
}

// issuerClient returns a client that goes where it is told, and waits for a
// bounded time.
func issuerClient() *http.Client {
	return &http.Client{Timeout: answerFor, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// asked has the libraries use issuerClient.
func asked(ctx context.Context) context.Context { return oidc.ClientContext(ctx, issuerClient()) }

// redeem trades the code for a token, and believes it only if it was made for
// this login.
func redeem(ctx context.Context, cfg Config, provider *oidc.Provider, flow *oauth2.Config, code, nonce, verifier string) (Session, error) {
	got, err := flow.Exchange(asked(ctx), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return Session{}, refused(err)
	}
	s, token, err := sessionOf(asked(ctx), provider, flow, got)
	if err != nil {
		return Session{}, err
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1 {
		return Session{}, errors.New("the issuer's token belongs to another login")
	}
	s.Server, s.Issuer = cfg.Server, cfg.Issuer
	return s, nil
}

// sessionOf reads and verifies the issuer's token response.
func sessionOf(ctx context.Context, provider *oidc.Provider, flow *oauth2.Config, got *oauth2.Token) (Session, *oidc.IDToken, error) {
	text, ok := got.Extra("id_token").(string)
	if !ok {
		return Session{}, nil, errNoToken
	}
	token, err := provider.Verifier(&oidc.Config{ClientID: flow.ClientID}).Verify(ctx, text)
	if err != nil {
		return Session{}, nil, errors.New("the issuer's token is not valid") // the cause quotes it
	}
	return Session{ClientID: flow.ClientID, Scopes: flow.Scopes, Token: text, ExpiresAt: token.Expiry.UTC(), Refresh: got.RefreshToken}, token, nil
}

// errNoToken is the error for an issuer that returned no ID token.
var errNoToken = errors.New("the issuer returned no ID token; check that the client has the scope openid")

// refused returns the error of an issuer that returned no token: its code, and
// none of its text.
func refused(err error) error {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("the issuer returned no token: %s", code(e.ErrorCode))
	}
	return errors.New("the issuer does not answer")
}

// code is one of OAuth's error codes, which are words of letters, digits and
// underscores.
func code(text string) string {
	const most = 60
	if text == "" || len(text) > most || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return "no reason"
	}
	return text
}

// answer is the query of the redirect from the browser.
type answer struct {
	code string
	err  error
}

// callback is where the browser comes back to.
type callback struct {
	state, issuer string
	// came takes the first answer; others are told that it is over.
	came chan answer
}

// ServeHTTP handles the redirect from the issuer.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	query := r.URL.Query()
	if r.URL.Path != callbackPath || r.Method != http.MethodGet || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(c.state)) != 1 {
		page(w, http.StatusBadRequest, "The command line is waiting for another login.")
		return
	}
	var a answer
	switch {
	case query.Get("iss") != "" && query.Get("iss") != c.issuer:
		a.err = errors.New("the response came from another issuer")
	case query.Get("error") != "":
		a.err = fmt.Errorf("the issuer refused the login: %s", code(query.Get("error")))
	case query.Get("code") == "":
		a.err = errors.New("the issuer answered without a code")
	default:
		a.code = query.Get("code")
	}
	select {
	case c.came <- a:
	default:
		page(w, http.StatusConflict, "This login has ended.")
		return
	}
	if a.err != nil {
		page(w, http.StatusForbidden, "Not logged in: "+a.err.Error()+".")
		return
	}
	page(w, http.StatusOK, "You can close this page and go back to the command line.")
}

func page(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><title>Countersign</title><p>%s</p>\n", html.EscapeString(text)) // the browser may have left
}

// renew gets another token for a session.
func renew(ctx context.Context, s Session) (Session, error) {
	provider, flow, err := discover(ctx, s.Issuer, s.ClientID)
	if err != nil {
		return Session{}, err
	}
	flow.Scopes = s.Scopes
	got, err := flow.TokenSource(asked(ctx), &oauth2.Token{RefreshToken: s.Refresh}).Token()
	if err != nil {
		return Session{}, refused(err)
	}
	next, _, err := sessionOf(asked(ctx), provider, flow, got)
	if err != nil {
		return Session{}, err
	}
	next.Server, next.Issuer = s.Server, s.Issuer
	next.Refresh = cmp.Or(next.Refresh, s.Refresh)
	return next, nil
}

// Revoke ends a session at the issuer, if the issuer offers that. The error is
// that it could not be reached, or refused.
func Revoke(ctx context.Context, s Session) error {
	if s.Refresh == "" {
		return nil
	}
	provider, flow, err := discover(ctx, s.Issuer, s.ClientID)
	if err != nil {
		return err
	}
	var at struct {
		Revocation string `json:"revocation_endpoint"`
	}
	if err := provider.Claims(&at); err != nil || at.Revocation == "" {
		return nil // the issuer offers no such endpoint
	}
	if identity.CheckIssuer(at.Revocation) != nil {
		return errors.New("the issuer's endpoint is neither https nor on this machine")
	}
	form := url.Values{"token": {s.Refresh}, "token_type_hint": {"refresh_token"}, "client_id": {flow.ClientID}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("revoke the login at the issuer: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := issuerClient().Do(r)
	if err != nil {
		return errors.New("the issuer does not answer")
	}
	defer func() { _ = got.Body.Close() }()
	if got.StatusCode != http.StatusOK {
		return fmt.Errorf("the issuer answers with status %d", got.StatusCode)
	}
	return nil
}
