package identity

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// UI returns the command ui.
func UI(a *command.App) *cobra.Command {
	var open bool
	cmd := command.New(a, "ui", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		code, err := c.CreateLoginCode(ctx)
		if err != nil {
			return err
		}
		if err := showCode(a, code); err != nil || !open {
			return err
		}
		return openBrowser(ctx, a, code.URL)
	})
	cmd.Flags().BoolVar(&open, "open", false, "open the page in a browser, whose arguments others on this machine can see")
	return cmd
}

func showCode(a *command.App, code wire.LoginCode) error {
	if a.JSON {
		return a.WriteJSON(code)
	}
	a.Note("This address logs one browser in, once, within ten minutes:")
	_, err := fmt.Fprintln(a.Out, code.URL)
	return err
}

// openBrowser opens an address with the program that the system has for that, or
// the one that $BROWSER names, and waits until the program has passed it on.
func openBrowser(ctx context.Context, a *command.App, address string) error {
	program, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	if named := a.Getenv("BROWSER"); named != "" {
		program, args = named, []string{address}
	}
	if err := exec.CommandContext(ctx, program, args...).Run(); err != nil {
		return fmt.Errorf("no browser was opened (%w); open the address yourself, or name a program in BROWSER", err)
	}
	return nil
}
