package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// SessionIdle is how long a browser session lasts without activity of a
	// person.
	SessionIdle = time.Hour
	// SessionMax is the maximum duration of a browser session.
	SessionMax = 12 * time.Hour
	// loginCodeFor is how long a login code is valid.
	loginCodeFor = 10 * time.Minute

	// maxSessions and maxLoginCodes bound those of one person. An additional one
	// ends the oldest.
	maxSessions   = 50
	maxLoginCodes = 20

	// The words in the secrets of sessions and codes, in place of a role.
	sessionKind = "session"
	codeKind    = "code"
)

// Via is the way in which a browser session was opened.
type Via string

// The ways to open a browser session.
const (
	// ViaOIDC is a login at an issuer.
	ViaOIDC Via = "oidc"
	// ViaCode is a login code.
	ViaCode Via = "code"
	// ViaToken is a pasted token.
	ViaToken Via = "token"
)

// TokenError is an ErrToken with a text of its own.
type TokenError string

// Error returns the text.
func (e TokenError) Error() string { return string(e) }

// Is reports whether the error is ErrToken.
func (e TokenError) Is(target error) bool { return target == ErrToken }

// sessionError is the type of ErrSession.
type sessionError string

// ErrSession means that a browser session has ended: it was idle for too long,
// too old, logged out, or its person has no rights any more. It matches ErrToken
// too, for code that treats all credentials alike.
const ErrSession sessionError = "the session has ended; log in again"

// Error returns the remedy.
func (e sessionError) Error() string { return string(e) }

// Is reports whether the error is ErrToken.
func (e sessionError) Is(target error) bool { return target == ErrToken }

// BrowserSession is one login of a person in a browser.
type BrowserSession struct {
	ID uuid.UUID
	// IdleAt is when it ends without activity of the person, ExpiresAt when it
	// ends in any case.
	IdleAt, ExpiresAt time.Time
}

// Visitor describes a browser for the list of a person's sessions.
type Visitor struct{ Address, Program string }

// OpenedSession is a new browser session with its secret, which is not readable
// later.
type OpenedSession struct {
	Secret    Token
	Principal Principal
}

// OpenWithToken opens a browser session that acts as a token and ends with it.
// The error is ErrToken for an invalid token, and fault.Denied for an agent's.
func (a *Authenticator) OpenWithToken(ctx context.Context, text string, from Visitor, now time.Time) (OpenedSession, error) {
	token, err := parseToken(text)
	if err != nil {
		return OpenedSession{}, err
	}
	hash := token.hash()
	return a.open(ctx, ViaToken, from, now, func(tx pgx.Tx) (holder, error) { return tokenHolder(ctx, tx, hash[:]) })
}

// OpenWithCode opens a browser session for the creator of a login code, which is
// then invalid. The error is ErrToken for an invalid code.
func (a *Authenticator) OpenWithCode(ctx context.Context, text string, from Visitor, now time.Time) (OpenedSession, error) {
	code, err := parseSecret(text, func(kind string) bool { return kind == codeKind })
	if err != nil {
		return OpenedSession{}, err
	}
	return a.open(ctx, ViaCode, from, now, func(tx pgx.Tx) (holder, error) { return redeemCode(ctx, tx, code.hash()) })
}

// CodeHolder returns the principal for which a login code would open a browser
// session, without using the code. The error is that of OpenWithCode.
func (a *Authenticator) CodeHolder(ctx context.Context, text string) (Principal, error) {
	code, err := parseSecret(text, func(kind string) bool { return kind == codeKind })
	if err != nil {
		return Principal{}, err
	}
	var of holder
	unused := errors.New("rolled back")
	err = postgres.InTx(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) error {
		if of, err = redeemCode(ctx, tx, code.hash()); err != nil {
			return err
		}
		return unused
	})
	if errors.Is(err, unused) {
		err = nil
	}
	return of.Principal, err
}

// holder is the principal of a new browser session.
type holder struct {
	Principal
	// tokenHash is the hash of the token that the session acts as; nil for a
	// person.
	tokenHash []byte
	// until is the expiry of the token; zero if it does not expire.
	until time.Time
}

// open opens a browser session for the result of find, which runs in a
// transaction without a tenant. Changes of find remain if the session cannot be
// opened: a login code is used up.
func (a *Authenticator) open(ctx context.Context, via Via, from Visitor, now time.Time, find func(pgx.Tx) (holder, error)) (OpenedSession, error) {
	of, err := postgres.InTxReturning(ctx, a.db, postgres.Authenticator(), find)
	if err == nil && of.Role == RoleAgent {
		err = fault.Coded(wire.CodeAgentToken, fault.Denied, "an agent's token opens no session: agents send it with every request; log in as a person")
	}
	if err != nil {
		return OpenedSession{}, a.refuse(ctx, refusal{who: of.Principal, via: via, from: from}, err)
	}
	return a.openFor(ctx, of, via, from, now)
}

// openFor opens a browser session for a holder.
func (a *Authenticator) openFor(ctx context.Context, of holder, via Via, from Visitor, now time.Time) (OpenedSession, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return OpenedSession{}, err
	}
	made := OpenedSession{newSecret(sessionKind), of.Principal}
	made.Principal.Browser = BrowserSession{id, now.Add(SessionIdle).UTC(), now.Add(SessionMax).UTC()}
	made.Principal.Browser.endBy(of.until)
	err = postgres.InTx(ctx, a.db, postgres.API(of.Tenant), func(tx pgx.Tx) error { return insertSession(ctx, tx, made, of, via, from) })
	return made, err
}

// endBy limits a session to the expiry of its token; zero means none.
func (b *BrowserSession) endBy(until time.Time) {
	if !until.IsZero() && until.Before(b.ExpiresAt) {
		b.ExpiresAt = until.UTC()
	}
	if b.ExpiresAt.Before(b.IdleAt) {
		b.IdleAt = b.ExpiresAt
	}
}

// lookUpSession is the finder for the secrets of browser sessions.
func (a *Authenticator) lookUpSession(ctx context.Context, text string, _ time.Time) (who Principal, until time.Time, err error) {
	secret, err := parseSecret(text, func(kind string) bool { return kind == sessionKind })
	if err != nil {
		return who, until, err
	}
	who, err = postgres.InTxReturning(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) (Principal, error) {
		return sessionHolder(ctx, tx, secret.hash())
	})
	return who, who.Browser.IdleAt, err
}

// LogOut ends the browser session of a secret. It returns nil if the session has
// already ended.
func (a *Authenticator) LogOut(ctx context.Context, text string) error {
	return a.endSession(ctx, text, endLogout)
}

// ReplaceSession is LogOut for a browser that has another session now.
func (a *Authenticator) ReplaceSession(ctx context.Context, text string) error {
	return a.endSession(ctx, text, endReplaced)
}

func (a *Authenticator) endSession(ctx context.Context, text string, why sessionEnd) error {
	secret, err := parseSecret(text, func(kind string) bool { return kind == sessionKind })
	if err != nil {
		return nil // the browser discards it, and nothing else is left to do
	}
	who, err := postgres.InTxReturning(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) (Principal, error) {
		return sessionHolder(ctx, tx, secret.hash())
	})
	if errors.Is(err, ErrToken) {
		// The session is unusable at present, which may change: an issuer may be
		// available again.
		return postgres.InTx(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) error { return deleteOver(ctx, tx, secret.hash()) })
	}
	if err != nil {
		return err
	}
	defer a.Forget(TokenID(who.Browser.ID))
	return postgres.InTx(ctx, a.db, postgres.API(who.Tenant), func(tx pgx.Tx) error { return deleteOpen(ctx, tx, who, why) })
}

// NewLoginCode returns a code that opens one browser session for the holder of a
// token, in a transaction of its tenant's scope. A browser session cannot create
// one, since it could then extend itself.
func NewLoginCode(ctx context.Context, tx pgx.Tx, by Principal, shown string, now time.Time) (code Token, expiresAt time.Time, err error) {
	if by.Browser.ID != uuid.Nil {
		return code, expiresAt, fault.Coded(wire.CodeNoToken, fault.Denied, "a session makes no login codes; show a token, or log in with the command line")
	}
	code, expiresAt = newSecret(codeKind), now.Add(loginCodeFor).UTC()
	hash, token := code.hash(), sha256.Sum256([]byte(shown))
	of := holder{Principal: by}
	if uuid.UUID(by.Token) != by.Operator { // otherwise an issuer signed the token
		of.tokenHash = token[:]
	}
	return code, expiresAt, insertCode(ctx, tx, of, hash, expiresAt)
}

// NewOwnerLoginCode returns a code that opens one browser session for an owner of a
// tenant, in a transaction of its scope. It is for those who have the database while the
// owner's issuer does not answer. name is the name, the address or the id of the person; ""
// means the only owner. The error is fault.NotFound if there is no such owner, and
// fault.Invalid if there are several.
func NewOwnerLoginCode(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name string, now time.Time) (of Operator, code Token, expiresAt time.Time, err error) {
	people, err := Operators(ctx, tx, tenant)
	if err != nil {
		return of, code, expiresAt, err
	}
	issuers, err := Providers(ctx, tx, tenant)
	if err != nil {
		return of, code, expiresAt, err
	}
	owners := slices.DeleteFunc(people, func(o Operator) bool {
		configured := slices.ContainsFunc(issuers, func(p Provider) bool { return p.Issuer == o.Issuer })
		return !configured || o.Disabled || o.Effective() != RoleOwner || name != "" && name != o.Name && name != o.Email && name != o.ID.String()
	})
	switch len(owners) {
	case 0:
		return of, code, expiresAt, fault.New(fault.NotFound, "no such owner who logs in at an issuer of the tenant; create a token with `countersign token create --role owner`")
	case 1:
		code, expiresAt, err = NewLoginCode(ctx, tx, owners[0].principal(tenant), "", now)
		return owners[0], code, expiresAt, err
	}
	return of, code, expiresAt, fault.New(fault.Invalid, "the tenant has %d such owners; give the address or the id of one", len(owners))
}
