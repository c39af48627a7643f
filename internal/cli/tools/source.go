package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Sources returns the command source.
func Sources(a *command.App) *cobra.Command {
	cmd := command.NewGroup("source", "Set up sources of tools, and list their tools",
		`Set up sources of tools: MCP servers, tool gateways and providers whose own API
Countersign speaks. Looking takes any person's token, a refresh an operator's,
the rest an administrator's.`,
		`  countersign source list
  countersign source set mail --kind mcp --config '{"transport":"http","url":"https://mail.example.org/mcp"}'
  countersign source refresh mail`,
		command.NewList(a, command.Help{
			Short:   "List the sources, with how their last listing went",
			Long:    "List the sources of tools, with how their last listing went and how their tools\nare guarded. Credentials are never shown. With --json it is one object a line.",
			Example: "  countersign source list\n  countersign source list --json | jq 'select(.list_error)'",
		}, command.View[wire.Source]{
			Empty: "There are none.", Head: []string{"SOURCE", "KIND", "RISK", "GUARD", "LISTED", "STATE"},
			Row: func(s wire.Source) []string {
				return []string{s.ID, s.Kind, s.DefaultRisk, sourceGuard(s), command.Local(s.ListedAt), sourceState(s)}
			},
		}, func(ctx context.Context, c *client.Client) ([]wire.Source, error) { return c.Sources(ctx) }),
		sourceSet(a), sourceRefresh(a),
		command.NewChange(a, "delete ID", command.Help{
			Short:   "Remove a source and its tools",
			Long:    "Remove a source and its tools, with what was accepted and set of them. Actions\nthat name them stay, and those that wait are skipped when they are due.",
			Example: "  countersign source delete mail",
		}, "the source's id", "removed source %s", func(ctx context.Context, c *client.Client, id string) error { return c.DeleteSource(ctx, id) }))
	cmd.Aliases = []string{"sources"}
	return cmd
}

func sourceGuard(src wire.Source) string {
	if src.Quarantine {
		return src.DriftGuard + ", quarantine"
	}
	return src.DriftGuard
}

// sourceState says how the last listing of a source went.
func sourceState(src wire.Source) string {
	switch {
	case !src.Enabled:
		return "off"
	case src.ListError != nil:
		return "failed: " + *src.ListError
	case src.ListedAt == nil:
		return "not listed yet"
	case src.LeftOut == 1:
		return "ok, 1 tool left out"
	case src.LeftOut > 1:
		return fmt.Sprintf("ok, %d tools left out", src.LeftOut)
	}
	return "ok"
}

const sourceSetHelp = `Make a source, or change one. Workers list its tools soon after.

--config is what its kind takes: for mcp {"transport":"http","url":…} or
{"transport":"stdio","command":[…]}; openapi.yaml has the others. --credentials
are stored encrypted and never shown; give them in a file, since others can see
what stands on a command line: {"header":{"Authorization":"Bearer …"}} for HTTP,
{"env":{…}} for a command, {"values":{"token":…}} for a provider. Without them
the stored ones stay, unless the configuration changes: then give them again, or
{} for none.

--drift-guard says which changes of its tools' definitions need a person: full
is any, interface leaves out texts that only describe. --quarantine keeps its
new tools from use until somebody accepts them. Both stay as they are if left
out.`

func sourceSet(a *command.App) *cobra.Command {
	var src wire.SourceInput
	var off, quarantine bool
	kinds := []string{"mcp", "tool_gateway", "composio", "slack", "linear", "sentry", "webhook", "builtin"}
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Make or change a source",
		Long:  sourceSetHelp,
		Example: `  countersign source set files --kind mcp --config '{"transport":"stdio","command":["mcp-server-filesystem","/srv"]}'
  countersign source set crm --kind mcp --config @crm.json --credentials @crm-secret.json --quarantine
  countersign source set chat --kind slack --credentials @slack.json --default-risk write`,
		Args: command.Arguments(1, 1, "the source's id"),
	}
	flags := cmd.Flags()
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		if src.Kind == "" {
			return command.Misuse("--kind is required: %s or builtin", strings.Join(kinds[:len(kinds)-1], ", "))
		}
		if src.Config == nil {
			src.Config = json.RawMessage("{}")
		}
		src.Enabled = new(!off)
		if flags.Changed("quarantine") {
			src.Quarantine = &quarantine
		}
		return a.Done(c.PutSource(ctx, args[0], src), "stored source %s", args[0])
	})
	command.EnumFlag(cmd, &src.Kind, "kind", "its `kind`: mcp, tool_gateway, composio, slack, linear, sentry, webhook or builtin (required)", kinds...)
	a.JSONFlag(cmd, &src.Config, "config", "how it is reached, as a `JSON` object or @FILE")
	a.JSONFlag(cmd, &src.Credentials, "credentials", "its credentials, as @`FILE` that holds a JSON object")
	command.EnumFlag(cmd, &src.DefaultRisk, "default-risk", "the `risk` of its tools that do not say: read, write or danger", "read", "write", "danger")
	flags.BoolVar(&off, "off", false, "switch it off")
	command.EnumFlag(cmd, &src.DriftGuard, "drift-guard", "which `changes` need a person: full or interface", "full", "interface")
	flags.BoolVar(&quarantine, "quarantine", false, "keep its new tools from use until they are accepted (--quarantine=false to stop that)")
	return cmd
}

const sourceRefreshHelp = `Have a source's tools listed now; workers do it by themselves once in five
minutes. It answers when that is done, or after --wait.`

// refreshLook is how often the state of a refresh is read.
const refreshLook = 250 * time.Millisecond

func sourceRefresh(a *command.App) *cobra.Command {
	wait := 30 * time.Second
	cmd := &cobra.Command{
		Use:     "refresh ID",
		Short:   "Have a source's tools listed now",
		Long:    sourceRefreshHelp,
		Example: "  countersign source refresh mail\n  countersign source refresh mail --wait 0",
		Args:    command.Arguments(1, 1, "the source's id"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			asked, err := c.RefreshSource(ctx, args[0])
			if err != nil {
				return err
			}
			src, done, err := listedSince(ctx, c, args[0], asked, wait)
			switch {
			case err != nil:
				return err
			case a.JSON:
				return a.WriteJSON(src)
			case !done:
				a.Note("Asked for; it has not been listed yet. `countersign source list` shows when it has.")
				return nil
			case src.ListError != nil:
				return fmt.Errorf("the source %s could not be listed: %s", args[0], command.Safe(*src.ListError))
			}
			return a.Print("listed %s: %s\n", args[0], sourceState(src))
		}),
	}
	cmd.Flags().DurationVar(&wait, "wait", wait, "answer after this `duration` at the latest")
	return cmd
}

// listedSince waits for a source to be listed later than a time.
func listedSince(ctx context.Context, c *client.Client, id string, asked time.Time, wait time.Duration) (found wire.Source, done bool, err error) {
	until := time.NewTimer(wait)
	defer until.Stop()
	look := time.NewTicker(refreshLook)
	defer look.Stop()
	for {
		all, err := c.Sources(ctx)
		if err != nil {
			return found, false, err
		}
		for _, src := range all {
			if src.ID == id {
				found = src
			}
		}
		if found.ListedAt != nil && found.ListedAt.After(asked) {
			return found, true, nil
		}
		select {
		case <-ctx.Done():
			return found, false, ctx.Err()
		case <-until.C:
			return found, false, nil
		case <-look.C:
		}
	}
}
