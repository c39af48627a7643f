package accounts

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/countersign-dev/countersign/internal/server/rest/browser"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// webClient returns the API's client configuration for issuers. It returns an error if the
// service's public address is not configured.
func webClient(c *request.Call) (identity.WebClient, error) {
	links, err := c.Browser.KnownLinks()
	return identity.WebClient{Redirect: links.LoginCallback(), Secret: func(tenant envelope.TenantID, provider string, encrypted []byte) ([]byte, error) {
		return c.Vault.Decrypt(tenant, secretOf(provider), encrypted)
	}}, err
}

// secretOf returns the context for encrypting the secret of a provider's web
// client. No source can have this name.
func secretOf(provider string) string { return "identity provider " + provider }

// loginProviders returns how the page to log in shows the providers of a tenant.
func loginProviders(c *request.Call, tenant string, all []identity.Provider) []wire.LoginProvider {
	found := []wire.LoginProvider{}
	if !c.Browser.Links().Known() {
		return found
	}
	for _, p := range all {
		query := url.Values{"organisation": {tenant}, "provider": {p.ID}}
		found = append(found, wire.LoginProvider{Name: p.ID, Label: cmp.Or(p.Label, p.ID), LoginURL: "/auth/login?" + query.Encode()})
	}
	return found
}

// StartLogin handles GET /auth/login. It sends the browser to an issuer to log
// in.
func StartLogin(c *request.Call) error { return orLoginPage(c, startLogin) }

func startLogin(c *request.Call) error {
	// A link from another page or program only opens the login page, where the
	// person chooses: it could name another organisation and issuer.
	if site := c.R.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return seeOther(c, "/login?"+url.Values{"to": {browser.OwnPath(c.Query.Get("to"))}}.Encode())
	}
	client, err := webClient(c)
	if err != nil {
		return err
	}
	ctx := c.R.Context()
	tenant, _, err := c.Auth.LoginTenant(ctx, c.Query.Get("organisation"))
	if err != nil {
		return err
	}
	if tenant == (envelope.TenantID{}) {
		return fault.New(fault.NotFound, "no such provider")
	}
	in, address, err := c.Auth.BeginLogin(ctx, tenant, c.Query.Get("provider"), client, time.Now())
	if err != nil {
		return err
	}
	if err := c.Browser.KeepLogin(c.W, c.R, in, browser.OwnPath(c.Query.Get("to"))); err != nil {
		return err
	}
	c.SetLocation(address)
	c.W.WriteHeader(http.StatusFound)
	return nil
}

// FinishLogin handles GET /auth/callback. It receives the browser from an
// issuer, opens a session, and redirects to the page that the person wanted.
func FinishLogin(c *request.Call) error { return orLoginPage(c, finishLogin) }

func finishLogin(c *request.Call) error {
	client, err := webClient(c)
	if err != nil {
		return err
	}
	in, err := c.Browser.TakeLogin(c.W, c.R, c.Query.Get("state"))
	if err != nil {
		return err
	}
	code := c.Query.Get("code")
	if len(c.Query["code"]) != 1 || c.Query.Get("error") != "" {
		code = "" // the issuer refused the login
	}
	made, err := c.Auth.FinishLogin(c.R.Context(), in.Login, code, c.Query.Get("iss"), client, c.Visitor(), time.Now())
	if err != nil {
		return err
	}
	if err := keepSession(c, made, in.Session); err != nil {
		return err
	}
	return seeOther(c, in.To)
}

// orLoginPage sends a browser whose login failed back to the login page, with
// the code of the problem. The reason is logged.
func orLoginPage(c *request.Call, handle request.Handler) error {
	err := handle(c)
	if err == nil {
		return nil
	}
	p := request.ProblemOf(err)
	cause := err
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Cause != nil {
		cause = e.Cause
	}
	c.Log.WarnContext(c.R.Context(), "login failed", slog.String("request_id", request.ID(c.R.Context())), slog.String("code", string(p.Code)), slog.Any("error", cause))
	return seeOther(c, "/login?problem="+url.QueryEscape(string(p.Code)))
}

func seeOther(c *request.Call, path string) error {
	c.SetLocation(path)
	c.W.WriteHeader(http.StatusSeeOther)
	return nil
}
