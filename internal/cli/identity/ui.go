package identity

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/web"
)

// UI returns the command ui.
func UI(a *command.App) *cobra.Command {
	var open bool
	var tenant, name string
	cmd := command.NewLocal("ui", command.NoArguments(), func(ctx context.Context, _ []string) error {
		code, err := loginCode(ctx, a, tenant, name)
		if err != nil {
			return err
		}
		if err := showCode(a, code); err != nil || !open {
			return err
		}
		return openBrowser(ctx, a, code.URL)
	})
	flags := cmd.Flags()
	flags.BoolVar(&open, "open", false, "open the page in a browser; other users of this machine can see the browser's arguments")
	flags.StringVar(&tenant, "tenant", "", "`name` of the tenant; works on the database of DATABASE_URL directly, for an owner")
	flags.StringVar(&name, "name", "", "with --tenant: `name`, e-mail address or id of the owner (default the only one)")
	return cmd
}

// uiActor is the actor of a login code that the command line made in the database.
const uiActor = "countersign ui"

// loginCode makes a code for the caller, or in the database for an owner of a tenant.
func loginCode(ctx context.Context, a *command.App, tenant, name string) (code wire.LoginCode, err error) {
	if tenant == "" {
		if name != "" {
			return code, command.Misuse("--name needs --tenant")
		}
		c, err := a.Client()
		if err != nil {
			return code, err
		}
		return c.CreateLoginCode(ctx)
	}
	err = a.InDatabase(ctx, tenant, func(ctx context.Context, tx pgx.Tx, id envelope.TenantID) error {
		of, made, until, err := identity.NewOwnerLoginCode(ctx, tx, id, name, time.Now())
		if err != nil {
			return err
		}
		code = wire.LoginCode{Code: made.Text(), URL: web.Base(a.Server()).LoginCode(made.Text()), ExpiresAt: until}
		return audit.Write(ctx, tx, audit.Event{Tenant: id, Kind: audit.Configured, Actor: uiActor, Items: []audit.Item{{
			Subject: "login code made for the owner " + of.Name, Detail: map[string]any{"operator_id": of.ID.String(), "expires_at": until},
		}}})
	})
	return code, err
}

func showCode(a *command.App, code wire.LoginCode) error {
	if a.JSON {
		return a.WriteJSON(code)
	}
	a.Note("This address logs one browser in, once, within ten minutes:")
	_, err := fmt.Fprintln(a.Out, code.URL)
	return err
}

// openBrowser opens an address with the first program that does, of those that
// $BROWSER names and the one that the system has for that, and waits until it has
// passed the address on.
func openBrowser(ctx context.Context, a *command.App, address string) error {
	var failed error
	for _, program := range browsers(a.Getenv("BROWSER"), address) {
		err := exec.CommandContext(ctx, program[0], program[1:]...).Run()
		if err == nil {
			return nil
		}
		failed = cmp.Or(failed, err)
	}
	return fmt.Errorf("no browser was opened (%w); open the address yourself, or name a program in BROWSER", failed)
}

// browsers returns the programs that could open an address, each with its
// arguments. named is a list as in PATH: each of its commands takes the address
// at %s, or after its last argument. It replaces the system's program.
func browsers(named, address string) [][]string {
	var all [][]string
	for _, one := range filepath.SplitList(named) {
		words := strings.Fields(one)
		if len(words) == 0 {
			continue
		}
		if !strings.Contains(one, "%s") {
			words = append(words, "%s")
		}
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "%s", address)
		}
		all = append(all, words)
	}
	if len(all) > 0 {
		return all
	}
	switch runtime.GOOS {
	case "darwin":
		return [][]string{{"open", address}}
	case "windows":
		return [][]string{{"rundll32", "url.dll,FileProtocolHandler", address}}
	}
	return [][]string{{"xdg-open", address}}
}
