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

// maxBearer bounds a signed token in bytes.
const maxBearer = 16 << 10

// signed is a token as an issuer signed it, before anything of it is believed.
type signed struct {
	text   string
	header jose.Header
	claims *claims
}

// parseSigned reads a token of three parts. It refuses what no trusted issuer
// can have signed for this, before anybody is asked. The error is ErrToken.
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

// tokenType reports whether a header is that of a token of identity or of access.
// Issuers sign other things with the same keys.
func tokenType(header jose.Header) bool {
	name, ok := header.ExtraHeaders[jose.HeaderType].(string)
	if !ok {
		return header.ExtraHeaders[jose.HeaderType] == nil
	}
	return slices.Contains([]string{"", "jwt", "at+jwt", "application/at+jwt"}, strings.ToLower(name))
}

// signs reports whether a key can verify a token: a public one of a kind that is
// trusted, long enough, and not for encryption.
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

// chosen is the set of the keys that fit a header, all of which are known.
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

// verify believes a token if the provider's issuer signed it for the
// provider's audience, and it is of now. It returns when the token ends.
func (s signed) verify(ctx context.Context, p *Provider, keys []jose.JSONWebKey, now time.Time) (until time.Time, err error) {
	var names []string
	for _, a := range algorithms() {
		names = append(names, string(a))
	}
	verifier := oidc.NewVerifier(p.Issuer, chosen(keys), &oidc.Config{
		ClientID: p.Audience, SupportedSigningAlgs: names, SkipExpiryCheck: true, // check looks at every time, with one leeway
	})
	if _, err := verifier.Verify(ctx, s.text); err != nil {
		return until, ErrToken // its own text quotes the token's
	}
	if s.claims.issuer != p.Issuer || !slices.Contains(s.claims.audience, p.Audience) {
		return until, ErrToken
	}
	return s.claims.check(p, now)
}

// authenticateSigned finds out who shows a signed token, and until when it is
// valid.
func (a *Authenticator) authenticateSigned(ctx context.Context, text string, now time.Time) (Principal, time.Time, error) {
	token, err := parseSigned(text)
	if err != nil {
		return Principal{}, time.Time{}, err
	}
	var p tenantProvider
	err = postgres.InTx(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) (err error) {
		p, err = providerOf(ctx, tx, token.claims.issuer, token.claims.audience)
		return err
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
	var who Principal
	err = postgres.InTx(ctx, a.db, postgres.API(p.tenant), func(tx pgx.Tx) (err error) {
		who, err = logIn(ctx, tx, p, token.claims)
		return err
	})
	if err == nil && who.Role == "" {
		err = errNoRole
	}
	return who, until.Add(leeway), err
}

// leeway is how far an issuer's clock may be from this one.
const leeway = time.Minute

// claims are those of a signed token. They are data: nothing is believed of
// them before the signature was verified.
type claims struct {
	issuer, subject string
	audience        audience
	// expiry, notBefore and issuedAt are in seconds since 1970.
	expiry, notBefore, issuedAt *float64
	// party and client are to whom it was issued.
	party, client string
	// events makes it a message of the issuer about somebody, such as that it
	// logged out, signed with the same keys and for the same audience.
	events json.RawMessage

	email, name, userName string
	verified              json.RawMessage

	all map[string]any
}

// audience is a text or a list of texts.
type audience []string

// UnmarshalJSON reads either form.
func (a *audience) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		*a = make(audience, 1)
		return json.Unmarshal(text, &(*a)[0])
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// readClaims reads a payload. Names are taken as they are written: the decoder
// of structures would take EMAIL, which an account may be free to set, for
// email. The error is ErrToken.
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

// check reports whether a token is for an audience, at a time. It returns when
// the token ends. The error is ErrToken.
func (c *claims) check(p *Provider, now time.Time) (until time.Time, err error) {
	const maxSubject = 255 // as OpenID Connect has it
	if c.subject == "" || plain(c.subject, maxSubject) != c.subject || len(c.events) > 0 || c.expiry == nil {
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

// checkParty refuses a token that was issued to somebody else, who passes it
// on; and one for several audiences that does not say to whom it was issued.
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

// instant reads seconds since 1970 that are within reason.
func instant(seconds float64) (time.Time, bool) {
	const most = 1 << 40
	if math.IsNaN(seconds) || seconds < 0 || seconds > most {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(seconds * 1000)), true
}

// verifiedEmail is the address, if the issuer has verified it and
// it is one.
func (c *claims) verifiedEmail() string {
	// Some issuers write it as a text.
	if v := string(c.verified); v != "true" && v != `"true"` {
		return ""
	}
	if strings.Count(c.email, "@") != 1 || plain(c.email, maxName) != c.email || strings.ContainsAny(c.email, " \"(),:;<>[]\\") {
		return ""
	}
	return c.email
}

// shownName is what to call whom the claims are of.
func (c *claims) shownName() string {
	for _, text := range []string{c.name, c.userName, c.verifiedEmail(), c.subject} {
		if name := plain(text, maxName); name != "" {
			return name
		}
	}
	return "somebody"
}

// texts returns the text, or the texts of the list, at a claim, which is named
// by itself or by a JSON Pointer.
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
