// Package identitytest is an OpenID Connect issuer for tests, which can
// misbehave on request.
package identitytest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
)

// Claims are the claims of a token.
type Claims = map[string]any

// Issuer is an issuer that listens on this machine. Its keys are RSA keys.
type Issuer struct {
	t      testing.TB
	server *httptest.Server

	mu     sync.Mutex
	keys   []Key
	down   bool
	asked  int
	person Claims
	forced Claims
	// codes and refreshes are the valid codes and refresh tokens.
	codes     map[string]grant
	refreshes map[string]grant
	revoked   []string
	// secret is the secret of clients; "" for public clients.
	secret string
}

// grant is a person's consent.
type grant struct{ client, nonce, challenge, redirect string }

// Key is a signing key.
type Key struct {
	ID      string
	Private *rsa.PrivateKey
}

// NewKey returns a new key with an id.
func NewKey(t testing.TB, id string) Key {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, private}
}

// New starts an issuer with one key, named first. It ends with the test.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t, keys: []Key{NewKey(t, "first")}, codes: make(map[string]grant), refreshes: make(map[string]grant), person: Claims{"sub": "ana"}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", i.jwks)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("POST /revoke", i.revoke)
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		down := i.down
		i.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.server.Close)
	return i
}

func (i *Issuer) locked(do func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	do()
}

// URL returns the issuer's address.
func (i *Issuer) URL() string { return i.server.URL }

// Key returns its newest key.
func (i *Issuer) Key() Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1]
}

// Rotate replaces all keys by another one.
func (i *Issuer) Rotate(key Key) { i.locked(func() { i.keys = []Key{key} }) }

// SetDown makes all requests fail, or succeed again.
func (i *Issuer) SetDown(down bool) { i.locked(func() { i.down = down }) }

// Asked returns the number of requests for its keys.
func (i *Issuer) Asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// LogIn sets the person of later logins.
func (i *Issuer) LogIn(person Claims) { i.locked(func() { i.person = person }) }

// Force adds claims to every token that it issues.
func (i *Issuer) Force(claims Claims) { i.locked(func() { i.forced = claims }) }

// Confide makes clients need a secret.
func (i *Issuer) Confide(secret string) { i.locked(func() { i.secret = secret }) }

// Revoked returns the revoked refresh tokens.
func (i *Issuer) Revoked() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string(nil), i.revoked...)
}

// Claims returns the claims of a valid token for an audience, with changes; a
// nil removes a claim.
func (i *Issuer) Claims(audience string, now time.Time, changed Claims) Claims {
	all := Claims{
		"iss": i.URL(), "sub": "ana", "aud": audience, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
	maps.Copy(all, changed)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// Token returns a valid token for an audience, with changed claims.
func (i *Issuer) Token(audience string, now time.Time, changed Claims) string {
	i.t.Helper()
	return Sign(i.t, i.Key(), i.Claims(audience, now, changed), nil)
}

// Sign signs claims with a key by RS256, with additional header fields.
func Sign(t testing.TB, key Key, claims Claims, header map[jose.HeaderKey]any) string {
	t.Helper()
	return SignAs(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key.Private, KeyID: key.ID}}, claims, header)
}

// SignAs signs claims with any key and algorithm, with additional header fields.
func SignAs(t testing.TB, key jose.SigningKey, claims Claims, header map[jose.HeaderKey]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	for name, value := range header {
		options = options.WithHeader(name, value)
	}
	signer, err := jose.NewSigner(key, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have left
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	at := i.URL()
	answer(w, http.StatusOK, Claims{
		"issuer": at, "jwks_uri": at + "/keys", "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token",
		"revocation_endpoint": at + "/revoke", "id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

func (i *Issuer) jwks(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	var set jose.JSONWebKeySet
	for _, k := range i.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID, Algorithm: "RS256", Use: "sig"})
	}
	answer(w, http.StatusOK, set)
}

// authorize is the consent page; it agrees immediately.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	code := uuid.NewString()
	i.mu.Lock()
	i.codes[code] = grant{q.Get("client_id"), q.Get("nonce"), q.Get("code_challenge"), q.Get("redirect_uri")}
	i.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL()}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token exchanges a code, or a refresh token, which is then invalid.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	var g grant
	var ok bool
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		g, ok = i.codes[r.PostFormValue("code")]
		delete(i.codes, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		ok = ok && g.redirect == r.PostFormValue("redirect_uri")
		ok = ok && g.challenge == base64.RawURLEncoding.EncodeToString(sum[:])
	case "refresh_token":
		g, ok = i.refreshes[r.PostFormValue("refresh_token")]
		delete(i.refreshes, r.PostFormValue("refresh_token"))
	}
	client, secret, basic := r.BasicAuth()
	if !basic {
		client, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	ok = ok && g.client == client && i.secret == secret
	refresh := uuid.NewString()
	if ok {
		i.refreshes[refresh] = g
	}
	person, forced := maps.Clone(i.person), i.forced
	i.mu.Unlock()
	if !ok {
		answer(w, http.StatusBadRequest, Claims{"error": "invalid_grant", "error_description": "MARKER"})
		return
	}
	if g.nonce != "" {
		person["nonce"] = g.nonce
	}
	maps.Copy(person, forced)
	answer(w, http.StatusOK, Claims{
		"access_token": "opaque", "token_type": "Bearer", "expires_in": 300, "refresh_token": refresh,
		"id_token": i.Token(g.client, time.Now(), person),
	})
}

func (i *Issuer) revoke(_ http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	token := r.PostFormValue("token")
	delete(i.refreshes, token)
	i.revoked = append(i.revoked, token)
}
