// Package mcp has the command that serves an MCP client over standard input and
// output.
package mcp

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
)

const mcpHelp = `Serve an MCP client that only speaks over standard input and output, such as a
desktop assistant. The client sees the tools of the catalog, and each of its
calls becomes an action: it runs, waits for a person, or is denied, as policy
says.

A client that speaks streamable HTTP needs no bridge. Point it at the API's
/mcp, with the header "Authorization: Bearer TOKEN".

The client starts this command itself. Where it keeps its servers, put:

  {
    "mcpServers": {
      "countersign": {
        "command": "countersign",
        "args": ["mcp"],
        "env": {
          "COUNTERSIGN_URL": "http://127.0.0.1:8080",
          "COUNTERSIGN_TOKEN": "cs_agent_..."
        }
      }
    }
  }

and take out the servers that Countersign has as sources now. Standard output
carries the protocol alone; what goes wrong is said on standard error.`

// Command returns the command mcp.
func Command(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve an MCP client over standard input and output",
		Long:  mcpHelp,
		Example: `  COUNTERSIGN_TOKEN=cs_agent_... countersign mcp
  npx @modelcontextprotocol/inspector --cli countersign mcp --method tools/list`,
		Args: command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, _ *client.Client, _ []string) error { return runMCP(ctx, a) }),
	}
}

func runMCP(ctx context.Context, a *command.App) error {
	token := a.Token
	if token == "" {
		var err error
		if token, err = a.LoggedIn(ctx); err != nil {
			return err
		}
	}
	if token == "" {
		return errors.New("there is no token: put one of an agent into " + command.TokenEnv + "; `countersign token create` makes one")
	}
	err := mcpserver.Bridge(ctx, mcpserver.BridgeConfig{
		URL: strings.TrimSuffix(a.URL, "/") + "/mcp", Token: token, Version: command.Version(), In: a.In, Out: a.Out,
	})
	if errors.Is(err, mcpserver.ErrBridgeToken) {
		return errors.New("the API does not take the token in " + command.TokenEnv + "; `countersign token create` makes one")
	}
	return err
}
