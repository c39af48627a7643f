package identity

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Narrowing takes rights from a token. Its fields replace those of the token;
// zero ones leave the token's as they are.
type Narrowing struct {
	Scopes []Scope
	Tools  []string
	Names
	// TTL is the new validity of the token from now.
	TTL time.Duration
}

// ruleWider is the rule of a field that would give a token more than it has.
const ruleWider envelope.Rule = "wider"

// checkWithin returns nil if a token has all rights of the narrowing. The error
// is an *envelope.InvalidError with a pointer to each right that it lacks. Names
// that the token does not list are not added: without a list an agent may name
// none.
func (n Narrowing) checkWithin(was Credential, until *time.Time) error {
	var p check.Problems
	each := func(field string, wanted []string, had func(string) bool) {
		for i, one := range wanted {
			if !had(one) {
				p.Add("/"+field+"/"+strconv.Itoa(i), ruleWider, "the token lacks it; narrowing only takes rights away")
			}
		}
	}
	each("scopes", converted[string](n.Scopes), func(s string) bool { return was.Scopes == nil || slices.Contains(was.Scopes, Scope(s)) })
	each("tools", n.Tools, func(t string) bool { return was.Tools == nil || covered(t, was.Tools) })
	each("automations", n.Automations, func(a string) bool {
		return was.Names.covers(Names{Automations: []string{a}, ExternalIDPrefix: was.Names.ExternalIDPrefix})
	})
	each("employees", n.Employees, func(e string) bool {
		return was.Names.covers(Names{Employees: []string{e}, ExternalIDPrefix: was.Names.ExternalIDPrefix})
	})
	each("sessions", n.Sessions, func(s string) bool {
		return was.Names.covers(Names{Sessions: []string{s}, ExternalIDPrefix: was.Names.ExternalIDPrefix})
	})
	if n.ExternalIDPrefix != "" && !strings.HasPrefix(n.ExternalIDPrefix, was.Names.ExternalIDPrefix) {
		p.Add("/external_id_prefix", ruleWider, "must begin with the prefix of the token")
	}
	if until != nil && was.ExpiresAt != nil && until.After(*was.ExpiresAt) {
		p.Add("/expires_in", ruleWider, "the token ends before that")
	}
	return p.Err()
}

// Narrow takes rights from a token, in a transaction of its tenant's scope, and
// returns it as it is then. Changes of a tenant's tokens wait for each other, so
// that each is within the one before. The error is fault.Invalid for a right
// that the token lacks, fault.NotFound for no valid token, and fault.Conflict
// for that of the last owner. The caller must have checked MayRevoke.
func Narrow(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id TokenID, n Narrowing, now time.Time) (is Credential, err error) {
	wanted := Grant{Name: "a", Role: RoleAgent, Scopes: n.Scopes, Tools: n.Tools, Names: n.Names}
	if err := wanted.check(); err != nil {
		return is, err
	}
	var until *time.Time
	if n.TTL > 0 {
		until = new(now.Add(n.TTL).UTC())
	}
	err = keepOwner(ctx, tx, tenant, func() error {
		was, err := CredentialByID(ctx, tx, tenant, id)
		if err != nil {
			return err
		}
		if was.ExpiresAt != nil && !now.Before(*was.ExpiresAt) {
			return fault.New(fault.Conflict, "the token has expired")
		}
		if err := n.checkWithin(was, until); err != nil {
			return err
		}
		changed, err := dbsqlc.New().ApiTokenNarrow(ctx, tx, &dbsqlc.ApiTokenNarrowParams{
			TenantID: tenant, TokenID: uuid.UUID(id), Scopes: converted[string](n.Scopes), Tools: n.Tools, Automations: n.Automations,
			Employees: n.Employees, Sessions: n.Sessions, ExternalIDPrefix: postgres.OrNull(n.ExternalIDPrefix), ExpiresAt: until,
		})
		if err := postgres.Affected(changed, err, errNoToken(id)); err != nil {
			return err
		}
		is, err = CredentialByID(ctx, tx, tenant, id)
		return err
	})
	return is, err
}
