// Package oauth is the client of the authorization servers of sources (OAuth 2.1):
// discovery from a source's URL (RFC 9728, RFC 8414, OpenID Connect), registration
// (RFC 7591), authorization requests (RFC 7636, 8707, 9207), and requests for
// tokens, also for devices (RFC 8628). It stores nothing, and sends tokens to the
// server that issued them alone. Text of servers is never part of its errors.
package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
)

const (
	// requestTimeout bounds one request, maxBody the body of its answer.
	requestTimeout = 10 * time.Second
	maxBody        = 256 << 10
	// maxURL and maxToken bound texts of servers, in bytes.
	maxURL   = 2000
	maxToken = 16 << 10

	// refreshScope is the scope that asks for a refresh token.
	refreshScope = "offline_access"
)

// Client sends the requests of a login. It is safe for concurrent use.
type Client struct {
	http *http.Client
}

// New returns a Client that reaches the public internet and networks.
func New(networks []netip.Prefix) *Client {
	guard := safehttp.Guard{Networks: networks}
	return &Client{safehttp.NewClient(safehttp.LimitBodies(guard.Transport(), maxBody), requestTimeout)}
}

// Server is the authorization server of a source, and the parameters of requests to
// it. The fields are part of stored logins.
type Server struct {
	Issuer string `json:"issuer"`
	// Resource is the audience of tokens (RFC 8707), empty for a mail server, and Scope
	// the scopes to ask for.
	Resource string `json:"resource"`
	Scope    string `json:"scope,omitzero"`
	// The endpoints. Only TokenURL is never empty.
	AuthorizeURL string `json:"authorize_url,omitzero"`
	TokenURL     string `json:"token_url"`
	RegisterURL  string `json:"register_url,omitzero"`
	DeviceURL    string `json:"device_url,omitzero"`
	RevokeURL    string `json:"revoke_url,omitzero"`
	// Methods are the ways in which clients may prove their secret.
	Methods []string `json:"methods,omitzero"`
	// Documents reports whether a client id may be the address of a metadata document,
	// NamesIssuer whether answers name the issuer (RFC 9207).
	Documents   bool `json:"documents,omitzero"`
	NamesIssuer bool `json:"names_issuer,omitzero"`
	// Offline asks for a refresh token in the way of Google.
	Offline bool `json:"offline,omitzero"`
}

// Check returns an error unless the endpoints of a server that a person configured can
// be used.
func (s Server) Check() error {
	for _, at := range []string{s.Issuer, s.AuthorizeURL, s.TokenURL, s.DeviceURL} {
		if at != "" && !protected(at) {
			return fault.New(fault.Invalid, "an address of the authorization server must have https, or be on this machine")
		}
	}
	if s.Issuer == "" || s.TokenURL == "" || s.AuthorizeURL == "" && s.DeviceURL == "" {
		return fault.New(fault.Invalid, "the authorization server needs an issuer, a token_url, and an authorize_url or a device_url")
	}
	return nil
}

// AuthorizationURL returns the address to which a person's browser is sent.
func (s Server) AuthorizationURL(client Registration, state, verifier string) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {client.ID}, "redirect_uri": {client.RedirectURI}, "state": {state},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}, "code_challenge_method": {"S256"},
	}
	if s.Scope != "" {
		q.Set("scope", s.Scope)
	}
	if s.Resource != "" {
		q.Set("resource", s.Resource)
	}
	if slices.Contains(strings.Fields(s.Scope), refreshScope) || s.Resource == "" {
		q.Set("prompt", "consent") // without it, servers of OpenID Connect ignore the scope
	}
	if s.Offline {
		q.Set("access_type", "offline")
	}
	separator := "?"
	if strings.Contains(s.AuthorizeURL, "?") {
		separator = "&"
	}
	return s.AuthorizeURL + separator + q.Encode()
}

// NewVerifier returns the secret of a login (RFC 7636).
func NewVerifier() string { return oauth2.GenerateVerifier() }

// errMixedUp is the error of an answer that another server may have given.
var errMixedUp = fault.New(fault.Denied, "the answer to the login does not name the issuer that was asked; log in again")

// CheckIssuer returns an error unless an answer came from the server (RFC 9207). The
// text is compared as it is. An empty one is the answer of a server that does not
// announce it.
func (s Server) CheckIssuer(named string) error {
	if named != s.Issuer && (named != "" || s.NamesIssuer) {
		return errMixedUp
	}
	return nil
}

// getJSON reads a document. The status is 0 if there was no answer; any other than
// 200 is without an error.
func (c *Client) getJSON(ctx context.Context, at string, into any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0, unavailable(at, err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Mcp-Protocol-Version", protocolVersion)
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, unavailable(at, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is of no use
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil
	}
	if !isJSON(resp) || json.NewDecoder(resp.Body).Decode(into) != nil {
		return resp.StatusCode, fault.New(fault.Conflict, "%s answers with an invalid document", host(at))
	}
	return resp.StatusCode, nil
}

func isJSON(resp *http.Response) bool {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// ErrUnavailable is the error of a server that cannot be reached, or fails.
var ErrUnavailable = errors.New("the authorization server is unavailable")

// unavailable returns the error of a request that got no usable answer. The text
// names the host alone: the rest of an address may have a secret.
func unavailable(at string, cause error) error {
	if errors.Is(cause, safehttp.ErrForbidden) {
		return fault.Wrap(cause, fault.Conflict, "the address of %s is not public; COUNTERSIGN_SOURCE_NETWORKS can allow its network", host(at))
	}
	if request, ok := errors.AsType[*url.Error](cause); ok {
		cause = request.Err
	}
	return fault.Wrap(fmt.Errorf("%w: %w", ErrUnavailable, cause), fault.Busy, "%s cannot be reached now; try again later", host(at))
}

func host(at string) string {
	if u, err := url.Parse(at); err == nil && u.Host != "" {
		return u.Host
	}
	return "the server"
}

// protected reports whether an address of a server may be used: absolute, and
// https or on this machine.
func protected(at string) bool {
	u, err := url.Parse(at)
	return err == nil && len(at) <= maxURL && u.Host != "" && u.User == nil && u.Fragment == "" && safehttp.Protected(u)
}

// Refused is the error of a server that refused a request with a code of OAuth.
type Refused struct {
	Code string
}

// Error implements error.
func (e *Refused) Error() string { return "the authorization server refused: " + e.Code }

// code returns a code of OAuth, or "other" for any other text.
func code(text string) string {
	if text == "" || len(text) > 60 || strings.ContainsFunc(text, func(r rune) bool { return r != '_' && r != '.' && r != ':' && r != '-' && (r < 'a' || r > 'z') }) {
		return "other"
	}
	return text
}

// Tokens are the answer to a request for tokens.
type Tokens struct {
	Access  string `json:"access"`
	Refresh string `json:"refresh,omitzero"`
	// ExpiresAt is the end of Access; zero if the server did not name it.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Scope holds the scopes that the server granted.
	Scope string `json:"scope,omitzero"`
}

// Exchange redeems an authorization code.
func (c *Client) Exchange(ctx context.Context, s Server, client Registration, code, verifier string, now time.Time) (Tokens, error) {
	return granted(s)(c.request(ctx, s, client, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {client.RedirectURI}, "code_verifier": {verifier},
	}, now))
}

// granted returns a function that adds the scopes that were asked for to an answer
// without any, which means the same (RFC 6749, section 5.1).
func granted(s Server) func(Tokens, error) (Tokens, error) {
	return func(t Tokens, err error) (Tokens, error) {
		if err == nil && t.Scope == "" {
			t.Scope = s.Scope
		}
		return t, err
	}
}

// Refresh renews tokens. The refresh token stays the same if the server sends no
// other.
func (c *Client) Refresh(ctx context.Context, s Server, client Registration, old Tokens, now time.Time) (Tokens, error) {
	t, err := c.request(ctx, s, client, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Refresh}}, now)
	if err != nil {
		return t, err
	}
	if t.Refresh == "" {
		t.Refresh = old.Refresh
	}
	if t.Scope == "" {
		t.Scope = old.Scope
	}
	return t, nil
}

// Revoke revokes tokens (RFC 7009): the refresh token, and the access token, which
// some servers keep valid without it or do not revoke. It returns false if the server
// has no endpoint for it.
func (c *Client) Revoke(ctx context.Context, s Server, client Registration, t Tokens) (bool, error) {
	if s.RevokeURL == "" {
		return false, nil
	}
	for _, of := range []struct{ token, kind string }{{t.Refresh, "refresh_token"}, {t.Access, "access_token"}} {
		if of.token == "" {
			continue
		}
		err := c.post(ctx, s.RevokeURL, client, url.Values{"token": {of.token}, "token_type_hint": {of.kind}}, nil)
		if refused, ok := errors.AsType[*Refused](err); ok && refused.Code == "unsupported_token_type" && of.kind == "access_token" && t.Refresh != "" {
			err = nil
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// request asks for tokens. The error is a *Refused, or wraps ErrUnavailable.
func (c *Client) request(ctx context.Context, s Server, client Registration, form url.Values, now time.Time) (Tokens, error) {
	if s.Resource != "" {
		form.Set("resource", s.Resource)
	}
	var answer struct {
		Access    string      `json:"access_token"`
		Type      string      `json:"token_type"`
		Refresh   string      `json:"refresh_token"`
		ExpiresIn json.Number `json:"expires_in"`
		Scope     string      `json:"scope"`
	}
	if err := c.post(ctx, s.TokenURL, client, form, &answer); err != nil {
		return Tokens{}, err
	}
	t := Tokens{Access: answer.Access, Refresh: answer.Refresh, Scope: answer.Scope}
	if !strings.EqualFold(answer.Type, "Bearer") || !isToken(t.Access) || t.Refresh != "" && !isToken(t.Refresh) || len(t.Scope) > maxURL {
		return Tokens{}, fault.Wrap(&Refused{"other"}, fault.Conflict, "%s answers with an invalid token", host(s.TokenURL))
	}
	const longest = 100 * 365 * 24 * 60 * 60
	if seconds, err := answer.ExpiresIn.Float64(); err == nil && seconds > 0 {
		t.ExpiresAt = now.Add(time.Duration(min(seconds, longest) * float64(time.Second)))
	}
	return t, nil
}

// IsScope reports whether a text is a scope (RFC 6749, section 3.3).
func IsScope(text string) bool {
	return isToken(text) && !strings.ContainsAny(text, `"\`)
}

// isToken reports whether a text can be sent in a header.
func isToken(text string) bool {
	return text != "" && len(text) <= maxToken && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// post sends a form of a client. With a nil into, the answer has no document. The error is a *Refused, or wraps ErrUnavailable.
func (c *Client) post(ctx context.Context, at string, client Registration, form url.Values, into any) error {
	switch client.Method {
	case methodBasic:
	case methodPost:
		form.Set("client_id", client.ID)
		form.Set("client_secret", client.Secret)
	default:
		form.Set("client_id", client.ID)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return unavailable(at, err)
	}
	if client.Method == methodBasic {
		req.SetBasicAuth(url.QueryEscape(client.ID), url.QueryEscape(client.Secret))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return unavailable(at, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return unavailable(at, err)
	case resp.StatusCode == http.StatusOK && into == nil:
		return nil
	case resp.StatusCode == http.StatusOK && isJSON(resp) && json.Unmarshal(body, into) == nil:
		return nil
	case resp.StatusCode == http.StatusOK:
		return fault.Wrap(&Refused{"other"}, fault.Conflict, "%s answers with an invalid document", host(at))
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode >= 500:
		return unavailable(at, fmt.Errorf("status %d", resp.StatusCode))
	}
	var refusal struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &refusal) != nil || refusal.Error == "" {
		refusal.Error = "other"
	}
	refused := &Refused{code(refusal.Error)}
	return fault.Wrap(refused, fault.Conflict, "%s refuses the request: %s", host(at), refused.Code)
}
