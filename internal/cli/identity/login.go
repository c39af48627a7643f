package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/cli/login"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

type loginFlags struct {
	issuer, client string
	scopes         []string
	port           int
}

// Login returns the command login.
func Login(a *command.App) *cobra.Command {
	var f loginFlags
	cmd := command.NewLocal("login", command.NoArguments(), func(ctx context.Context, _ []string) error {
		return runLogin(ctx, a, f)
	})
	flags := cmd.Flags()
	flags.StringVar(&f.issuer, "issuer", "", "`address` of the issuer (default $"+command.IssuerEnv+", or the one of the last login)")
	flags.StringVar(&f.client, "client-id", "", "client id of this command line at the issuer (default $"+command.ClientIDEnv+", or the one of the last login)")
	flags.StringArrayVar(&f.scopes, "scope", nil, "OAuth `scope` to request (repeatable; default openid, email, profile, offline_access)")
	flags.IntVar(&f.port, "port", 0, "`port` of the redirect on this machine (default any)")
	return cmd
}

func runLogin(ctx context.Context, a *command.App, f loginFlags) error {
	store, err := a.Logins()
	if err != nil {
		return err
	}
	was, err := store.Load(a.Server())
	if err != nil && !errors.Is(err, login.ErrNone) {
		return err
	}
	issuer, id := cmp.Or(f.issuer, a.Getenv(command.IssuerEnv), was.Issuer), cmp.Or(f.client, a.Getenv(command.ClientIDEnv), was.ClientID)
	if issuer == "" || id == "" {
		return command.Misuse("--issuer and --client-id are required for the first login; ask your administrator for them")
	}
	scopes := f.scopes
	if len(scopes) == 0 && issuer == was.Issuer {
		scopes = was.Scopes
	}
	is, err := login.Begin(ctx, login.Config{Server: a.Server(), Issuer: issuer, ClientID: id, Scopes: scopes, Port: f.port, Show: func(at string) {
		// Scripts are not told with note, and cannot go on without it.
		fmt.Fprintf(a.Err, "Open this address in a browser on this machine, and log in there:\n\n%s\n\n", at)
	}})
	if err != nil {
		return err
	}
	c, err := client.New(a.URL, is.Token, client.Config{Agent: "countersign/" + telemetry.Version()})
	if err != nil {
		return command.Misuse("%v", err)
	}
	me, err := c.Me(ctx)
	if err != nil { // nothing is kept that is not taken
		return err
	}
	if err := store.Save(ctx, is); err != nil {
		return err
	}
	if a.Token != "" {
		a.Note("A token in %s, or --token, takes precedence over this login.", command.TokenEnv)
	}
	return command.Show(a, showMe)(me, nil)
}

// Logout returns the command logout.
func Logout(a *command.App) *cobra.Command {
	return command.NewLocal("logout", command.NoArguments(), func(ctx context.Context, _ []string) error {
		store, err := a.Logins()
		if err != nil {
			return err
		}
		is, err := store.Load(a.Server())
		if errors.Is(err, login.ErrNone) {
			return a.Done(nil, "not logged in to %s", a.Server())
		}
		if err == nil {
			err = store.Delete(ctx, a.Server())
		}
		if err != nil {
			return err
		}
		if err := login.Revoke(ctx, is); err != nil {
			a.Note("The login was deleted here, but not revoked at the issuer: %v", err)
		}
		return a.Done(nil, "logged out of %s", a.Server())
	})
}

// WhoAmI returns the command whoami.
func WhoAmI(a *command.App) *cobra.Command {
	return command.New(a, "whoami", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return command.Show(a, showMe)(c.Me(ctx))
	})
}

func showMe(a *command.App, me wire.Me) error {
	var rows [][]string
	for _, row := range [][]string{
		{"name", me.Name}, {"e-mail", me.Email}, {"role", me.Role}, {"tenant", me.Tenant}, {"token", me.TokenID}, {"person", me.OperatorID},
		{"employee", me.EmployeeID}, {"session", me.SessionID}, {"scopes", strings.Join(me.Scopes, " ")}, {"tools", strings.Join(me.Tools, " ")},
	} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	return a.Table([]string{"YOU", a.Server()}, rows)
}
