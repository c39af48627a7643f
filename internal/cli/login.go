package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/login"
)

const (
	configEnv   = "COUNTERSIGN_CONFIG"
	issuerEnv   = "COUNTERSIGN_ISSUER"
	clientIDEnv = "COUNTERSIGN_CLIENT_ID"
)

const loginHelp = `Log in at the issuer that vouches for the people of your tenant, in a browser on
this machine, and use what it signs as the token for the API at --url. It is
kept for that address alone, in a file that only you can read, and renewed while
the issuer allows it. A token in COUNTERSIGN_TOKEN, or --token, goes before it.

Whoever set the provider up knows the issuer and the client's id. The client is
a public one, with PKCE, that may come back to http://127.0.0.1 at any port, or
at the one that --port says, with the path /callback.`

type loginFlags struct {
	issuer, client string
	scopes         []string
	port           int
}

func (a *app) login() *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in as a person, through a browser",
		Long:  loginHelp,
		Example: `  countersign login --url https://countersign.acme.com --issuer https://login.acme.com/realms/acme --client-id countersign
  countersign login`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runLogin(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.issuer, "issuer", "", "the issuer's `address` (default $"+issuerEnv+", or that of the last login)")
	flags.StringVar(&f.client, "client-id", "", "what the issuer calls this command line (default $"+clientIDEnv+", or that of the last login)")
	flags.StringArrayVar(&f.scopes, "scope", nil, "a `scope` to ask the issuer for; may be repeated (default openid, email, profile, offline_access)")
	flags.IntVar(&f.port, "port", 0, "the `port` that the browser comes back to (default any)")
	return cmd
}

// server is the API's address as logins are kept by it.
func (a *app) server() string { return strings.TrimSuffix(a.url, "/") }

// logins is where they are kept.
func (a *app) logins() (login.Store, error) {
	for _, in := range []struct{ env, below string }{
		{configEnv, ""}, {"XDG_CONFIG_HOME", "countersign"}, {"HOME", filepath.Join(".config", "countersign")},
	} {
		if dir := a.sys.Getenv(in.env); dir != "" {
			return login.NewStore(filepath.Join(dir, in.below)), nil
		}
	}
	return login.Store{}, fmt.Errorf("there is no folder to keep a login in: set %s", configEnv)
}

// loggedIn is the token of a login; empty if there is none, which the API then
// says what to do about.
func (a *app) loggedIn(ctx context.Context) (string, error) {
	store, err := a.logins()
	if err != nil {
		return "", nil // no file: nobody has logged in
	}
	is, err := store.Fresh(ctx, a.server(), time.Now())
	switch {
	case errors.Is(err, login.ErrNone):
		return "", nil
	case errors.Is(err, login.ErrOver):
		return "", fmt.Errorf("%w; log in again with `countersign login`", err)
	}
	return is.Token, err
}

func (a *app) runLogin(ctx context.Context, f loginFlags) error {
	store, err := a.logins()
	if err != nil {
		return err
	}
	was, err := store.Load(a.server())
	if err != nil && !errors.Is(err, login.ErrNone) {
		return err
	}
	issuer, id := first(f.issuer, a.sys.Getenv(issuerEnv), was.Issuer), first(f.client, a.sys.Getenv(clientIDEnv), was.ClientID)
	if issuer == "" || id == "" {
		return misuse("--issuer and --client-id are required the first time; whoever set the provider up knows them")
	}
	scopes := f.scopes
	if len(scopes) == 0 && issuer == was.Issuer {
		scopes = was.Scopes
	}
	is, err := login.Begin(ctx, login.Config{Server: a.server(), Issuer: issuer, ClientID: id, Scopes: scopes, Port: f.port, Show: func(at string) {
		// Scripts are not told with note, and cannot go on without it.
		fmt.Fprintf(a.sys.Err, "Open this address in a browser on this machine, and log in there:\n\n%s\n\n", at)
	}})
	if err != nil {
		return err
	}
	c, err := client.New(a.url, is.Token, client.Config{Agent: "countersign/" + Version()})
	if err != nil {
		return misuse("%v", err)
	}
	me, err := c.Me(ctx)
	if err != nil { // nothing is kept that is not taken
		return err
	}
	if err := store.Save(ctx, is); err != nil {
		return err
	}
	if a.token != "" {
		a.note("A token in %s, or --token, goes before this login.", tokenEnv)
	}
	return a.showMe(me)
}

// first is the first that says something.
func first(all ...string) string {
	for _, text := range all {
		if text != "" {
			return text
		}
	}
	return ""
}

func (a *app) logout() *cobra.Command {
	return &cobra.Command{
		Use:     "logout",
		Short:   "Forget the login to the API",
		Long:    "Forget the login to the API at --url, here and, if the issuer offers it, there.",
		Example: "  countersign logout",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := a.logins()
			if err != nil {
				return err
			}
			is, err := store.Load(a.server())
			if errors.Is(err, login.ErrNone) {
				return a.done(nil, "nobody was logged in to %s", a.server())
			}
			if err == nil {
				err = store.Delete(cmd.Context(), a.server())
			}
			if err != nil {
				return err
			}
			if err := login.Revoke(cmd.Context(), is); err != nil {
				a.note("It is forgotten here, but the issuer was not told: %v", err)
			}
			return a.done(nil, "logged out of %s", a.server())
		},
	}
}

const whoamiHelp = `Show who you are to the API: the tenant, the role, and what the token is
narrowed to. With --json also every operation that you may use.`

func (a *app) whoami() *cobra.Command {
	return &cobra.Command{
		Use:     "whoami",
		Short:   "Show who you are to the API",
		Long:    whoamiHelp,
		Example: "  countersign whoami\n  countersign whoami --json | jq -r .operations[]",
		Args:    arguments(0, 0, ""),
		RunE: a.run(func(ctx context.Context, c *client.Client, _ []string) error {
			me, err := c.Me(ctx)
			if err != nil {
				return err
			}
			return a.showMe(me)
		}),
	}
}

func (a *app) showMe(me client.Me) error {
	if a.json {
		return a.document(me)
	}
	var rows [][]string
	for _, row := range [][]string{
		{"name", me.Name}, {"e-mail", me.Email}, {"role", me.Role}, {"tenant", me.Tenant}, {"token", me.TokenID}, {"person", me.OperatorID},
		{"employee", me.EmployeeID}, {"session", me.SessionID}, {"scopes", strings.Join(me.Scopes, " ")}, {"tools", strings.Join(me.Tools, " ")},
	} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	return table(a.sys.Out, []string{"YOU", a.server()}, rows)
}
