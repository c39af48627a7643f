package accounts

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// maxTTL is the longest time that a token is valid, maxOverlap the longest time
// for which the secret before a rotation stays valid.
const (
	maxTTL     = 3650 * request.Day
	maxOverlap = 7 * request.Day
)

// Tokens handles GET /api/v1/tokens. It lists the tokens.
func Tokens(c *request.Call) error {
	read := func(ctx context.Context, tx pgx.Tx, before envelope.ActionID, most int) ([]identity.Credential, error) {
		return identity.Credentials(ctx, tx, c.By.Tenant, identity.TokenID(before), most, c.Query.Get("all") == "true")
	}
	return request.AnswerPage(c, "tokens", read, identity.Credential.JSON, func(t identity.Credential) envelope.ActionID { return envelope.ActionID(t.ID) })
}

// issueTokenBody is the body of POST /api/v1/tokens.
type issueTokenBody struct {
	Name     string
	Role     identity.Role
	Employee envelope.EmployeeID `json:"employee_id"`
	Session  string              `json:"session_id"`
	Operator uuid.UUID           `json:"operator_id"`
	Scopes   []identity.Scope
	Tools    []string
	identity.Names
	TTL envelope.Duration `json:"expires_in"`
}

// IssueToken handles POST /api/v1/tokens. It issues a token.
func IssueToken(c *request.Call, body issueTokenBody) error {
	if err := request.CheckDuration("/expires_in", body.TTL, time.Second, maxTTL); body.TTL != 0 && err != nil {
		return err
	}
	g := identity.Grant{
		Name: body.Name, Role: body.Role, Employee: body.Employee, Session: body.Session, Operator: body.Operator,
		Scopes: body.Scopes, Tools: body.Tools, Names: body.Names, TTL: time.Duration(body.TTL), By: c.By.Actor(),
	}
	if g.Role != identity.RoleAgent {
		g.Maker = c.By.Person() // a token for no person is one of its maker's
	}
	g.ShownTo = c.By.Shown(g.Role)
	if err := c.By.MayGrant(g); err != nil {
		return err
	}
	var made identity.Issued
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if made, err = identity.Issue(ctx, tx, c.By.Tenant, g, time.Now()); err != nil {
			return err
		}
		what, detail := made.AuditItem()
		c.Detail = detail
		return c.RecordChange(ctx, tx, what)
	})
	if err != nil {
		return err
	}
	c.SetLocation("/api/v1/tokens/" + made.Principal.Token.String())
	return c.JSON(http.StatusCreated, made.JSON())
}

// token returns the {id} in the path.
func token(c *request.Call) (identity.TokenID, error) {
	id, err := uuid.Parse(c.R.PathValue("id"))
	if err != nil {
		return identity.TokenID{}, request.Invalid("/path/id", envelope.RuleFormat, "must be a UUID")
	}
	return identity.TokenID(id), nil
}

// mayRotate returns nil if the caller may have a new secret of a token: of a token
// that the caller could have issued, or of its own, whose expiry stays the same.
func mayRotate(c *request.Call, ctx context.Context, tx pgx.Tx, id identity.TokenID, how identity.Rotation) error {
	of, err := identity.CredentialByID(ctx, tx, c.By.Tenant, id)
	if err != nil || id == c.By.Token && how.TTL == 0 {
		return err
	}
	return c.By.MayRotate(of)
}

// RotateToken handles POST /api/v1/tokens/{id}/rotate. It gives a token a new
// secret.
func RotateToken(c *request.Call) error {
	var body wire.Rotation
	id, err := token(c)
	if err == nil {
		err = c.Decode(&body)
	}
	if err == nil {
		err = request.CheckDuration("/overlap", body.Overlap, 0, maxOverlap)
	}
	if err == nil && body.ExpiresIn != 0 {
		err = request.CheckDuration("/expires_in", body.ExpiresIn, time.Second, maxTTL)
	}
	if err != nil {
		return err
	}
	how, now := identity.Rotation{Overlap: time.Duration(body.Overlap), TTL: time.Duration(body.ExpiresIn), By: c.By}, time.Now()
	var made identity.Issued
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := mayRotate(c, ctx, tx, id, how); err != nil {
			return err
		}
		var err error
		if made, err = identity.Rotate(ctx, tx, c.By.Tenant, id, how, now); err != nil {
			return err
		}
		c.Detail = map[string]any{"token_id": id, "overlap": body.Overlap, "expires_at": made.ExpiresAt}
		return c.RecordChange(ctx, tx, "token "+id.String()+" rotated")
	})
	if err != nil {
		return err
	}
	c.Auth.Forget(id)
	answer := made.JSON()
	if how.Overlap > 0 {
		answer.PreviousUntil = new(now.Add(how.Overlap).UTC())
	}
	return c.JSON(http.StatusOK, answer)
}

// narrowTokenBody is the body of POST /api/v1/tokens/{id}/narrow.
type narrowTokenBody struct {
	Scopes []identity.Scope
	Tools  []string
	identity.Names
	TTL *envelope.Duration `json:"expires_in"`
}

// NarrowToken handles POST /api/v1/tokens/{id}/narrow. It takes rights from a
// token.
func NarrowToken(c *request.Call) error {
	var body narrowTokenBody
	id, err := token(c)
	if err == nil {
		err = c.Decode(&body)
	}
	n := identity.Narrowing{Scopes: body.Scopes, Tools: body.Tools, Names: body.Names}
	if err == nil && body.TTL != nil {
		n.TTL = time.Duration(*body.TTL)
		err = request.CheckDuration("/expires_in", *body.TTL, time.Second, maxTTL)
	}
	if err != nil {
		return err
	}
	var is identity.Credential
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		of, err := identity.CredentialByID(ctx, tx, c.By.Tenant, id)
		if err == nil && id != c.By.Token {
			err = c.By.MayRevoke(of.Grant)
		}
		if err != nil {
			return err
		}
		if is, err = identity.Narrow(ctx, tx, c.By.Tenant, id, n, time.Now()); err != nil {
			return err
		}
		c.Detail = map[string]any{
			"token_id": id, "scopes": is.Scopes, "tools": is.Tools, "automations": is.Names.Automations, "employees": is.Names.Employees,
			"sessions": is.Names.Sessions, "external_id_prefix": request.NilIfZero(is.Names.ExternalIDPrefix), "expires_at": is.ExpiresAt,
		}
		return c.RecordChange(ctx, tx, "token "+id.String()+" narrowed")
	})
	if err != nil {
		return err
	}
	c.Auth.Forget(id)
	return c.JSON(http.StatusOK, is.JSON())
}

// RevokeToken handles DELETE /api/v1/tokens/{id}. It revokes a token.
func RevokeToken(c *request.Call) error {
	id, err := token(c)
	if err != nil {
		return err
	}
	err = c.Configure("token "+id.String()+" revoked", func(ctx context.Context, tx pgx.Tx) error {
		of, err := identity.CredentialByID(ctx, tx, c.By.Tenant, id)
		if err == nil && id != c.By.Token {
			err = c.By.MayRevoke(of.Grant)
		}
		if err != nil {
			return err
		}
		return identity.Revoke(ctx, tx, c.By.Tenant, id, c.By.Actor())
	})
	if err == nil {
		c.Auth.Forget(id)
	}
	return err
}
