package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// tokenHolder finds the holder of a token by its hash. The error is ErrToken for
// an invalid token; the holder then identifies the token, if it was ever valid.
func tokenHolder(ctx context.Context, tx pgx.Tx, hash []byte) (holder, error) {
	who, until, err := lookUp(ctx, tx, hash)
	if errors.Is(err, ErrToken) {
		who, err = formerToken(ctx, tx, hash)
	}
	return holder{who, hash, until}, err
}

// formerToken returns ErrToken, and the token with a hash that is no longer
// valid. The function reads across tenants; sqlc does not support its columns.
func formerToken(ctx context.Context, tx pgx.Tx, hash []byte) (Principal, error) {
	var tenant, token uuid.UUID
	if err := tx.QueryRow(ctx, "SELECT tenant_id, token_id FROM token_of($1)", hash).Scan(&tenant, &token); err != nil {
		return Principal{}, postgres.Found(err, ErrToken)
	}
	return Principal{Tenant: envelope.TenantID(tenant), Token: TokenID(token)}, ErrToken
}

// personHolder returns a person from the columns of the functions for login
// codes and sessions.
func personHolder(tenant uuid.UUID, operator *uuid.UUID, name, role *string) holder {
	person := Operator{ID: postgres.OrZero(operator), Name: postgres.OrZero(name), RoleSet: Role(postgres.OrZero(role))}
	return holder{Principal: person.principal(envelope.TenantID(tenant))}
}

// redeemCode uses up a login code and returns its holder, with ErrToken if the
// code is no longer valid. The function reads across tenants; sqlc does not
// support its columns.
func redeemCode(ctx context.Context, tx pgx.Tx, hash [sha256.Size]byte) (holder, error) {
	const query = "SELECT tenant_id, token_hash, operator_id, operator_name, operator_role, valid FROM redeem_login_code($1)"
	var tenant uuid.UUID
	var token []byte
	var operator *uuid.UUID
	var name, role *string
	var valid bool
	if err := tx.QueryRow(ctx, query, hash[:]).Scan(&tenant, &token, &operator, &name, &role, &valid); err != nil {
		return holder{}, postgres.Found(err, ErrToken)
	}
	of, err := personHolder(tenant, operator, name, role), error(nil)
	if token != nil {
		of, err = tokenHolder(ctx, tx, token)
	}
	if err == nil && !valid {
		err = ErrToken
	}
	return of, err
}

// sessionHolder finds the holder of a browser session. The error is ErrToken for
// a session that has ended.
func sessionHolder(ctx context.Context, tx pgx.Tx, hash [sha256.Size]byte) (Principal, error) {
	const query = "SELECT tenant_id, session_id, idle_at, expires_at, token_hash, operator_id, operator_name, operator_role FROM authenticate_session($1)"
	var tenant uuid.UUID
	var is BrowserSession
	var token []byte
	var operator *uuid.UUID
	var name, role *string
	err := tx.QueryRow(ctx, query, hash[:]).Scan(&tenant, &is.ID, &is.IdleAt, &is.ExpiresAt, &token, &operator, &name, &role)
	if err != nil {
		return Principal{}, postgres.Found(err, ErrToken)
	}
	of := personHolder(tenant, operator, name, role)
	if token != nil {
		if of, err = tokenHolder(ctx, tx, token); err != nil {
			return Principal{}, err
		}
	}
	is.endBy(of.until)
	of.Browser = is
	return of.Principal, nil
}

// deleteOver deletes an ended browser session by its hash.
func deleteOver(ctx context.Context, tx pgx.Tx, hash [sha256.Size]byte) error {
	_, err := tx.Exec(ctx, "SELECT end_web_session($1)", hash[:])
	return err
}

// deleteOpen ends the browser session of a principal, in a transaction of its
// scope, unless another transaction already has.
func deleteOpen(ctx context.Context, tx pgx.Tx, who Principal, why sessionEnd) error {
	n, err := dbsqlc.New().WebSessionDelete(ctx, tx, &dbsqlc.WebSessionDeleteParams{TenantID: who.Tenant, SessionID: who.Browser.ID, Person: who.Person()})
	if err != nil || n == 0 {
		return err
	}
	return recordEnds(ctx, tx, who.Tenant, who.Actor(), why, who.Browser.ID)
}

func insertSession(ctx context.Context, tx pgx.Tx, made OpenedSession, of holder, via Via, from Visitor) error {
	q, person := dbsqlc.New(), of.Person()
	if err := q.RefusedLoginsPrune(ctx, tx, of.Tenant); err != nil {
		return err
	}
	ended, err := q.WebSessionsPrune(ctx, tx, &dbsqlc.WebSessionsPruneParams{TenantID: of.Tenant, Person: person, Keep: maxSessions - 1})
	if err != nil {
		return err
	}
	if err := recordEnds(ctx, tx, of.Tenant, of.Actor(), endTooMany, ended...); err != nil {
		return err
	}
	hash, is := made.Secret.hash(), made.Principal.Browser
	p := &dbsqlc.WebSessionInsertParams{
		TenantID: of.Tenant, SessionID: is.ID, SecretHash: hash[:], Via: string(via), Person: person, TokenHash: of.tokenHash,
		IdleAt: is.IdleAt, ExpiresAt: is.ExpiresAt, Address: from.Address, Program: Plain(from.Program, maxName),
	}
	if of.tokenHash == nil {
		p.OperatorID = &of.Operator
	} else {
		p.TokenID = new(uuid.UUID(of.Token))
	}
	if err := q.WebSessionInsert(ctx, tx, p); err != nil {
		return err
	}
	return recordStart(ctx, tx, made.Principal, via, from)
}

func insertCode(ctx context.Context, tx pgx.Tx, of holder, hash [sha256.Size]byte, expiresAt time.Time) error {
	q, person := dbsqlc.New(), of.Person()
	if err := q.LoginCodesPrune(ctx, tx, &dbsqlc.LoginCodesPruneParams{TenantID: of.Tenant, Person: person, Keep: maxLoginCodes - 1}); err != nil {
		return err
	}
	p := &dbsqlc.LoginCodeInsertParams{TenantID: of.Tenant, CodeHash: hash[:], Person: person, TokenHash: of.tokenHash, ExpiresAt: expiresAt}
	if of.tokenHash == nil {
		p.OperatorID = &of.Operator
	}
	return q.LoginCodeInsert(ctx, tx, p)
}

// TouchSession records activity in the browser session of a principal, in a
// transaction of its scope, and returns the session with its new end. The error
// is ErrSession if it has ended.
func TouchSession(ctx context.Context, tx pgx.Tx, by Principal) (BrowserSession, error) {
	r, err := dbsqlc.New().WebSessionTouch(ctx, tx, &dbsqlc.WebSessionTouchParams{
		IdleSeconds: SessionIdle.Seconds(), TenantID: by.Tenant, SessionID: by.Browser.ID,
	})
	return BrowserSession{by.Browser.ID, r.IdleAt, r.ExpiresAt}, postgres.Found(err, ErrSession)
}

// Sessions lists the browser sessions of the person behind a principal, newest
// first, in a transaction of its scope: those before a session, up to a limit. A
// narrowed token sees only sessions that act as itself. The zero id begins at
// the newest.
func Sessions(ctx context.Context, tx pgx.Tx, by Principal, before uuid.UUID, most int) ([]wire.BrowserSession, error) {
	if before == uuid.Nil {
		before = uuid.Max
	}
	rows, err := dbsqlc.New().WebSessions(ctx, tx, &dbsqlc.WebSessionsParams{
		TenantID: by.Tenant, Person: by.Person(), Before: before, TokenID: by.ownSessions(), Most: int32(min(most, 1000)),
	})
	return postgres.Map(rows, err, func(r dbsqlc.WebSessionsRow) wire.BrowserSession {
		return wire.BrowserSession{
			ID: r.SessionID.String(), Via: r.Via, CreatedAt: r.CreatedAt, UsedAt: r.UsedAt, IdleAt: r.IdleAt, ExpiresAt: r.ExpiresAt,
			Address: r.Address, Program: r.Program, Current: r.SessionID == by.Browser.ID,
		}
	})
}

// ownSessions returns the token whose sessions a principal may see; nil means
// all of its person.
func (p Principal) ownSessions() *uuid.UUID {
	if !p.narrowed() {
		return nil
	}
	return new(uuid.UUID(p.Token))
}

// DeleteSession ends a browser session of the person behind a principal, in a
// transaction of its scope. The error is fault.NotFound for a session that
// Sessions does not list.
func DeleteSession(ctx context.Context, tx pgx.Tx, by Principal, id uuid.UUID) error {
	n, err := dbsqlc.New().WebSessionDelete(ctx, tx, &dbsqlc.WebSessionDeleteParams{
		TenantID: by.Tenant, SessionID: id, Person: by.Person(), TokenID: by.ownSessions(),
	})
	if err := postgres.Affected(n, err, fault.New(fault.NotFound, "no such session of yours")); err != nil {
		return err
	}
	return recordEnds(ctx, tx, by.Tenant, by.Actor(), endByPerson, id)
}

// OpenSessions lists the browser sessions of all people, newest first, in a
// transaction of the tenant's scope: those before a session, up to a limit. The
// zero id begins at the newest.
func OpenSessions(ctx context.Context, tx pgx.Tx, by Principal, before uuid.UUID, most int) ([]wire.BrowserSession, error) {
	if before == uuid.Nil {
		before = uuid.Max
	}
	rows, err := dbsqlc.New().OpenSessions(ctx, tx, &dbsqlc.OpenSessionsParams{TenantID: by.Tenant, Before: before, Most: int32(min(most, 1000))})
	return postgres.Map(rows, err, func(r dbsqlc.OpenSessionsRow) wire.BrowserSession {
		s := wire.BrowserSession{
			ID: r.SessionID.String(), Via: r.Via, CreatedAt: r.CreatedAt, UsedAt: r.UsedAt, IdleAt: r.IdleAt, ExpiresAt: r.ExpiresAt,
			Address: r.Address, Program: r.Program, Current: r.SessionID == by.Browser.ID, Name: r.Name, Role: r.Role,
		}
		if r.OperatorID != nil {
			s.Operator = r.OperatorID.String()
		}
		if r.TokenID != nil {
			s.Token = r.TokenID.String()
		}
		return s
	})
}

// EndSession ends a browser session of anybody, in a transaction of the scope of
// a principal, who must be allowed to revoke a token of its role, or be its
// person. The error is fault.NotFound for a session that has ended, and
// fault.Denied.
func EndSession(ctx context.Context, tx pgx.Tx, by Principal, id uuid.UUID) error {
	q, missing := dbsqlc.New(), fault.New(fault.NotFound, "no open session %s", id)
	rows, err := q.OpenSessions(ctx, tx, &dbsqlc.OpenSessionsParams{TenantID: by.Tenant, Before: uuid.Max, SessionID: &id, Most: 1})
	if err == nil && len(rows) == 0 {
		err = missing
	}
	if err != nil {
		return err
	}
	if role := Role(rows[0].Role); rows[0].Person != by.Person() && !by.mayMake(role) {
		return fault.New(fault.Denied, "a token of the role %s may not end a session of the role %s", by.Role, role)
	}
	n, err := q.WebSessionDelete(ctx, tx, &dbsqlc.WebSessionDeleteParams{TenantID: by.Tenant, SessionID: id, Person: rows[0].Person})
	if err := postgres.Affected(n, err, missing); err != nil {
		return err
	}
	return recordEnds(ctx, tx, by.Tenant, by.Actor(), endByPerson, id)
}

// loginTenant finds the tenant with a name; without a name the only one. The id
// is zero if there is none.
func loginTenant(ctx context.Context, tx pgx.Tx, name string) (id envelope.TenantID, is string, err error) {
	var found uuid.UUID
	err = tx.QueryRow(ctx, "SELECT tenant_id, name FROM login_tenant($1)", name).Scan(&found, &is)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return envelope.TenantID(found), is, err
}
