package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

// mcpCommand returns the command that serves an MCP client over standard input and
// output.
func mcpCommand(a *command.App) *cobra.Command {
	return command.New(a, "mcp", command.NoArguments(), func(ctx context.Context, _ *client.Client, _ []string) (err error) {
		token := a.Token
		if token == "" {
			token, err = a.LoggedIn(ctx)
		}
		if err == nil && token == "" {
			err = errors.New("no token: put an agent's token into " + command.TokenEnv + "; `countersign token create` makes one")
		}
		if err != nil {
			return err
		}
		err = mcpserver.Bridge(ctx, mcpserver.BridgeConfig{
			URL: strings.TrimSuffix(a.URL, "/") + "/mcp", Token: token, Version: telemetry.Version(), In: a.In, Out: a.Out,
		})
		if errors.Is(err, mcpserver.ErrBridgeToken) {
			return errors.New("the API does not take the token in " + command.TokenEnv + "; `countersign token create` makes one")
		}
		return err
	})
}
