package accounts

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const (
	// consentFor is how long an agent may act unless the person chooses otherwise,
	// maxConsent the longest choice.
	consentFor = 30 * request.Day
	maxConsent = 365 * request.Day
)

// programBody is the body of POST /auth/program.
type programBody struct{ Request string }

// ShowProgram handles POST /auth/program.
func ShowProgram(c *request.Call, body programBody) error {
	p, err := pending(c, body.Request)
	if err != nil {
		return err
	}
	shown := wire.ProgramRequest{Program: p.Program, Scopes: []string{}, ExpiresAt: p.Until.UTC()}
	shown.RedirectHost, shown.Local = p.RedirectHost()
	if p.Host != "" {
		shown.VouchedBy = &p.Host
	}
	for _, scope := range p.Scopes {
		shown.Scopes = append(shown.Scopes, string(scope))
	}
	why := c.Routes.Admit(c.By, "consentToProgram")
	if why == nil {
		why = c.By.MayGrant(agent(c.By, p, "agent", c.By.Tools, consentFor))
	}
	shown.MayConsent = why == nil
	if why != nil {
		shown.WhyNot = request.Detail(why)
	}
	return c.JSON(http.StatusOK, shown)
}

// consentBody is the body of POST /auth/consent.
type consentBody struct {
	Request   string
	Agree     bool
	Name      string
	Tools     []string
	ExpiresIn envelope.Duration `json:"expires_in"`
}

// Consent handles POST /auth/consent.
func Consent(c *request.Call, body consentBody) error {
	p, err := pending(c, body.Request)
	if err != nil {
		return err
	}
	if !body.Agree {
		c.Browser.EndConsent(c.W, c.R, p.Browser)
		return c.JSON(http.StatusOK, wire.ConsentLocation{Location: c.OAuth.Denied(p)})
	}
	if err := request.CheckDuration("/expires_in", body.ExpiresIn, time.Minute, maxConsent); body.ExpiresIn != 0 && err != nil {
		return err
	}
	if body.Name == "" {
		return request.Invalid("/name", envelope.RuleRequired, "must name the agent")
	}
	g := agent(c.By, p, body.Name, body.Tools, cmp.Or(time.Duration(body.ExpiresIn), consentFor))
	if err := c.By.MayGrant(g); err != nil {
		return err
	}
	var code identity.Token
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		made, issued, err := identity.Consent(ctx, tx, c.By.Tenant, g, p.ProgramLogin, time.Now())
		if err != nil {
			return err
		}
		code = made
		subject, detail := issued.AuditItem()
		detail["program"], detail["redirect_uri"] = p.Program, p.RedirectURI
		if p.Host != "" {
			detail["client_id"] = p.ClientID
		}
		c.Detail = detail
		return c.RecordChange(ctx, tx, subject)
	})
	if err != nil {
		return err
	}
	c.Browser.EndConsent(c.W, c.R, p.Browser)
	return c.JSON(http.StatusOK, wire.ConsentLocation{Location: c.OAuth.Consented(p, code)})
}

// agent returns the rights of a program's agent: those that it asked for, within
// those of the person. It ends with a person who logged in, who does not decide about
// its proposals.
func agent(by identity.Principal, p identity.PendingProgram, name string, tools []string, ttl time.Duration) identity.Grant {
	return identity.Grant{
		Name: name, Role: identity.RoleAgent, Operator: by.Operator, ShownTo: by.Shown(identity.RoleAgent),
		Scopes: p.Scopes, Tools: tools, TTL: ttl, By: by.Actor(),
	}
}

// pending returns the request of a program that a browser session asks about.
func pending(c *request.Call, text string) (identity.PendingProgram, error) {
	if c.OAuth == nil {
		return identity.PendingProgram{}, fault.New(fault.NotFound, "logins of programs are disabled; set COUNTERSIGN_OAUTH=true for the API")
	}
	if c.By.Browser.ID == uuid.Nil {
		return identity.PendingProgram{}, fault.Coded(wire.CodeNoSession, fault.Denied, "only a person in a browser can consent; log in there")
	}
	p, ok := c.OAuth.Pending(text, time.Now())
	if !ok {
		return identity.PendingProgram{}, fault.Coded(wire.CodeLoginExpired, fault.Conflict, "the request of the program has expired; connect again from the program")
	}
	if !c.Browser.BeganConsent(c.R, p.Browser) {
		return identity.PendingProgram{}, fault.Coded(wire.CodeLoginExpired, fault.Denied, "the request was answered, or began in another browser; connect again from the program, in this browser")
	}
	return p, nil
}
