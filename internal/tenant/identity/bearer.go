package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/jackc/pgx/v5"

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
