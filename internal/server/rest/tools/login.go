package tools

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection/login"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/source/oauth"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// BeginSourceLogin handles POST /api/v1/sources/{id}/login. It begins a login of a
// source.
func BeginSourceLogin(c *request.Call, body wire.SourceLoginInput) error {
	src, err := loginSource(c)
	if err != nil {
		return err
	}
	if body.ClientSecret != "" && body.ClientID == "" {
		return request.Invalid("/client_id", envelope.RuleRequired, "must name the client of the secret")
	}
	links := c.Browser.Links()
	begun, err := logins(c).Begin(c.R.Context(), c.By.Tenant, starter(c), src, login.Options{
		Redirect: links.SourceCallback(), Document: links.SourceClient(), Device: body.Device, Page: body.Page,
		Scopes: body.Scopes, ClientID: body.ClientID, ClientSecret: body.ClientSecret,
	}, time.Now())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.BegunSourceLogin{
		State: begun.State, Issuer: begun.Issuer, URL: begun.URL, UserCode: postgres.OrNull(begun.UserCode),
		IntervalSeconds: begun.Interval.Seconds(), ExpiresAt: begun.ExpiresAt.UTC(),
	})
}

func logins(c *request.Call) *login.Logins { return login.New(c.DB, c.Vault, c.SourceNetworks, c.Log) }

// starter returns who alone may finish a login: the person, or else the token.
func starter(c *request.Call) uuid.UUID { return cmp.Or(c.By.Operator, uuid.UUID(c.By.Token)) }

// loginSource returns the source of a path, if the caller's token covers all of it.
func loginSource(c *request.Call) (catalog.Source, error) {
	id := c.R.PathValue("id")
	if err := c.CheckTools(id + ":*"); err != nil {
		return catalog.Source{}, err
	}
	src, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (catalog.Source, error) {
		src, err := currentSource(ctx, tx, c, id)
		if err == nil && (src.ID == "" || !policy.CoversSource(c.By.Tools, id)) {
			err = fault.New(fault.NotFound, "no source %s", id)
		}
		return src, err
	})
	return src, c.Suggest(request.NounSource, id, err)
}

// FinishSourceLogin handles POST /api/v1/sources/{id}/login/finish. It finishes a
// login of a source.
func FinishSourceLogin(c *request.Call, body wire.SourceLoginAnswer) error {
	src, err := loginSource(c)
	if err != nil {
		return err
	}
	answer := url.Values{"state": {body.State}}
	if body.State == "" {
		if answer, err = login.ParseAnswer(body.Answer); err != nil {
			return err
		}
	}
	made, wait, err := logins(c).Finish(c.R.Context(), c.By.Tenant, starter(c), src, answer, time.Now())
	if err != nil || wait > 0 {
		if err == nil {
			err = c.JSON(http.StatusOK, wire.FinishedSourceLogin{WaitSeconds: wait.Seconds()})
		}
		return err
	}
	err = c.InConfigurationTx(func(ctx context.Context, tx pgx.Tx) error {
		now, err := currentSource(ctx, tx, c, src.ID)
		if err != nil {
			return err
		}
		if now.Kind != src.Kind || !catalog.SameAddress(now.Config, src.Config) {
			return fault.New(fault.Conflict, "the address of the source changed since the login began; begin again")
		}
		if err := logins(c).Put(ctx, tx, c.By.Tenant, made, c.By.Actor(), access.ChangesFreely(c.By)); err != nil {
			return err
		}
		c.Detail = map[string]any{"login": "made", "issuer": made.Server.Issuer, "scope": made.Tokens.Scope}
		return c.RecordChange(ctx, tx, "source "+src.ID+" logged in")
	})
	if err != nil {
		return err
	}
	c.Wake() // actions that waited for the login are due now
	return c.JSON(http.StatusOK, wire.FinishedSourceLogin{Done: true})
}

// RemoveSourceLogin handles DELETE /api/v1/sources/{id}/login. It removes the login
// of a source, and then revokes its tokens: a failure of that does not keep it.
func RemoveSourceLogin(c *request.Call) error {
	id := c.R.PathValue("id")
	c.Detail = map[string]any{"login": "removed"}
	var secret []byte
	err := sources.Change(c, id, "source "+id+" logged out", func(ctx context.Context, tx pgx.Tx) error {
		src, err := currentSource(ctx, tx, c, id)
		if err == nil && src.Login == nil {
			err = fault.New(fault.NotFound, "source %s has no login", id)
		}
		if err != nil {
			return err
		}
		secret, err = login.Remove(ctx, tx, c.By.Tenant, id, access.ChangesFreely(c.By))
		return err
	})
	if err != nil {
		return err
	}
	removed := wire.RemovedSourceLogin{Revocation: wire.RevocationUnsupported}
	revokes, err := logins(c).Revoke(c.R.Context(), c.By.Tenant, id, secret)
	switch {
	case err != nil:
		c.Log.WarnContext(c.R.Context(), "tokens of a removed login are not revoked", slog.String("source_id", id), slog.Any("error", err))
		removed.Revocation = wire.RevocationFailed
		c.Detail = map[string]any{"login": "removed", "revocation": removed.Revocation}
		err = c.InConfigurationTx(func(ctx context.Context, tx pgx.Tx) error {
			return c.RecordChange(ctx, tx, "tokens of source "+id+" not revoked")
		})
	case revokes:
		removed.Revocation = wire.RevocationDone
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, removed)
}

// ShowSourceLogin handles GET /auth/source. It shows the browser that comes back from
// an authorization server the text with which the person finishes the login, or leads
// to the operator's page, where the login began and the person finishes it. It changes
// nothing: the browser may be another person's than the one who began.
func ShowSourceLogin(c *request.Call) error {
	h := c.W.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	if source := login.SourceOf(c.Query.Get("state")); source != "" {
		c.SetLocation("/settings#" + url.Values{"source": {source}, "login": {login.Answer(c.Query)}}.Encode())
		c.W.WriteHeader(http.StatusSeeOther)
		return nil
	}
	text := "To finish the login, copy this line to the program that began it. If it was not you who began it, close this page.\n\n" + login.Answer(c.Query) + "\n"
	c.Write(http.StatusOK, "text/plain; charset=utf-8", []byte(text))
	return nil
}

// GetSourceClient handles GET /auth/source-client. It answers with Countersign's
// metadata as a client of authorization servers, which its address names.
func GetSourceClient(c *request.Call) error {
	links, err := c.Browser.KnownLinks()
	if err != nil {
		return err
	}
	c.W.Header().Set("Cache-Control", "public, max-age=3600")
	return c.JSON(http.StatusOK, oauth.Document(links.SourceClient(), links.SourceCallback()))
}
