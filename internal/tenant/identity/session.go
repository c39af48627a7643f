package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// SessionIdle is how long a browser session lasts without anything that a
	// person does.
	SessionIdle = time.Hour
	// SessionMax is how long a browser session lasts at most.
	SessionMax = 12 * time.Hour
	// LoginCodeFor is how long a login code is valid.
	LoginCodeFor = 10 * time.Minute

	// maxSessions and maxLoginCodes bound those of one person at a time. One more
	// ends the oldest.
	maxSessions   = 50
	maxLoginCodes = 20

	// The words in the secrets of sessions and codes, in place of a role.
	sessionKind = "session"
	codeKind    = "code"
)

// Via is how a browser session was opened.
type Via string

// The ways to open a browser session.
const (
	// ViaOIDC is a login at an issuer.
	ViaOIDC Via = "oidc"
	// ViaCode is a login code.
	ViaCode Via = "code"
	// ViaToken is a token that was pasted.
	ViaToken Via = "token"
)

// sessionError is the type of ErrSession.
type sessionError string

// ErrSession reports whether a browser session is over: idle for too long, too
// old, logged out, or of somebody who may do nothing here any more. It is ErrToken
// too, for those who treat all credentials alike.
const ErrSession sessionError = "the session has ended; log in again"

// Error returns the remedy.
func (e sessionError) Error() string { return string(e) }

// Is reports whether the error is ErrToken.
func (e sessionError) Is(target error) bool { return target == ErrToken }

// BrowserSession is one login of a person in a browser.
type BrowserSession struct {
	ID uuid.UUID
	// IdleAt is when it ends unless the person does something before, ExpiresAt
	// when it ends in any case.
	IdleAt, ExpiresAt time.Time
}

// Visitor is the place of a browser, for the list of a person's sessions.
type Visitor struct{ Address, Program string }

// OpenedSession is a browser session at the one moment at which its secret can be
// read.
type OpenedSession struct {
	Secret    Token
	Principal Principal
}

// OpenWithToken opens a browser session that acts as a token, and ends with it.
// The error is ErrToken for a token that is not valid, and fault.Denied for an
// agent's.
func (a *Authenticator) OpenWithToken(ctx context.Context, text string, from Visitor, now time.Time) (OpenedSession, error) {
	token, err := parseToken(text)
	if err != nil {
		return OpenedSession{}, err
	}
	hash := token.hash()
	return a.open(ctx, ViaToken, from, now, func(tx pgx.Tx) (holder, error) { return tokenHolder(ctx, tx, hash[:]) })
}

// OpenWithCode opens a browser session for the maker of a login code, which is
// then used up. The error is ErrToken for a code that is not valid.
func (a *Authenticator) OpenWithCode(ctx context.Context, text string, from Visitor, now time.Time) (OpenedSession, error) {
	code, err := parseSecret(text, func(kind string) bool { return kind == codeKind })
	if err != nil {
		return OpenedSession{}, err
	}
	return a.open(ctx, ViaCode, from, now, func(tx pgx.Tx) (holder, error) { return redeemCode(ctx, tx, code.hash()) })
}

// CodeHolder returns for whom a login code would open a browser session, and leaves
// the code as it is. The error is that of OpenWithCode.
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

// holder is whom a browser session is opened for.
type holder struct {
	Principal
	// tokenHash is that of the token that the session acts as; nil for a person.
	tokenHash []byte
	// until is when the token ends; zero for one that does not.
	until time.Time
}

// open opens a browser session for whom find finds in a transaction of no tenant
// yet. What find changed stays changed if the session cannot be opened: a code
// that was shown is used up.
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

// endBy shortens a session to the end of its token; zero is no end.
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

// LogOut ends the browser session of a secret. One that is over already is no
// error.
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
		return nil // the browser forgets it, and there is nothing else to do
	}
	who, err := postgres.InTxReturning(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) (Principal, error) {
		return sessionHolder(ctx, tx, secret.hash())
	})
	if errors.Is(err, ErrToken) {
		// Nobody is logged in with it, which may change: an issuer may come back.
		return postgres.InTx(ctx, a.db, postgres.Authenticator(), func(tx pgx.Tx) error { return deleteOver(ctx, tx, secret.hash()) })
	}
	if err != nil {
		return err
	}
	a.Forget(TokenID(who.Browser.ID))
	return postgres.InTx(ctx, a.db, postgres.API(who.Tenant), func(tx pgx.Tx) error { return deleteOpen(ctx, tx, who, why) })
}

// NewLoginCode makes a code that opens one browser session for whoever shows a
// token, in a transaction of its tenant's scope. A browser session makes none:
// it would outlive itself.
func NewLoginCode(ctx context.Context, tx pgx.Tx, by Principal, shown string, now time.Time) (code Token, expiresAt time.Time, err error) {
	if by.Browser.ID != uuid.Nil {
		return code, expiresAt, fault.Coded(wire.CodeNoToken, fault.Denied, "a session makes no login codes; show a token, or log in with the command line")
	}
	code, expiresAt = newSecret(codeKind), now.Add(LoginCodeFor).UTC()
	hash, token := code.hash(), sha256.Sum256([]byte(shown))
	of := holder{Principal: by}
	if uuid.UUID(by.Token) != by.Operator { // otherwise an issuer signed the token
		of.tokenHash = token[:]
	}
	return code, expiresAt, insertCode(ctx, tx, of, hash, expiresAt)
}
