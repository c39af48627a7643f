package accounts

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

func sessionEnds(is identity.BrowserSession) *wire.SessionEnds {
	return &wire.SessionEnds{ID: is.ID.String(), ExpiresAt: is.ExpiresAt, IdleAt: is.IdleAt}
}

// LoginOptions handles GET /auth/options. It lists the ways to log in to an
// organisation. Its answer for an unknown name is that for one without
// providers.
func LoginOptions(c *request.Call) error {
	named := c.Query.Get("organisation")
	name, providers, err := c.Auth.LoginProviders(c.R.Context(), named)
	if err != nil {
		return err
	}
	name = cmp.Or(named, name)
	answer := wire.LoginOptions{Providers: loginProviders(c, name, providers), IdleMinutes: int(identity.SessionIdle / time.Minute)}
	if name != "" {
		answer.Organisation = &name
	}
	return c.JSON(http.StatusOK, answer)
}

// showCodeBody is the body of POST /auth/code.
type showCodeBody struct{ Code string }

// ShowLoginCode handles POST /auth/code. It shows the person whom a login code
// logs in, for confirmation.
func ShowLoginCode(c *request.Call, body showCodeBody) error {
	if err := c.Browser.SameSite(c.R); err != nil {
		return err
	}
	by, err := c.Auth.CodeHolder(c.R.Context(), body.Code)
	if err != nil {
		return err
	}
	c.By = by
	is, err := me(c)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.LoginCodeHolder{Name: is.Name, Role: is.Role, Tenant: is.Tenant})
}

// openSessionBody is the body of POST /auth/session.
type openSessionBody struct{ Code, Token string }

// OpenSession handles POST /auth/session. It opens a session for a login code
// or a token.
func OpenSession(c *request.Call, body openSessionBody) error {
	if err := c.Browser.SameSite(c.R); err != nil {
		return err
	}
	if c.R.Header.Get("Authorization") != "" {
		return fault.Coded(wire.CodeTwoCredentials, fault.Invalid, "send the token in the body only")
	}
	var made identity.OpenedSession
	var err error
	if body.Code != "" {
		made, err = c.Auth.OpenWithCode(c.R.Context(), body.Code, c.Visitor(), time.Now())
	} else {
		made, err = c.Auth.OpenWithToken(c.R.Context(), body.Token, c.Visitor(), time.Now())
	}
	if err != nil {
		return err
	}
	old, _ := c.Browser.Secret(c.R) // of two cookies neither counts
	if err := keepSession(c, made, old); err != nil {
		return err
	}
	return c.Result(me(c))
}

// keepSession stores a new session in the browser of a request, and ends the
// previous one; old is its secret, or empty.
func keepSession(c *request.Call, made identity.OpenedSession, old string) error {
	if old != "" {
		if err := c.Auth.ReplaceSession(c.R.Context(), old); err != nil {
			return err
		}
	}
	c.By = made.Principal
	_ = request.SetCaller(c.R.Context(), c.By) // over a bound, the next request is refused
	c.Browser.SetSession(c.W, c.R, made.Secret.Text())
	return nil
}

// TouchSession handles POST /auth/touch. It notes that a person did something
// in the browser.
func TouchSession(c *request.Call) error {
	if c.By.Browser.ID == uuid.Nil {
		return fault.Coded(wire.CodeNoSession, fault.Conflict, "a token has no session to end")
	}
	is, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (identity.BrowserSession, error) {
		return identity.TouchSession(ctx, tx, c.By)
	})
	if err != nil {
		return err
	}
	c.Auth.Forget(identity.TokenID(is.ID))
	return c.JSON(http.StatusOK, sessionEnds(is))
}

// CloseSession handles POST /auth/logout. It ends the session of the browser.
// It is not an error if that has ended already.
func CloseSession(c *request.Call) error {
	if err := c.Browser.SameSite(c.R); err != nil {
		return err
	}
	if secret, err := c.Browser.Secret(c.R); err == nil && secret != "" {
		if err := c.Auth.LogOut(c.R.Context(), secret); err != nil {
			return err
		}
	}
	c.Browser.SetSession(c.W, c.R, "")
	c.W.Header().Set("Clear-Site-Data", `"cache"`)
	return c.NoContent()
}

// CreateLoginCode handles POST /api/v1/login-codes. It makes a code that opens
// one session for the caller.
func CreateLoginCode(c *request.Call) error {
	links, err := c.Browser.KnownLinks()
	if err != nil {
		return err
	}
	_, shown, _ := strings.Cut(c.R.Header.Get("Authorization"), " ")
	var code wire.LoginCode
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		made, until, err := identity.NewLoginCode(ctx, tx, c.By, shown, time.Now())
		code = wire.LoginCode{Code: made.Text(), URL: links.LoginCode(made.Text()), ExpiresAt: until}
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, code)
}

// Sessions handles GET /api/v1/me/sessions. It lists the browser sessions of
// the caller.
func Sessions(c *request.Call) error {
	return sessionPage(c, "sessions", identity.Sessions)
}

// OpenSessions handles GET /api/v1/operators/sessions. It lists the browser
// sessions of all people.
func OpenSessions(c *request.Call) error {
	return sessionPage(c, "all-sessions", identity.OpenSessions)
}

// sessionPage answers with a page of a list of browser sessions.
func sessionPage(c *request.Call, name string, list func(context.Context, pgx.Tx, identity.Principal, uuid.UUID, int) ([]wire.BrowserSession, error)) error {
	read := func(ctx context.Context, tx pgx.Tx, before envelope.ActionID, most int) ([]wire.BrowserSession, error) {
		return list(ctx, tx, c.By, uuid.UUID(before), most)
	}
	return request.AnswerPage(c, name, read, request.Same[wire.BrowserSession], func(s wire.BrowserSession) envelope.ActionID {
		return envelope.ActionID(uuid.MustParse(s.ID))
	})
}

// EndSession handles DELETE /api/v1/me/sessions/{id}. It ends a browser session
// of the caller.
func EndSession(c *request.Call) error { return endSession(c, identity.DeleteSession) }

// EndOpenSession handles DELETE /api/v1/operators/sessions/{id}. It ends a
// browser session of anybody.
func EndOpenSession(c *request.Call) error { return endSession(c, identity.EndSession) }

// endSession ends the browser session in the path.
func endSession(c *request.Call, end func(context.Context, pgx.Tx, identity.Principal, uuid.UUID) error) error {
	id, err := c.UUID()
	if err != nil {
		return err
	}
	if err := c.InTx(func(ctx context.Context, tx pgx.Tx) error { return end(ctx, tx, c.By, id) }); err != nil {
		return err
	}
	c.Auth.Forget(identity.TokenID(id))
	return c.NoContent()
}
