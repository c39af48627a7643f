package identity

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// maxBearer is the maximum length of a signed token, in bytes.
const maxBearer = 16 << 10

// signed is a parsed token before verification.
type signed struct {
	text   string
	header jose.Header
	claims *claims
}

// parseSigned parses a token of three parts. It rejects tokens that no trusted
// issuer can have signed, before any request. The error is ErrToken.
func parseSigned(text string) (signed, error) {
	if len(text) > maxBearer || !strings.HasPrefix(text, "eyJ") {
		return signed{}, ErrToken
	}
	parsed, err := jose.ParseSignedCompact(text, algorithms())
	if err != nil || len(parsed.Signatures) != 1 {
		return signed{}, ErrToken
	}
	header := parsed.Signatures[0].Header
	if !tokenType(header) {
		return signed{}, ErrToken
	}
	c, err := readClaims(parsed.UnsafePayloadWithoutVerification())
	if err != nil || c.issuer == "" || len(c.audience) == 0 {
		return signed{}, ErrToken
	}
	return signed{text, header, c}, nil
}

// tokenType reports whether a header is that of an ID token or an access token.
// Issuers sign other objects with the same keys.
func tokenType(header jose.Header) bool {
	name, ok := header.ExtraHeaders[jose.HeaderType].(string)
	if !ok {
		return header.ExtraHeaders[jose.HeaderType] == nil
	}
	return slices.Contains([]string{"", "jwt", "at+jwt", "application/at+jwt"}, strings.ToLower(name))
}

// signs reports whether a key can verify a token: a public key of a trusted
// type, long enough, and not for encryption.
func signs(key jose.JSONWebKey) bool {
	if !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
		return false
	}
	switch k := key.Key.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// chosen are the known keys that match a header.
type chosen []jose.JSONWebKey

// VerifySignature returns the payload if one of the keys signed it.
func (c chosen) VerifySignature(_ context.Context, text string) ([]byte, error) {
	parsed, err := jose.ParseSignedCompact(text, algorithms())
	if err != nil {
		return nil, ErrToken
	}
	for _, key := range c {
		if payload, err := parsed.Verify(key); err == nil {
			return payload, nil
		}
	}
	return nil, ErrToken
}

// verify checks that the provider's issuer signed the token for the provider's
// audience, and that it is currently valid. It returns the expiry of the token.
func (s signed) verify(ctx context.Context, p *Provider, keys []jose.JSONWebKey, now time.Time) (until time.Time, err error) {
	var names []string
	for _, a := range algorithms() {
		names = append(names, string(a))
	}
	verifier := oidc.NewVerifier(p.Issuer, chosen(keys), &oidc.Config{
		ClientID: p.Audience, SupportedSigningAlgs: names, SkipExpiryCheck: true, // check compares all times, with one leeway
	})
	if _, err := verifier.Verify(ctx, s.text); err != nil {
		return until, ErrToken // its own text quotes the token's
	}
	if s.claims.issuer != p.Issuer || !slices.Contains(s.claims.audience, p.Audience) {
		return until, ErrToken
	}
	return s.claims.check(p, now)
}

// authenticateSigned returns the holder of a signed token, and the end of its
// validity.
func (a *Authenticator) authenticateSigned(ctx context.Context, text string, now time.Time) (Principal, time.Time, error) {
	token, err := parseSigned(text)
	if err != nil {
		return Principal{}, time.Time{}, err
	}
	p, err := postgres.InTxReturning(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) (tenantProvider, error) {
		return providerOf(ctx, tx, token.claims.issuer, token.claims.audience)
	})
	if err != nil {
		return Principal{}, time.Time{}, err
	}
	keys, err := a.issuers.keysFor(ctx, p.Issuer, token.header, now)
	if err != nil {
		return Principal{}, time.Time{}, err
	}
	until, err := token.verify(ctx, &p.Provider, keys, now)
	if err != nil {
		return Principal{}, time.Time{}, err
	}
	who, err := postgres.InTxReturning(ctx, a.db, postgres.API(p.tenant), func(tx pgx.Tx) (Principal, error) {
		return logIn(ctx, tx, p, token.claims)
	})
	if err == nil && who.Role == "" {
		err = errNoRole
	}
	return who, until.Add(leeway), err
}

// leeway is the tolerance for differences between an issuer's clock and this
// one.
const leeway = time.Minute

// claims are the claims of a signed token. They are untrusted until the
// signature is verified.
type claims struct {
	issuer, subject string
	audience        audience
	// expiry, notBefore and issuedAt are in seconds since 1970.
	expiry, notBefore, issuedAt *float64
	// party and client are the clients to which it was issued.
	party, client string
	// events is set in security event tokens of the issuer, such as a logout,
	// which are signed with the same keys and for the same audience.
	events json.RawMessage

	email, name, userName string
	verified              json.RawMessage

	all map[string]any
}

// audience is a text or a list of texts.
type audience []string

// UnmarshalJSON decodes either form.
func (a *audience) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		*a = make(audience, 1)
		return json.Unmarshal(text, &(*a)[0])
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// readClaims decodes a payload. Names must match exactly: decoding into a struct
// would accept EMAIL, which an account may be able to set, for email. The error
// is ErrToken.
func readClaims(payload []byte) (*claims, error) {
	var c claims
	var raw map[string]json.RawMessage
	if check.JSON(payload) != nil || json.Unmarshal(payload, &raw) != nil || json.Unmarshal(payload, &c.all) != nil {
		return nil, ErrToken
	}
	c.events, c.verified = raw["events"], raw["email_verified"]
	for name, into := range map[string]any{
		"iss": &c.issuer, "sub": &c.subject, "aud": &c.audience, "exp": &c.expiry, "nbf": &c.notBefore, "iat": &c.issuedAt,
		"azp": &c.party, "client_id": &c.client, "email": &c.email, "name": &c.name, "preferred_username": &c.userName,
	} {
		if text, ok := raw[name]; ok && json.Unmarshal(text, into) != nil {
			return nil, ErrToken
		}
	}
	return &c, nil
}

// check reports whether a token is valid for an audience at a time. It returns
// the expiry of the token. The error is ErrToken.
func (c *claims) check(p *Provider, now time.Time) (until time.Time, err error) {
	const maxSubject = 255 // as OpenID Connect has it
	if c.subject == "" || Plain(c.subject, maxSubject) != c.subject || len(c.events) > 0 || c.expiry == nil {
		return until, ErrToken
	}
	until, ok := instant(*c.expiry)
	if !ok || !now.Before(until.Add(leeway)) {
		return until, ErrToken
	}
	for _, begin := range []*float64{c.notBefore, c.issuedAt} {
		if begin == nil {
			continue
		}
		if at, ok := instant(*begin); !ok || now.Add(leeway).Before(at) {
			return until, ErrToken
		}
	}
	return until, c.checkParty(p)
}

// checkParty rejects a token that was issued to another client, which may have
// passed it on, and one for several audiences without an authorized party.
func (c *claims) checkParty(p *Provider) error {
	if len(c.audience) > 1 && c.party == "" && c.client == "" {
		return ErrToken
	}
	for _, party := range []string{c.party, c.client} {
		if party != "" && party != p.Audience && !slices.Contains(p.Clients, party) {
			return ErrToken
		}
	}
	return nil
}

// instant converts seconds since 1970 to a time, if they are within a plausible
// range.
func instant(seconds float64) (time.Time, bool) {
	const most = 1 << 40
	if math.IsNaN(seconds) || seconds < 0 || seconds > most {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(seconds * 1000)), true
}

// verifiedEmail returns the address, if the issuer has verified it and it is
// valid.
func (c *claims) verifiedEmail() string {
	// Some issuers encode it as a text.
	if v := string(c.verified); v != "true" && v != `"true"` {
		return ""
	}
	if strings.Count(c.email, "@") != 1 || Plain(c.email, maxName) != c.email || strings.ContainsAny(c.email, " \"(),:;<>[]\\") {
		return ""
	}
	return c.email
}

// shownName returns the display name of the subject.
func (c *claims) shownName() string {
	for _, text := range []string{c.name, c.userName, c.verifiedEmail(), c.subject} {
		if name := Plain(text, maxName); name != "" {
			return name
		}
	}
	return "somebody"
}

// texts returns the text or the list of texts at a claim, which is a name or a
// JSON Pointer.
func (c *claims) texts(at string) []string {
	found := c.all[at]
	if path, ok := jsonref.ParsePointer(at); ok {
		found, _ = path.Find(c.all)
	}
	switch v := found.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, one := range v {
			if text, ok := one.(string); ok {
				all = append(all, text)
			}
		}
		return all
	}
	return nil
}
