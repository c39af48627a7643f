package identity

import (
	"net/url"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
)

// Provider is an OpenID Connect issuer whose signed tokens are accepted, with
// the rules for its people.
type Provider struct {
	// ID is the tenant's name for the provider.
	ID string
	// Issuer is the issuer's address, exactly as in its tokens and its discovery
	// document: https, or http on this machine.
	Issuer string
	// Audience is the required audience of its tokens, usually the client's id.
	// It must contain the tenant's id or be allowed by AllowAudience; empty
	// means OwnAudience. The pair of issuer and audience belongs to one tenant.
	Audience string
	// Clients are the clients, in addition to the audience itself, to which a
	// token may have been issued (azp or client_id).
	Clients []string
	// RoleClaim is the claim that contains roles: a name, or a JSON Pointer such
	// as /realm_access/roles. Its value is a text or a list of texts. "" means
	// none.
	RoleClaim string
	// Roles maps texts of RoleClaim to roles. The highest one counts.
	Roles map[string]Role
	// DefaultRole is the role of people without a role in their claims:
	// operator, viewer, or "" to refuse them.
	DefaultRole Role
	// AllowedDomains, if there are any, are the domains of which a person must
	// have a verified e-mail address.
	AllowedDomains []string
	// Label is the text of its login button; "" means its id.
	Label string
	// WebClientID is the issuer's client id of the API for logins in a browser,
	// or "".
	WebClientID string
	// WebClientSecret is the encrypted secret of that client; empty for a public
	// client.
	WebClientSecret []byte
}

func (p *Provider) check() error {
	if err := CheckIssuer(p.Issuer); err != nil {
		return err
	}
	const maxText, maxList = 500, 100
	switch {
	case p.Audience == "" || len(p.Audience) > maxText:
		return fault.New(fault.Invalid, "an audience must be 1 to 500 bytes long")
	case len(p.Clients) > maxList || len(p.Roles) > maxList || len(p.AllowedDomains) > maxList:
		return fault.New(fault.Invalid, "a provider may have at most 100 clients, roles and domains each")
	case len(p.RoleClaim) > maxText || p.RoleClaim == "" && len(p.Roles) > 0 || p.RoleClaim != "" && len(p.Roles) == 0:
		return fault.New(fault.Invalid, "a role claim requires roles for its values, and the reverse")
	case len(p.WebClientID) > maxText || p.WebClientID == "" && len(p.WebClientSecret) > 0:
		return fault.New(fault.Invalid, "a web client's id must be at most 500 bytes long, and its secret requires the id")
	case len(p.Label) > maxName || Plain(p.Label, maxName) != p.Label:
		return fault.New(fault.Invalid, "a provider's label must be at most 200 bytes long, without line breaks or other invisible characters")
	case p.DefaultRole != "" && p.DefaultRole != RoleOperator && p.DefaultRole != RoleViewer:
		return fault.New(fault.Invalid, "the default role must be operator or viewer; give higher roles by a claim or by hand")
	}
	for value, role := range p.Roles {
		if value == "" || role.rank() == 0 {
			return fault.New(fault.Invalid, "the values of a role claim stand for owner, admin, operator or viewer")
		}
	}
	for i, domain := range p.AllowedDomains {
		if domain == "" || domain != strings.ToLower(domain) || strings.ContainsAny(domain, "@ */") {
			return fault.New(fault.Invalid, "domain %d is not a domain in lower case, such as acme.com", i+1)
		}
	}
	if slices.Contains(p.Clients, "") {
		return fault.New(fault.Invalid, "a client must have a name")
	}
	return nil
}

// CheckIssuer checks the address of an issuer. It must be protected from others
// on the network. The error is fault.Invalid.
func CheckIssuer(text string) error {
	const maxIssuer = 500
	u, err := url.Parse(text)
	if err != nil || len(text) > maxIssuer || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || !safehttp.Protected(u) {
		return fault.New(fault.Invalid, "an issuer must be an https address without user, query and fragment; on this machine it may be http")
	}
	return nil
}

// Reasons why a person whom an issuer vouches for has no rights here.
var (
	errNoDomain = fault.Coded(wire.CodeNoDomain, fault.Denied, "the account has no verified e-mail address of a domain that may log in here")
	errNoRole   = fault.Coded(wire.CodeNoRole, fault.Denied, "the account has no role here; an administrator can give it one")
	errDisabled = fault.Coded(wire.CodeAccountDisabled, fault.Denied, "the account is disabled here")
)

// admits returns nil if the person of the claims may log in at all.
func (p *Provider) admits(c *claims) error {
	if len(p.AllowedDomains) == 0 {
		return nil
	}
	_, domain, ok := strings.Cut(c.verifiedEmail(), "@")
	if !ok || !slices.Contains(p.AllowedDomains, strings.ToLower(domain)) {
		return errNoDomain
	}
	return nil
}

// roleOf returns the role in the claims, and the value of the role claim that gives it:
// "" for the default role. The role is "" if there is none.
func (p *Provider) roleOf(c *claims) (role Role, value string) {
	role = p.DefaultRole
	if p.RoleClaim == "" {
		return role, ""
	}
	for _, text := range c.texts(p.RoleClaim) {
		if found := p.Roles[text]; found.rank() > role.rank() {
			role, value = found, text
		}
	}
	return role, value
}

// Admission is the result of a login with certain claims.
type Admission struct {
	// Role is the role that the person gets; "" if the login is refused.
	Role Role
	// Reason is the setting that gives the role, or why the login is refused.
	Reason string
	// Name and Email are shown for the person.
	Name, Email string
}

// Preview returns the result of a login with claims, the JSON object of an ID token.
// people are the tenant's, whose roles may be set by hand. It checks neither a signature nor
// times. The error is fault.Invalid for claims that cannot be read.
func (p *Provider) Preview(payload []byte, people []Operator) (Admission, error) {
	c, err := readClaims(payload)
	if err != nil || c.subject == "" {
		return Admission{}, fault.New(fault.Invalid, "invalid claims: give the JSON object of an ID token, with sub")
	}
	a := Admission{Name: c.shownName(), Email: c.verifiedEmail()}
	var person Operator
	for _, o := range people {
		if o.Issuer == p.Issuer && o.Subject == c.subject {
			person = o
		}
	}
	forUs := len(c.audience) == 0 || slices.ContainsFunc([]string{p.Audience, p.WebClientID}, func(of string) bool { return of != "" && slices.Contains(c.audience, of) })
	role, value := p.roleOf(c)
	switch err := p.admits(c); {
	case c.issuer != "" && c.issuer != p.Issuer:
		a.Reason = "the issuer in the claims is not that of the provider"
	case !forUs:
		a.Reason = "the audience in the claims is neither that of the provider nor its web client"
	case err != nil:
		a.Reason = err.Error()
	case person.Disabled:
		a.Reason = errDisabled.Error()
	case person.RoleSet != "":
		a.Role, a.Reason = person.RoleSet, "set by hand for this person"
	case role == "":
		a.Reason = errNoRole.Error()
	case value == "":
		a.Role, a.Reason = role, "the default role of the provider"
	default:
		a.Role, a.Reason = role, "the claim "+p.RoleClaim+" has "+value
	}
	return a, nil
}
