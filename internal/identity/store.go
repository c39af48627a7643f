package identity

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// NewTenant makes a tenant without any source, rule or token. It needs a
// transaction of the scope postgres.Admin. A name that is taken is
// fault.Conflict, one that breaks the rules fault.Invalid.
func NewTenant(ctx context.Context, tx pgx.Tx, name string) (envelope.TenantID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return envelope.TenantID{}, err
	}
	return envelope.TenantID(id), dbsqlc.New().TenantInsert(ctx, tx, &dbsqlc.TenantInsertParams{TenantID: id, Name: name})
}

// TenantByName finds a tenant, in a transaction of the scope postgres.Admin.
// One that is not there is fault.NotFound.
func TenantByName(ctx context.Context, tx pgx.Tx, name string) (envelope.TenantID, error) {
	row, err := dbsqlc.New().TenantByName(ctx, tx, name)
	if errors.Is(err, pgx.ErrNoRows) {
		return envelope.TenantID{}, fault.New(fault.NotFound, "no tenant of that name")
	}
	return envelope.TenantID(row.TenantID), err
}

// Issued is a token at the one moment at which it can be read.
type Issued struct {
	Token     Token
	Principal Principal
	// ExpiresAt is nil for a token that is valid until it is revoked.
	ExpiresAt *time.Time
}

// Issue makes a token for a tenant, in a transaction of that tenant's scope.
// What breaks the rules of Grant is fault.Invalid.
func Issue(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, g Grant, now time.Time) (Issued, error) {
	if err := g.check(); err != nil {
		return Issued{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Issued{}, err
	}
	made := Issued{Token: newToken(g.Role), Principal: Principal{
		Token: TokenID(id), Tenant: tenant, Name: g.Name, Role: g.Role,
		Employee: g.Employee, Session: sessionOf(g.Role, g.Session, TokenID(id)),
	}}
	hash := made.Token.hash()
	p := &dbsqlc.ApiTokenInsertParams{
		TokenID: id, TenantID: uuid.UUID(tenant), Name: g.Name, Role: string(g.Role), TokenHash: hash[:],
	}
	if g.Employee != (envelope.EmployeeID{}) {
		p.EmployeeID = new(uuid.UUID(g.Employee))
	}
	if made.Principal.Session != "" {
		p.SessionID = &made.Principal.Session
	}
	if g.TTL > 0 {
		made.ExpiresAt = new(now.Add(g.TTL).UTC())
		p.ExpiresAt = made.ExpiresAt
	}
	return made, dbsqlc.New().ApiTokenInsert(ctx, tx, p)
}

// Revoke ends a token's validity, in a transaction of its tenant's scope.
// Whoever has shown it lately may still be let in for CacheFor. A token that
// is not there, or revoked already, is fault.NotFound.
func Revoke(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id TokenID) error {
	n, err := dbsqlc.New().ApiTokenRevoke(ctx, tx, &dbsqlc.ApiTokenRevokeParams{TenantID: uuid.UUID(tenant), TokenID: uuid.UUID(id)})
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "no token %s that is valid", id)
	}
	return err
}

// lookUp finds whom a token's hash belongs to. The function looks across
// tenants; sqlc does not see its columns, so that it is written out here.
func lookUp(ctx context.Context, tx pgx.Tx, hash []byte) (Principal, error) {
	const query = "SELECT token_id, tenant_id, name, role, employee_id, session_id FROM authenticate($1)"
	var (
		token, tenant uuid.UUID
		name, role    string
		employee      *uuid.UUID
		session       *string
	)
	err := tx.QueryRow(ctx, query, hash).Scan(&token, &tenant, &name, &role, &employee, &session)
	if errors.Is(err, pgx.ErrNoRows) {
		return Principal{}, ErrToken
	}
	if err != nil {
		return Principal{}, err
	}
	p := Principal{Token: TokenID(token), Tenant: envelope.TenantID(tenant), Name: name, Role: Role(role)}
	if employee != nil {
		p.Employee = envelope.EmployeeID(*employee)
	}
	if session != nil {
		p.Session = *session
	}
	p.Session = sessionOf(p.Role, p.Session, p.Token)
	return p, nil
}
