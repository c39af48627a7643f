package identity

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Issued is a new token with its secret, which is not readable later.
type Issued struct {
	Token     Token
	Principal Principal
	// ExpiresAt is nil for a token that does not expire.
	ExpiresAt *time.Time
}

// JSON returns the token with its secret in the form of the API.
func (i Issued) JSON() wire.IssuedToken {
	return wire.IssuedToken{ID: i.Principal.Token.String(), Token: i.Token.Text(), TokenGrant: i.Principal.Grant(), ExpiresAt: i.ExpiresAt}
}

// AuditItem returns a new token's audit log entry, without its secret.
func (i Issued) AuditItem() (subject string, detail map[string]any) {
	p := i.Principal
	detail = map[string]any{"token_id": p.Token, "name": p.Name, "role": p.Role, "expires_at": i.ExpiresAt}
	if p.Employee != (envelope.EmployeeID{}) {
		detail["employee_id"] = p.Employee
	}
	if p.Session != "" {
		detail["session_id"] = p.Session
	}
	if p.Operator != uuid.Nil {
		detail["operator_id"] = p.Operator
	}
	if p.Scopes != nil {
		detail["scopes"] = p.Scopes
	}
	if p.Tools != nil {
		detail["tools"] = p.Tools
	}
	if p.Names.Automations != nil {
		detail["automations"] = p.Names.Automations
	}
	if p.Names.Employees != nil {
		detail["employees"] = p.Names.Employees
	}
	if p.Names.Sessions != nil {
		detail["sessions"] = p.Names.Sessions
	}
	if p.Names.ExternalIDPrefix != "" {
		detail["external_id_prefix"] = p.Names.ExternalIDPrefix
	}
	return "token " + p.Token.String() + " issued for the role " + string(p.Role), detail
}

// Issue creates a token for a tenant, in a transaction of that tenant's scope. A
// grant that is invalid, or has more rights than its person, is fault.Invalid.
// The caller must have checked MayGrant.
func Issue(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, g Grant, now time.Time) (Issued, error) {
	if err := g.check(); err != nil {
		return Issued{}, err
	}
	if err := checkPerson(ctx, tx, tenant, g); err != nil {
		return Issued{}, err
	}
	if err := checkSession(ctx, tx, tenant, g); err != nil {
		return Issued{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Issued{}, err
	}
	made := Issued{Token: newToken(g.Role), Principal: g.principal(tenant, TokenID(id))}
	hash := made.Token.hash()
	p := &dbsqlc.ApiTokenInsertParams{
		TokenID: id, TenantID: tenant, Name: g.Name, Role: string(g.Role), TokenHash: hash[:],
		EmployeeID: postgres.OrNull(g.Employee), SessionID: postgres.OrNull(made.Principal.Session), OperatorID: postgres.OrNull(g.Operator),
		Scopes: converted[string](g.Scopes), Tools: g.Tools, IssuedBy: postgres.OrNull(string(g.By)),
		Automations: g.Names.Automations, Employees: g.Names.Employees, Sessions: g.Names.Sessions, ExternalIDPrefix: postgres.OrNull(g.Names.ExternalIDPrefix), Maker: postgres.OrNull(g.Maker), ShownTo: postgres.OrNull(g.ShownTo), SecretUntil: g.secretUntil,
	}
	if g.TTL > 0 {
		made.ExpiresAt = new(now.Add(g.TTL).UTC())
		p.ExpiresAt = made.ExpiresAt
	}
	return made, violations.Fault(dbsqlc.New().ApiTokenInsert(ctx, tx, p))
}

// checkPerson rejects a token for a person that does not exist or has fewer
// rights.
func checkPerson(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, g Grant) error {
	if g.Operator == uuid.Nil {
		return nil
	}
	o, err := OperatorByID(ctx, tx, tenant, g.Operator)
	if err != nil {
		return err
	}
	if o.Disabled || o.Effective() == "" || g.Role.atMost(o.Effective()) != g.Role {
		return fault.New(fault.Invalid, "the person is disabled, or of a lesser role than the token would be")
	}
	return nil
}

// checkSession rejects a session of an agent for a token of another role, and
// vice versa: a grant for an agent's session applies to that agent's proposals.
func checkSession(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, g Grant) error {
	if g.Session == "" {
		return nil
	}
	taken, err := dbsqlc.New().SessionTaken(ctx, tx, &dbsqlc.SessionTakenParams{TenantID: tenant, SessionID: g.Session, Agent: g.Role == RoleAgent})
	if err == nil && taken {
		return fault.New(fault.Conflict, "a token of another role has the session %q; agents share sessions with agents alone", g.Session)
	}
	return err
}

// Credential is a stored token without its secret. Grant.TTL is not stored.
type Credential struct {
	ID TokenID
	Grant
	CreatedAt time.Time
	// ExpiresAt, RevokedAt and RotatedAt are nil for events that neither
	// happened nor will happen.
	ExpiresAt, RevokedAt, RotatedAt *time.Time
	// LastUsedAt is accurate to about half a minute; nil means never.
	LastUsedAt *time.Time
	// PreviousUntil is the expiry of the secret before the last rotation.
	PreviousUntil *time.Time
}

// Credentials lists a tenant's tokens, newest first, in a transaction of its
// scope: those before a token, up to a limit. Without everything it omits
// expired and revoked ones. The zero id begins at the newest.
func Credentials(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, before TokenID, most int, everything bool) ([]Credential, error) {
	if before == (TokenID{}) {
		before = TokenID(uuid.Max)
	}
	rows, err := dbsqlc.New().ApiTokens(ctx, tx, &dbsqlc.ApiTokensParams{
		TenantID: tenant, Everything: everything, Before: uuid.UUID(before), Most: int32(min(most, 1000)),
	})
	return postgres.Map(rows, err, credentialFromRow)
}

// JSON returns the token in the form of the API.
func (c Credential) JSON() wire.Token {
	return wire.Token{
		ID: c.ID.String(), TokenGrant: c.principal(envelope.TenantID{}, c.ID).Grant(), IssuedBy: c.By, CreatedAt: c.CreatedAt,
		ExpiresAt: c.ExpiresAt, LastUsedAt: c.LastUsedAt, RotatedAt: c.RotatedAt, PreviousUntil: c.PreviousUntil, RevokedAt: c.RevokedAt,
	}
}

func credentialFromRow(r dbsqlc.ApiTokensRow) Credential {
	return Credential{
		ID: TokenID(r.TokenID), CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, RevokedAt: r.RevokedAt, RotatedAt: r.RotatedAt,
		LastUsedAt: r.LastUsedAt, PreviousUntil: r.PreviousUntil,
		Grant: Grant{
			Name: r.Name, Role: Role(r.Role), Employee: postgres.OrZero(r.EmployeeID), Session: postgres.OrZero(r.SessionID),
			Operator: postgres.OrZero(r.OperatorID), Scopes: converted[Scope](r.Scopes), Tools: r.Tools, By: envelope.Actor(postgres.OrZero(r.IssuedBy)),
			Names: Names{r.Automations, r.Employees, r.Sessions, postgres.OrZero(r.ExternalIDPrefix)}, Maker: postgres.OrZero(r.Maker),
		},
	}
}

// CredentialByID finds a token, in a transaction of its tenant's scope. If there
// is none or it is revoked, the error is fault.NotFound.
func CredentialByID(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id TokenID) (Credential, error) {
	c, _, err := credential(ctx, tx, tenant, id)
	return c, err
}

func credential(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id TokenID) (c Credential, hash []byte, err error) {
	r, err := dbsqlc.New().ApiTokenGet(ctx, tx, &dbsqlc.ApiTokenGetParams{TenantID: tenant, TokenID: uuid.UUID(id)})
	if errors.Is(err, pgx.ErrNoRows) || err == nil && r.RevokedAt != nil {
		return c, nil, errNoToken(id)
	}
	return credentialFromRow(dbsqlc.ApiTokensRow(r)), r.TokenHash, err
}

func errNoToken(id TokenID) error { return fault.New(fault.NotFound, "no token %s that is valid", id) }

// MaxOverlap is the maximum time for which two secrets of a token are valid.
const MaxOverlap = 7 * 24 * time.Hour

// Rotation configures the rotation of a token's secret.
type Rotation struct {
	// Overlap is how long the old secret stays valid; zero ends it immediately,
	// together with one that is still valid from a previous rotation.
	Overlap time.Duration
	// TTL is the new validity of the token from now; zero keeps its expiry.
	TTL time.Duration
	// By is the principal that obtains the secret.
	By Principal
}

// Rotate replaces the secret of a token, in a transaction of its tenant's
// scope. The token keeps its id, its session, and its proposals. If it does not
// exist, the error is fault.NotFound. fault.Conflict means that it was rotated
// concurrently, or that the overlap of the previous rotation has not ended.
func Rotate(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id TokenID, how Rotation, now time.Time) (Issued, error) {
	if how.Overlap < 0 || how.Overlap > MaxOverlap || how.TTL < 0 {
		return Issued{}, fault.New(fault.Invalid, "the overlap of two secrets must be at most seven days, and a token cannot expire before it is rotated")
	}
	was, hash, err := credential(ctx, tx, tenant, id)
	if err != nil {
		return Issued{}, err
	}
	if was.ExpiresAt != nil && !now.Before(*was.ExpiresAt) && how.TTL == 0 {
		return Issued{}, fault.New(fault.Conflict, "the token has expired; give its new validity")
	}
	if how.Overlap > 0 && was.PreviousUntil != nil && now.Before(*was.PreviousUntil) {
		return Issued{}, fault.New(fault.Conflict, "the token was rotated before, and both its secrets are valid until %s; rotate without overlap to end the older one", was.PreviousUntil.UTC().Format(time.RFC3339))
	}
	made := Issued{Token: newToken(was.Role), ExpiresAt: was.ExpiresAt, Principal: was.principal(tenant, id)}
	if how.TTL > 0 {
		made.ExpiresAt = new(now.Add(how.TTL).UTC())
	}
	fresh := made.Token.hash()
	p := &dbsqlc.ApiTokenRotateParams{TokenHash: fresh[:], TenantID: tenant, TokenID: uuid.UUID(id), Was: hash, ShownTo: postgres.OrNull(how.By.Shown(was.Role))}
	if how.TTL > 0 {
		p.ExpiresAt = made.ExpiresAt
	}
	if how.Overlap > 0 {
		p.PreviousHash, p.PreviousUntil = hash, new(now.Add(how.Overlap).UTC())
	}
	// A person who takes the secret of a program's login over ends its refresh tokens.
	if err := dbsqlc.New().ProgramLoginDelete(ctx, tx, &dbsqlc.ProgramLoginDeleteParams{TenantID: tenant, TokenID: uuid.UUID(id)}); err != nil {
		return Issued{}, err
	}
	n, err := dbsqlc.New().ApiTokenRotate(ctx, tx, p)
	return made, postgres.Affected(n, violations.Fault(err), fault.New(fault.Conflict, "the token was rotated or revoked meanwhile"))
}

// Revoke revokes a token, in a transaction of its tenant's scope. It may remain
// in caches for CacheFor. Browser sessions that act as the token end with it.
// The error is fault.NotFound if it does not exist or it is already revoked,
// and fault.Conflict for that of the last owner.
func Revoke(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id TokenID, by envelope.Actor) error {
	return keepOwner(ctx, tx, tenant, func() error {
		n, err := dbsqlc.New().ApiTokenRevoke(ctx, tx, &dbsqlc.ApiTokenRevokeParams{TenantID: tenant, TokenID: uuid.UUID(id)})
		if err := postgres.Affected(n, err, errNoToken(id)); err != nil {
			return err
		}
		ended, err := dbsqlc.New().TokenSessionsDelete(ctx, tx, &dbsqlc.TokenSessionsDeleteParams{TenantID: tenant, TokenID: uuid.UUID(id)})
		if err != nil {
			return err
		}
		return recordEnds(ctx, tx, tenant, by, endTokenRevoked, ended...)
	})
}

// keepOwner runs a change that may remove an owner, and rejects it if no owner
// could act any more. Such changes of one tenant are serialized, so that two
// owners cannot remove each other. It accepts that a tenant without owners still
// has none.
func keepOwner(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, change func() error) error {
	q := dbsqlc.New()
	if err := q.TenantLock(ctx, tx, tenant); err != nil {
		return err
	}
	before, err := q.OwnersCount(ctx, tx, tenant)
	if err != nil {
		return err
	}
	if err := change(); err != nil || before == 0 {
		return err
	}
	after, err := q.OwnersCount(ctx, tx, tenant)
	if err == nil && after == 0 {
		return fault.Coded(wire.CodeLastOwner, fault.Conflict, "this would remove the tenant's last owner; create another one first")
	}
	return err
}

// lookUp finds the holder of a token by its hash, and the expiry; the zero time
// means none. The function reads across tenants; sqlc does not support its
// columns, so the statement is written here.
func lookUp(ctx context.Context, tx pgx.Tx, hash []byte) (Principal, time.Time, error) {
	const query = `SELECT token_id, tenant_id, name, role, employee_id, session_id, operator_id, operator_role, scopes, tools, automations, employees, sessions, coalesce(token_external_id_prefix(tenant_id, token_id), ''), coalesce(token_resource(tenant_id, token_id), ''), maker, valid_until,
		CASE WHEN operator_id IS NULL AND role <> 'agent' THEN person_role(tenant_id, maker) END
		FROM authenticate($1)`
	var (
		token, tenant         uuid.UUID
		name, role            string
		employee, operator    *uuid.UUID
		session, operatorRole *string
		narrowed, tools       []string
		names                 Names
		resource              string
		maker                 *uuid.UUID
		until                 *time.Time
		makerRole             *string
	)
	err := tx.QueryRow(ctx, query, hash).Scan(&token, &tenant, &name, &role, &employee, &session, &operator, &operatorRole, &narrowed, &tools, &names.Automations, &names.Employees, &names.Sessions, &names.ExternalIDPrefix, &resource, &maker, &until, &makerRole)
	if err != nil {
		return Principal{}, time.Time{}, postgres.Found(err, ErrToken)
	}
	g := Grant{
		Name: name, Role: Role(role), Employee: envelope.EmployeeID(postgres.OrZero(employee)), Session: postgres.OrZero(session),
		Operator: postgres.OrZero(operator), Scopes: converted[Scope](narrowed), Tools: tools,
		Names: names, Maker: postgres.OrZero(maker),
	}
	switch {
	case operator != nil:
		g.Role = g.Role.atMost(Role(postgres.OrZero(operatorRole)))
	case makerRole != nil && *makerRole == "":
		return Principal{}, time.Time{}, ErrToken // its person has no rights
	case makerRole != nil:
		g.Role = g.Role.atMost(Role(*makerRole))
	}
	who := g.principal(envelope.TenantID(tenant), TokenID(token))
	who.Resource = resource
	return who, postgres.OrZero(until), nil
}

// recordUses stores the last uses of tokens and the last activity of operators,
// across tenants.
func recordUses(ctx context.Context, tx pgx.Tx, ids []uuid.UUID, ats []time.Time) error {
	_, err := tx.Exec(ctx, "SELECT record_uses($1, $2)", ids, ats)
	return err
}

// converted converts scopes to or from their stored form, in order. nil stays
// nil. An unknown scope is kept, and gives no right.
func converted[To, From ~string](all []From) []To {
	if all == nil {
		return nil
	}
	out := make([]To, len(all))
	for i, s := range all {
		out[i] = To(s)
	}
	slices.Sort(out)
	return out
}
