package identity

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

const (
	maxName = 200
	// maxTools bounds the patterns of a token, since every decision about its
	// holder's proposals evaluates them.
	maxTools = 200
)

// Grant is the set of rights of a new token.
type Grant struct {
	// Name is shown with the holder's actions; 1 to 200 bytes.
	Name string
	Role Role
	// Employee, if set, is the employee for whom the holder proposes.
	Employee envelope.EmployeeID
	// Session, if set, is the session of the holder's proposals. An agent's
	// token without one gets a new session.
	Session string
	// Operator, if set, is the person behind the token. The token has at most
	// the rights of the person, and is rejected while the person is disabled.
	Operator uuid.UUID
	// Scopes restrict the rights; nil means all rights of the role.
	Scopes []Scope
	// Tools are patterns, in the syntax of policy.ParsePattern, of the tools
	// that are visible and available to the holder; nil means all.
	Tools []string
	// Names are the automations, employees and sessions that the holder's
	// proposals may name, in addition to Employee; sessions only without
	// Session.
	Names Names
	// Maker is the person who creates the token; zero if it is created on the
	// database.
	Maker uuid.UUID
	// ShownTo is the person who must not decide about an agent's proposals with
	// this token; zero if none. It is set by Principal.Shown.
	ShownTo uuid.UUID
	// TTL is the validity of the token; zero means until it is revoked.
	TTL time.Duration
	// By is the name of the requester, for the list of tokens.
	By envelope.Actor

	// secretUntil is when its first secret expires; nil means with the token.
	secretUntil *time.Time
}

// principal returns the holder of a token with the grant. An agent always has a
// session, so that "its own session" is well-defined.
func (g Grant) principal(tenant envelope.TenantID, id TokenID) Principal {
	if g.Session == "" && g.Role == RoleAgent {
		g.Session = "token-" + id.String()
	}
	return Principal{
		Token: id, Tenant: tenant, Name: g.Name, Role: g.Role, Employee: g.Employee, Session: g.Session, Operator: g.Operator,
		Scopes: g.Scopes, Tools: g.Tools, Names: g.Names, Maker: g.Maker,
	}
}

// Grant returns the owner and the rights of the principal's token in the form of
// the API.
func (p Principal) Grant() wire.TokenGrant {
	grant := wire.TokenGrant{
		Name: p.Name, Role: string(p.Role), SessionID: p.Session, Scopes: converted[string](p.Scopes), Tools: p.Tools,
		Automations: p.Names.Automations, Employees: p.Names.Employees, Sessions: p.Names.Sessions,
		ExternalIDPrefix: p.Names.ExternalIDPrefix,
	}
	if p.Employee != (envelope.EmployeeID{}) {
		grant.EmployeeID = p.Employee.String()
	}
	if p.Operator != uuid.Nil {
		grant.OperatorID = p.Operator.String()
	}
	return grant
}

func (g Grant) check() error {
	switch {
	case g.Name == "" || len(g.Name) > maxName || Plain(g.Name, maxName) != g.Name:
		return fault.New(fault.Invalid, "a token's name must be 1 to 200 bytes long, without line breaks or other invisible characters")
	case !g.Role.Valid():
		return fault.New(fault.Invalid, "a token's role must be owner, admin, operator, viewer or agent")
	case g.TTL < 0:
		return fault.New(fault.Invalid, "a token cannot expire before it is made")
	}
	if err := checkScopes(g.Scopes); err != nil {
		return err
	}
	if err := g.Names.check(); err != nil {
		return err
	}
	return checkTools(g.Tools)
}

// checkTools rejects invalid patterns, and an empty list, which could be
// mistaken for no list.
func checkTools(patterns []string) error {
	if patterns != nil && len(patterns) == 0 || len(patterns) > maxTools {
		return fault.New(fault.Invalid, "tools must be 1 to %d patterns; omit them for all tools", maxTools)
	}
	for i, text := range patterns {
		if _, err := policy.ParsePattern(text); err != nil {
			return fault.New(fault.Invalid, "tool %d is not of the form source:tool, source:*, *:tool or *", i+1)
		}
	}
	return nil
}

// MayGrant reports whether a principal may create a token with a grant, or
// rotate its secret. A principal cannot grant more than it has. Owners may grant
// all roles, administrators only roles below their own. A principal restricted
// to scopes or tools may grant only those. A session, to which grants and rules
// may refer, may be granted only with the right to loosen policy. Only owners
// may grant tokens, other than agents', that act as another person. The error is
// fault.Denied.
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
	names := g.Names
	if g.Employee != (envelope.EmployeeID{}) && g.Employee != p.Employee {
		names.Employees = append([]string{g.Employee.String()}, names.Employees...)
	}
	if !p.MayName().covers(names) {
		return fault.New(fault.Denied, "a token hands out only the automations, employees and sessions that it may name; all of them takes an administrator's with the scope %s", PolicyWrite)
	}
	if g.Session != "" && g.Session != p.Session && !p.MayLoosen() {
		return fault.New(fault.Denied, "a token hands out no session but its own; another one, or the secret of an agent, takes an administrator's with the scope %s", PolicyWrite)
	}
	if g.Operator != uuid.Nil && g.Operator != p.Operator && g.Role != RoleAgent {
		return p.mayActForOthers()
	}
	return nil
}

// mayActForOthers returns nil if a principal may obtain the secret of a token
// that acts as another person. Owners may, since they may also add people. The
// error is fault.Denied.
func (p Principal) mayActForOthers() error {
	if p.Role != RoleOwner || p.narrowed() {
		return fault.New(fault.Denied, "only an owner, with a token that is not narrowed, may make or change a token that acts as another person")
	}
	return nil
}

// MayRotate returns nil if a principal may obtain a new secret of a token. It
// must be allowed to create the token; if the principal is narrowed, the token
// must not act as another person. The error is fault.Denied.
func (p Principal) MayRotate(c Credential) error {
	if err := p.MayGrant(c.Grant); err != nil {
		return err
	}
	if c.Role != RoleAgent && p.narrowed() && c.principal(p.Tenant, c.ID).Person() != p.Person() {
		return fault.New(fault.Denied, "a token that is narrowed gives no new secret to a token that acts as another person")
	}
	return nil
}

// Shown returns the person who must not decide about proposals with a token
// whose secret the principal obtains, or zero. The holder of an agent's secret
// can propose with it. Owners are exempt, since they can act as several people
// anyway.
func (p Principal) Shown(role Role) uuid.UUID {
	if role != RoleAgent || p.mayActForOthers() == nil {
		return uuid.Nil
	}
	return p.Person()
}

// MayRevoke reports whether a principal may revoke a token with a grant. It need
// not have the rights itself, but must be allowed to grant the role. The error
// is fault.Denied.
func (p Principal) MayRevoke(g Grant) error {
	if !p.mayMake(g.Role) {
		return fault.New(fault.Denied, "a token of the role %s may not revoke one of the role %s", p.Role, g.Role)
	}
	return nil
}

// mayMake reports whether a principal may grant a role.
func (p Principal) mayMake(role Role) bool {
	return p.Role == RoleOwner || p.Role == RoleAdmin && role.Valid() && role.rank() < RoleAdmin.rank()
}

// covered reports whether every tool of a pattern is covered by other patterns.
// An invalid pattern is not covered.
func covered(text string, by []string) bool {
	want, err := policy.ParsePattern(text)
	return err == nil && want.Within(by)
}

// Operator is a person, identified by tokens, Slack and an OpenID Connect
// issuer.
type Operator struct {
	ID uuid.UUID
	// Name is shown with the person's actions; 1 to 200 bytes.
	Name string
	// Email is for display only and does not identify the person.
	Email string
	// Issuer and Subject identify the person at login; both or neither.
	Issuer, Subject string
	// Role is the person's role from the last login; "" if none.
	Role Role
	// RoleSet is the role set by hand, which takes precedence over Role; "" if
	// none.
	RoleSet Role
	// SlackTeam and SlackUser identify the person in Slack; both or neither.
	SlackTeam, SlackUser string
	CreatedAt            time.Time
	// Disabled is set if all credentials of the person are rejected.
	Disabled   bool
	DisabledAt *time.Time
	// LastSeenAt is accurate to about half a minute; nil means never.
	LastSeenAt *time.Time
}

// Effective returns the person's effective role; "" if none.
func (o Operator) Effective() Role {
	return cmp.Or(o.RoleSet, o.Role)
}

// principal returns the principal of the person without a token.
func (o Operator) principal(tenant envelope.TenantID) Principal {
	return Principal{Token: TokenID(o.ID), Tenant: tenant, Name: o.Name, Role: o.Effective(), Operator: o.ID}
}

func (o Operator) check() error {
	const maxText = 500
	switch {
	case o.Name == "" || len(o.Name) > maxName || Plain(o.Name, maxName) != o.Name:
		return fault.New(fault.Invalid, "a person's name must be 1 to 200 bytes long, without line breaks or other invisible characters")
	case o.RoleSet != "" && o.RoleSet.rank() == 0:
		return fault.New(fault.Invalid, "a person's role must be owner, admin, operator or viewer")
	case (o.Issuer == "") != (o.Subject == ""):
		return fault.New(fault.Invalid, "give both the issuer and the subject, or neither")
	case (o.SlackTeam == "") != (o.SlackUser == ""):
		return fault.New(fault.Invalid, "give both the Slack team and user, or neither")
	}
	for _, text := range []string{o.Email, o.Issuer, o.Subject, o.SlackTeam, o.SlackUser} {
		if len(text) > maxText || Plain(text, maxText) != text {
			return fault.New(fault.Invalid, "a person's e-mail address, issuer, subject and Slack ids must be at most 500 bytes long, without invisible characters")
		}
	}
	return nil
}

// mayChange reports whether a principal may change a person from was to is. It
// must be allowed to grant the roles of both; only owners may grant
// administrators. was is the zero Operator for a new person. Only an owner may
// change the login of a person who has logged in before, since that makes it
// another person. The error is fault.Denied.
func (p Principal) mayChange(was, is Operator) error {
	for _, role := range []Role{was.Role, was.RoleSet, is.RoleSet} {
		if role != "" && !p.mayMake(role) {
			return fault.New(fault.Denied, "a token of the role %s may not make or change a person of the role %s", p.Role, role)
		}
	}
	if given := cmp.Or(is.RoleSet, was.Effective()); given.rank() > RoleViewer.rank() && p.narrowed() && !sameRights(was, is) {
		return errNarrowed
	}
	if was.Issuer != "" && (was.Issuer != is.Issuer || was.Subject != is.Subject) && p.Role != RoleOwner {
		return fault.New(fault.Denied, "only an owner may change how a person logs in")
	}
	return nil
}

// narrowed reports whether a principal has fewer rights than its role.
func (p Principal) narrowed() bool { return p.Scopes != nil || p.Tools != nil }

// errNarrowed is the error for a narrowed token that would give a person more
// rights than its own: a person who logs in has all rights of a role.
var errNarrowed = fault.New(fault.Denied, "a token that is narrowed to scopes or tools gives nobody a role above viewer, nor a login to somebody who has one")

// sameRights reports whether a person keeps the role and all identities.
func sameRights(was, is Operator) bool {
	return was.RoleSet == is.RoleSet && was.Issuer == is.Issuer && was.Subject == is.Subject && was.SlackTeam == is.SlackTeam && was.SlackUser == is.SlackUser &&
		(is.Disabled || !was.Disabled)
}

// MayTrust returns nil if a principal may configure an issuer. The error is
// fault.Denied.
func (p Principal) MayTrust(issuer Provider) error {
	best := issuer.DefaultRole
	for _, role := range issuer.Roles {
		if role.rank() > best.rank() {
			best = role
		}
	}
	if p.narrowed() && best.rank() > RoleViewer.rank() {
		return errNarrowed
	}
	return nil
}

// Plain makes untrusted text fit for display as a name: it removes invisible
// characters and truncates it at a character to most bytes.
func Plain(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, text)
	text = strings.TrimSpace(text)
	for len(text) > most {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}
