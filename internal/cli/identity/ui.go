package identity

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

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
	cmd.Flags().BoolVar(&open, "open", false, "open the page in a browser; other users of this machine can see the browser's arguments")
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
