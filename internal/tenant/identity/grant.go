package identity

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

const (
	maxName = 200
	// maxTools bounds the patterns of a token, each of which every decision
	// about its holder's proposals looks at.
	maxTools = 200
)

// Grant is what a new token is to allow.
type Grant struct {
	// Name is shown wherever the holder did something; 1 to 200 bytes.
	Name string
	Role Role
	// Employee, if set, is on whose behalf its holder proposes.
	Employee envelope.EmployeeID
	// Session, if set, is the session that its holder proposes in. An agent's
	// token without one is given a session of its own.
	Session string
	// Operator, if set, is the person behind it. The token is never more than
	// the person, and is refused while the person is disabled.
	Operator uuid.UUID
	// Scopes narrow what it may do; nil is all that the role may.
	Scopes []Scope
	// Tools are patterns, as policy.ParsePattern reads them, of the tools that
	// its holder may see and use; nil is all.
	Tools []string
	// TTL is how long the token is valid; zero means until it is revoked.
	TTL time.Duration
	// By is the name of who asked for it, for the list of tokens.
	By string
}

// principal returns the holder of the token with the grant. An agent always has
// a session, so that "its own session" always means something.
func (g Grant) principal(tenant envelope.TenantID, id TokenID) Principal {
	if g.Session == "" && g.Role == RoleAgent {
		g.Session = "token-" + id.String()
	}
	return Principal{
		Token: id, Tenant: tenant, Name: g.Name, Role: g.Role, Employee: g.Employee, Session: g.Session, Operator: g.Operator,
		Scopes: g.Scopes, Tools: g.Tools,
	}
}

func (g Grant) check() error {
	switch {
	case g.Name == "" || len(g.Name) > maxName || plain(g.Name, maxName) != g.Name:
		return fault.New(fault.Invalid, "a token's name is 1 to 200 bytes long, without line breaks or other invisible characters")
	case !g.Role.Valid():
		return fault.New(fault.Invalid, "a token's role is owner, admin, operator, viewer or agent")
	case g.TTL < 0:
		return fault.New(fault.Invalid, "a token cannot expire before it is made")
	}
	if err := checkScopes(g.Scopes); err != nil {
		return err
	}
	return checkTools(g.Tools)
}

// checkTools refuses patterns that are none, and a list that is empty: nobody
// could tell it from no list.
func checkTools(patterns []string) error {
	if patterns != nil && len(patterns) == 0 || len(patterns) > maxTools {
		return fault.New(fault.Invalid, "tools are 1 to %d patterns; leave them out for all tools", maxTools)
	}
	for i, text := range patterns {
		if _, err := policy.ParsePattern(text); err != nil {
			return fault.New(fault.Invalid, "tool %d is not of the form source:tool, source:*, *:tool or *", i+1)
		}
	}
	return nil
}

// MayGrant reports whether a principal may make a token of that grant, or give it
// another secret. Nobody hands out more than it has: owners make all roles, and
// administrators those below their own; whoever is narrowed to scopes or tools
// hands out no others; and only owners hand out tokens, other than agents',
// that act as another person. The error is fault.Denied.
func (p Principal) MayGrant(g Grant) error {
	if !p.mayMake(g.Role) {
		return fault.New(fault.Denied, "a token of the role %s may not make or change one of the role %s", p.Role, g.Role)
	}
	if p.Scopes != nil && (g.Scopes == nil || slices.ContainsFunc(g.Scopes, func(s Scope) bool { return !p.Has(s) })) {
		return fault.New(fault.Denied, "a token that is narrowed to scopes may hand out those alone")
	}
	if p.Tools != nil && (g.Tools == nil || slices.ContainsFunc(g.Tools, func(t string) bool { return !covered(t, p.Tools) })) {
		return fault.New(fault.Denied, "a token that is narrowed to tools may hand out those alone")
	}
	if g.Operator != uuid.Nil && g.Operator != p.Operator && g.Role != RoleAgent && p.Role != RoleOwner {
		return fault.New(fault.Denied, "only an owner may make or change a token that acts as another person")
	}
	return nil
}

// MayRevoke reports whether a principal may revoke a token of that grant: what it
// takes away it need not have itself, but the role must be one that it could
// make. The error is fault.Denied.
func (p Principal) MayRevoke(g Grant) error {
	if !p.mayMake(g.Role) {
		return fault.New(fault.Denied, "a token of the role %s may not revoke one of the role %s", p.Role, g.Role)
	}
	return nil
}

// mayMake reports whether a principal may make others of a role.
func (p Principal) mayMake(role Role) bool {
	return p.Role == RoleOwner || p.Role == RoleAdmin && role.Valid() && role.rank() < RoleAdmin.rank()
}

// covered reports whether every tool of a pattern is one of some other pattern. A
// pattern that cannot be read covers nothing, and is not covered.
func covered(text string, by []string) bool {
	const all = "*"
	want, err := policy.ParsePattern(text)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(by, func(text string) bool {
		have, err := policy.ParsePattern(text)
		return err == nil && (have.Source == all || have.Source == want.Source) && (have.Action == all || have.Action == want.Action)
	})
}
