package setup

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Version returns the command version.
func Version(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:  "version",
		Args: command.NoArguments(),
		RunE: func(*cobra.Command, []string) error {
			if a.JSON {
				return a.WriteJSON(map[string]string{
					"version": command.Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(a.Out, "countersign %s (%s, %s/%s)\n", command.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
