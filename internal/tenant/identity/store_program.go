package identity

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

func insertProgramLogin(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id TokenID, p ProgramLogin, code [sha256.Size]byte, until time.Time) error {
	q := dbsqlc.New()
	if err := q.ProgramLoginsPrune(ctx, tx, tenant); err != nil {
		return err
	}
	return q.ProgramLoginInsert(ctx, tx, &dbsqlc.ProgramLoginInsertParams{
		TenantID: tenant, TokenID: uuid.UUID(id), ClientID: p.ClientID, Program: Plain(p.Program, maxName), RedirectUri: p.RedirectURI,
		Resource: p.Resource, CodeHash: code[:], CodeChallenge: p.Challenge, CodeExpiresAt: until,
	})
}

// programLogin returns the login of a token, and whether its code was used. The
// error is ErrGrant if it does not exist.
func programLogin(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id TokenID) (p ProgramLogin, used bool, err error) {
	r, err := dbsqlc.New().ProgramLoginGet(ctx, tx, &dbsqlc.ProgramLoginGetParams{TenantID: tenant, TokenID: uuid.UUID(id)})
	return ProgramLogin{r.ClientID, r.Program, r.RedirectUri, r.Resource, r.CodeChallenge}, r.CodeUsedAt != nil, postgres.Found(err, ErrGrant)
}

// redeemProgramCode uses a code, and reports whether it was valid and unused.
func redeemProgramCode(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, hash [sha256.Size]byte) (first bool, err error) {
	n, err := dbsqlc.New().ProgramLoginRedeem(ctx, tx, &dbsqlc.ProgramLoginRedeemParams{TenantID: tenant, CodeHash: hash[:]})
	return n == 1, err
}

// useRefreshToken uses a refresh token, and reports whether it was unused.
func useRefreshToken(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, hash [sha256.Size]byte, salt []byte) (first bool, err error) {
	n, err := dbsqlc.New().RefreshTokenUse(ctx, tx, &dbsqlc.RefreshTokenUseParams{TenantID: tenant, RefreshHash: hash[:], Salt: salt})
	return n == 1, err
}

// usedRefreshToken returns the salt of a used refresh token, and whether its first
// use is recent.
func usedRefreshToken(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, hash [sha256.Size]byte) (salt []byte, recent bool, err error) {
	r, err := dbsqlc.New().RefreshTokenGet(ctx, tx, &dbsqlc.RefreshTokenGetParams{TenantID: tenant, RefreshHash: hash[:], GraceSeconds: RefreshGrace.Seconds()})
	return r.Salt, r.Recent, postgres.Found(err, ErrGrant)
}

// renewSecret replaces the secrets of a login, and returns the new ones. The error
// is ErrGrant for a login that has ended, also with its person.
func renewSecret(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id TokenID, access, refresh Token) (ProgramTokens, error) {
	q, hash, next := dbsqlc.New(), access.hash(), refresh.hash()
	_, err := q.SecretRenew(ctx, tx, &dbsqlc.SecretRenewParams{
		TenantID: tenant, TokenID: uuid.UUID(id), TokenHash: hash[:], Seconds: SecretFor.Seconds(), OverlapSeconds: secretOverlap.Seconds(),
	})
	if err != nil {
		return ProgramTokens{}, postgres.Found(err, ErrGrant)
	}
	if err := q.RefreshTokenInsert(ctx, tx, &dbsqlc.RefreshTokenInsertParams{TenantID: tenant, TokenID: uuid.UUID(id), RefreshHash: next[:]}); err != nil {
		return ProgramTokens{}, err
	}
	return repeatSecret(ctx, tx, tenant, id, access, refresh)
}

// repeatSecret returns the current secrets of a login again. The error is ErrGrant
// for a login that has ended, also with its person, and for secrets that were
// replaced since.
func repeatSecret(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id TokenID, access, refresh Token) (ProgramTokens, error) {
	hash := access.hash()
	who, _, err := lookUp(ctx, tx, hash[:])
	if err != nil {
		return ProgramTokens{}, ErrGrant
	}
	seconds, err := dbsqlc.New().SecretSeconds(ctx, tx, &dbsqlc.SecretSecondsParams{TenantID: tenant, TokenID: uuid.UUID(id), TokenHash: hash[:]})
	if err != nil {
		return ProgramTokens{}, postgres.Found(err, ErrGrant)
	}
	return ProgramTokens{Access: access, Refresh: refresh, ExpiresIn: time.Duration(seconds * float64(time.Second)), Scopes: who.Scopes}, nil
}

// programOf finds the login of a code or refresh token across tenants; sqlc
// does not see the function's columns. The error is ErrGrant if it does not
// exist.
func programOf(ctx context.Context, tx pgx.Tx, hash []byte) (Principal, error) {
	var tenant, token uuid.UUID
	err := tx.QueryRow(ctx, "SELECT tenant_id, token_id FROM program_login_of($1)", hash).Scan(&tenant, &token)
	return Principal{Tenant: envelope.TenantID(tenant), Token: TokenID(token)}, postgres.Found(err, ErrGrant)
}

// programHolder finds the login of an access or refresh token across tenants.
// The error is ErrToken if it does not exist.
func programHolder(ctx context.Context, tx pgx.Tx, hash []byte) (Principal, error) {
	who, err := programOf(ctx, tx, hash)
	if err == nil {
		return who, nil
	}
	who, _, err = lookUp(ctx, tx, hash)
	if err == nil && who.Resource == "" {
		err = ErrToken // another token than a login's
	}
	return who, err
}

func programIsUsed(ctx context.Context, tx pgx.Tx, clientID string) (used bool, err error) {
	err = tx.QueryRow(ctx, "SELECT program_is_used($1)", clientID).Scan(&used)
	return used, err
}

// recordProgramEnd records that a program's login was revoked by nobody here.
func recordProgramEnd(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id TokenID, why string) error {
	return audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: "login", Items: []audit.Item{{
		Subject: "token " + id.String() + " revoked", Note: why,
	}}})
}
