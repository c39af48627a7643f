package identity

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/safehttp"
)

const (
	// ProgramCodeFor is how long an authorization code is valid.
	ProgramCodeFor = time.Minute
	// SecretFor is how long the secret of a program's login is valid before the
	// program renews it.
	SecretFor = time.Hour
	// RefreshGrace is how long after its first use a refresh token still returns the
	// secrets that replaced it: clients renew from several processes at once.
	RefreshGrace = 30 * time.Second
	// secretOverlap is how long the secret before is valid for requests that are
	// under way.
	secretOverlap = time.Minute

	// The words in authorization codes and refresh tokens, in place of a role.
	grantKind   = "grant"
	refreshKind = "refresh"
)

// ErrGrant is the error for an authorization code or a refresh token that is
// unknown, expired, used, or of another program.
var ErrGrant = errors.New("the code or refresh token is not valid")

// AgentScopes returns the scopes that a program needs at /mcp.
func AgentScopes() []Scope { return []Scope{ActionsPropose, ActionsRead, CatalogRead} }

// ProgramLogin is the login that a person consents to, besides the rights of the agent.
type ProgramLogin struct {
	// ClientID is the program's, and Program the name that it gives itself.
	ClientID, Program string
	// RedirectURI is where the browser goes with the code.
	RedirectURI string
	// Resource is the address at which alone the token is accepted.
	Resource string
	// Challenge is the SHA-256 of the code verifier in base64url (RFC 7636).
	Challenge string
}

// PendingProgram is a request for a login that a person may consent to.
type PendingProgram struct {
	ProgramLogin
	State  string
	Scopes []Scope
	Until  time.Time
	// Browser is the digest of a cookie of the browser that alone may answer.
	Browser string
	// Host is the host of the program's metadata document, which vouches for its
	// name; "" for a registration.
	Host string
}

// RedirectHost returns where the browser goes with the code: a host, or the scheme
// of a program on the person's machine. local reports whether any program on the
// person's machine may receive it.
func (p PendingProgram) RedirectHost() (host string, local bool) {
	u, err := url.Parse(p.RedirectURI)
	switch {
	case err != nil:
		return "", true
	case u.Scheme == "https":
		return u.Host, safehttp.Local(u.Hostname())
	case u.Scheme == "http":
		return u.Hostname(), true
	}
	return u.Scheme + "://", true
}

// ProgramTokens are the secrets of a program's login.
type ProgramTokens struct {
	Access, Refresh Token
	// ExpiresIn is how long Access is valid.
	ExpiresIn time.Duration
	Scopes    []Scope
}

// Consent makes the token of an agent for a program, in a transaction of the
// tenant's scope, and returns the authorization code with which the program fetches
// its secrets. Nobody has a secret of the token before. Consents of the tenant whose
// code was not used end.
func Consent(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, g Grant, p ProgramLogin, now time.Time) (code Token, made Issued, err error) {
	g.secretUntil = new(now.Add(-time.Second).UTC())
	if made, err = Issue(ctx, tx, tenant, g, now); err != nil {
		return code, made, err
	}
	code = newSecret(grantKind)
	return code, made, insertProgramLogin(ctx, tx, tenant, made.Principal.Token, p, code.hash(), now.Add(ProgramCodeFor))
}

// Redemption is the request of a program with an authorization code.
type Redemption struct{ Code, ClientID, RedirectURI, Resource, Verifier string }

// RedeemProgramCode returns the secrets for an authorization code. The error is
// ErrGrant for a code that is not valid. A code that is used twice may have been
// stolen, so that its login is revoked.
func (a *Authenticator) RedeemProgramCode(ctx context.Context, r Redemption) (ProgramTokens, error) {
	code, err := parseSecret(r.Code, func(kind string) bool { return kind == grantKind })
	if err != nil {
		return ProgramTokens{}, ErrGrant
	}
	return a.ofProgram(ctx, code, func(tx pgx.Tx, tenant envelope.TenantID, id TokenID) (ProgramTokens, error) {
		p, used, err := programLogin(ctx, tx, tenant, id)
		switch {
		case err != nil:
			return ProgramTokens{}, err
		case used:
			return ProgramTokens{}, errReused
		case p.ClientID != r.ClientID, p.RedirectURI != r.RedirectURI, r.Resource != "" && p.Resource != r.Resource, !verifies(r.Verifier, p.Challenge):
			return ProgramTokens{}, ErrGrant
		}
		first, err := redeemProgramCode(ctx, tx, tenant, code.hash())
		if err == nil && !first { // expired, or used since it was read
			if _, used, err = programLogin(ctx, tx, tenant, id); used {
				err = errReused
			} else if err == nil {
				err = ErrGrant
			}
		}
		if err != nil {
			return ProgramTokens{}, err
		}
		return renewSecret(ctx, tx, tenant, id, newToken(RoleAgent), newSecret(refreshKind))
	})
}

// verifies reports whether a code verifier is the one of a challenge (S256).
func verifies(verifier, challenge string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// RefreshProgram returns new secrets for a refresh token. For RefreshGrace after its
// first use it returns the same ones again; later its login is revoked, since one of
// two holders has stolen it. The error is ErrGrant for one that is not valid.
func (a *Authenticator) RefreshProgram(ctx context.Context, refresh, clientID, resource string) (ProgramTokens, error) {
	old, err := parseSecret(refresh, func(kind string) bool { return kind == refreshKind })
	if err != nil {
		return ProgramTokens{}, ErrGrant
	}
	return a.ofProgram(ctx, old, func(tx pgx.Tx, tenant envelope.TenantID, id TokenID) (ProgramTokens, error) {
		p, _, err := programLogin(ctx, tx, tenant, id)
		if err != nil || p.ClientID != clientID || resource != "" && p.Resource != resource {
			return ProgramTokens{}, errors.Join(err, ErrGrant)
		}
		salt := make([]byte, sha256.Size)
		_, _ = rand.Read(salt) // never fails: it ends the process rather than give less
		first, err := useRefreshToken(ctx, tx, tenant, old.hash(), salt)
		if err != nil {
			return ProgramTokens{}, err
		}
		if first {
			return renewSecret(ctx, tx, tenant, id, old.successor(string(RoleAgent), salt), old.successor(refreshKind, salt))
		}
		salt, recent, err := usedRefreshToken(ctx, tx, tenant, old.hash())
		if err != nil {
			return ProgramTokens{}, err
		}
		if !recent {
			return ProgramTokens{}, errReused
		}
		return repeatSecret(ctx, tx, tenant, id, old.successor(string(RoleAgent), salt), old.successor(refreshKind, salt))
	})
}

// successor derives the secret that replaces a refresh token. Nobody can derive it
// from the database alone, which has the salt and the hash of t.
func (t Token) successor(kind string, salt []byte) Token {
	mac := hmac.New(sha256.New, []byte(t.text))
	mac.Write(salt)
	mac.Write([]byte(kind))
	return Token{tokenPrefix + kind + "_" + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))}
}

// EndProgram revokes the login of an access or refresh token (RFC 7009). One that
// is not valid, or belongs to no login, is no error.
func (a *Authenticator) EndProgram(ctx context.Context, text string) error {
	secret, err := parseSecret(text, func(kind string) bool { return kind == refreshKind || Role(kind) == RoleAgent })
	if err != nil {
		return nil
	}
	hash := secret.hash()
	who, err := postgres.InTxReturning(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) (Principal, error) {
		return programHolder(ctx, tx, hash[:])
	})
	if err != nil {
		return ignore(err, ErrToken)
	}
	return a.endProgram(ctx, who, "its program ended it")
}

// ignore returns nil for an error that is another, and the error otherwise.
func ignore(err, other error) error {
	if errors.Is(err, other) {
		return nil
	}
	return err
}

// errReused is the error for a code or refresh token that was used before.
var errReused = errors.New("used before")

// ofProgram calls fn in a transaction of the tenant of a code or refresh token. It
// revokes the login if fn returns errReused.
func (a *Authenticator) ofProgram(ctx context.Context, secret Token, fn func(tx pgx.Tx, tenant envelope.TenantID, id TokenID) (ProgramTokens, error)) (ProgramTokens, error) {
	hash := secret.hash()
	who, err := postgres.InTxReturning(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) (Principal, error) {
		return programOf(ctx, tx, hash[:])
	})
	if err != nil {
		return ProgramTokens{}, err
	}
	made, err := postgres.InTxReturning(ctx, a.db, postgres.API(who.Tenant), func(tx pgx.Tx) (ProgramTokens, error) { return fn(tx, who.Tenant, who.Token) })
	if errors.Is(err, errReused) {
		return ProgramTokens{}, errors.Join(ErrGrant, a.endProgram(ctx, who, "a code or refresh token was used twice"))
	}
	if errors.Is(err, fault.NotFound) {
		err = ErrGrant
	}
	return made, err
}

// endProgram revokes a login and records it.
func (a *Authenticator) endProgram(ctx context.Context, who Principal, why string) error {
	err := postgres.InTx(ctx, a.db, postgres.API(who.Tenant), func(tx pgx.Tx) error {
		if err := Revoke(ctx, tx, who.Tenant, who.Token, "login"); err != nil {
			return err
		}
		return recordProgramEnd(ctx, tx, who.Tenant, who.Token, why)
	})
	a.Forget(who.Token)
	return ignore(err, fault.NotFound)
}

// ProgramIsUsed reports whether a login of a program holds.
func (a *Authenticator) ProgramIsUsed(ctx context.Context, clientID string) (bool, error) {
	return postgres.InTxReturning(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) (bool, error) { return programIsUsed(ctx, tx, clientID) })
}
