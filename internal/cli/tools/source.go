package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Sources returns the command source.
func Sources(a *command.App) *cobra.Command {
	cmd := command.NewGroup("source", command.NewList(a, command.View[wire.Source]{
		Empty: "No sources.", Head: []string{"SOURCE", "KIND", "RISK", "GUARD", "LISTED", "STATE"},
		Row: func(s wire.Source) []string {
			return []string{s.ID, s.Kind, s.DefaultRisk, sourceGuard(s), command.Local(s.ListedAt), sourceState(s)}
		},
	}, (*client.Client).Sources),
		sourceShow(a), a.CreateFlag(sourceSet(a)), sourceAccept(a), sourceRefresh(a), sourceLogin(a),
		sourceLogout(a),
		command.NewChange(a, "delete ID", "the source's id", "removed source %s", (*client.Client).DeleteSource))
	cmd.Aliases = []string{"sources"}
	return cmd
}

func sourceGuard(src wire.Source) string {
	if src.Quarantine {
		return src.DriftGuard + ", quarantine"
	}
	return src.DriftGuard
}

// sourceState describes the last listing of a source.
func sourceState(src wire.Source) string {
	switch {
	case !src.Enabled:
		return "off"
	case src.Login != nil && src.Login.LostAt != nil:
		return "login lost: " + command.Safe(*src.Login.LostReason) + "; countersign source login " + command.Quoted(src.ID)
	case src.ListError != nil:
		return "failed: " + command.Safe(*src.ListError) + lackedScopes(src)
	case src.ListedAt == nil:
		return "not listed yet"
	}
	state := fmt.Sprintf("ok, %d tools", src.Tools) + lackedScopes(src)
	if src.Denied != nil {
		state += fmt.Sprintf(", %d of them denied as dangerous", src.Denied.Count)
	}
	if src.LeftOut > 0 {
		state += fmt.Sprintf(", %d more omitted", src.LeftOut) + leftOut(src)
	}
	if len(src.UncheckedTools) > 0 {
		state += ", patterns not checked" + unchecked(src)
	}
	if src.SkippedLines > 0 {
		state += fmt.Sprintf(", %d lines of its output were not messages", src.SkippedLines)
	}
	switch {
	case src.Quarantined:
		return state + ", source in quarantine"
	case src.QuarantinedTools > 0:
		state += fmt.Sprintf(", %d new in quarantine", src.QuarantinedTools)
	}
	if !src.AddressAccepted {
		state += ", address not accepted"
	}
	return state
}

// leftOut lists the tools that a listing left out, and why; of many the first.
func leftOut(src wire.Source) string {
	const most = 5
	var all []string
	for _, t := range src.LeftOutTools[:min(len(src.LeftOutTools), most)] {
		all = append(all, fmt.Sprintf("%q: %s", t.Name, t.Reason))
	}
	if len(all) == 0 {
		return ""
	}
	if src.LeftOut > len(all) {
		all = append(all, "…")
	}
	return " (" + strings.Join(all, "; ") + ")"
}

// unchecked names the tools with regular expressions that are not checked, and
// these; of many the first.
func unchecked(src wire.Source) string {
	const most = 5
	var all []string
	for _, t := range src.UncheckedTools[:min(len(src.UncheckedTools), most)] {
		all = append(all, fmt.Sprintf("%q: %s", t.Name, command.Safe(strings.Join(t.Patterns, ", "))))
	}
	if len(src.UncheckedTools) > len(all) {
		all = append(all, "…")
	}
	return " (" + strings.Join(all, "; ") + ")"
}

func sourceShow(a *command.App) *cobra.Command {
	return command.New(a, "show ID", command.Arguments(1, 1, "the source's id"), func(ctx context.Context, c *client.Client, args []string) error {
		all, err := c.Sources(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(src wire.Source) bool { return src.ID == args[0] })
		if at < 0 {
			return fmt.Errorf("no such source %q; \"countersign source list\" lists them", args[0])
		}
		src := all[at]
		if a.JSON {
			return a.WriteJSON(src)
		}
		credentials := "none"
		if src.HasCredentials {
			credentials = "set"
		}
		return a.Fields("source", src.ID, "kind", src.Kind, "configuration", string(src.Config), "credentials", credentials, "login", sourceLoginText(src), "on lost login", src.OnLostLogin,
			"risk", src.DefaultRisk, "guard", sourceGuard(src), "listed", command.Local(src.ListedAt), "state", sourceState(src))
	})
}

func sourceSet(a *command.App) *cobra.Command {
	var src wire.SourceInput
	var off, quarantine bool
	wait := listingWait
	kinds := []string{"mcp", "tool_gateway", "composio", "slack", "linear", "sentry", "webhook", "mail", "dav", "builtin"}
	cmd := command.New(a, "set ID", command.Arguments(1, 1, "the source's id"), nil)
	flags := cmd.Flags()
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		if src.Kind == "" && isMCP(src.Config) {
			src.Kind = "mcp"
		}
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
		if err := c.PutSource(ctx, args[0], src); err != nil {
			return err
		}
		return showStored(ctx, a, c, args[0], off, wait)
	})
	command.EnumFlag(cmd, &src.Kind, "kind", "`kind` of source: mcp, tool_gateway, composio, slack, linear, sentry, webhook, mail, dav or builtin (default mcp if the configuration has a transport)", kinds...)
	a.JSONFlag(cmd, &src.Config, "config", "connection settings, as a `JSON` object or @FILE")
	a.JSONFlag(cmd, &src.Credentials, "credentials", "credentials: @`FILE` with a JSON object")
	command.EnumFlag(cmd, &src.DefaultRisk, "default-risk", "default `risk` of tools that declare none: read, write or danger", "read", "write", "danger")
	flags.BoolVar(&off, "off", false, "disable the source")
	flags.DurationVar(&wait, "wait", wait, "maximum `duration` to wait for the tool listing")
	command.EnumFlag(cmd, &src.DriftGuard, "drift-guard", "`changes` of definitions that need a person: full or interface", "full", "interface")
	command.EnumFlag(cmd, &src.OnLostLogin, "on-lost-login", "`choice` for calls while the login is lost: wait or fail", "wait", "fail")
	flags.BoolVar(&quarantine, "quarantine", false, "quarantine tools that appear later until they are accepted (default for mcp, tool_gateway and composio; --quarantine=false trusts them)")
	return cmd
}

// listingWait is how long commands wait for a listing unless told otherwise.
const listingWait = 30 * time.Second

// showStored shows the tools of a source that was just stored, once they are
// listed.
func showStored(ctx context.Context, a *command.App, c *client.Client, id string, off bool, wait time.Duration) error {
	var asked time.Time
	if off {
		wait = 0
	} else {
		var err error
		if asked, err = c.RefreshSource(ctx, id); err != nil {
			return err
		}
	}
	src, done, err := ListedSince(ctx, c, id, asked, wait)
	if err != nil {
		return err
	}
	if err := a.Result(src, "stored source %s\n", command.Line(id)); err != nil {
		return err
	}
	noteAddress(a, src)
	switch {
	case off:
	case !done:
		a.Note("Its tools are not listed yet; `countersign source list` shows when they are.")
	case src.ListError != nil:
		a.Note("Its tools could not be listed: %s", command.Safe(*src.ListError))
	default:
		a.Note("It has %d tools.", src.Tools)
		noteDenied(a, src)
	}
	return nil
}

// noteDenied lists the tools of a source that are denied as dangerous, and the
// command to allow them.
func noteDenied(a *command.App, src wire.Source) {
	if src.Denied == nil {
		return
	}
	a.Note("%s", command.Safe(src.Denied.Message))
	names := command.Safe(strings.Join(src.Denied.Tools, ", "))
	if more := src.Denied.Count - len(src.Denied.Tools); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	a.Note("Denied: %s", names)
}

// noteAddress notes the consequences of an address that is not accepted.
func noteAddress(a *command.App, src wire.Source) {
	switch {
	case src.Quarantined:
		a.Note("It is in quarantine: policy denies its tools until an administrator with policy:write accepts it:\n  countersign source accept %s", command.Quoted(src.ID))
	case !src.AddressAccepted:
		a.Note("Its address differs from the accepted one. Calls that policy allows need approval until somebody with policy:write accepts it:\n  countersign source accept %s", command.Quoted(src.ID))
	}
}

func findSource(ctx context.Context, c *client.Client, id string) (wire.Source, error) {
	all, err := c.Sources(ctx)
	if err != nil {
		return wire.Source{}, err
	}
	i := slices.IndexFunc(all, func(src wire.Source) bool { return src.ID == id })
	if i < 0 {
		return wire.Source{}, fmt.Errorf("no source %s", id)
	}
	return all[i], nil
}

func sourceAccept(a *command.App) *cobra.Command {
	return command.New(a, "accept ID", command.Arguments(1, 1, "the source's id"), func(ctx context.Context, c *client.Client, args []string) error {
		src, err := findSource(ctx, c, args[0])
		if err != nil {
			return err
		}
		if src.AddressAccepted {
			return a.Done(nil, "the address of %s is the accepted one", src.ID)
		}
		return a.Done(c.AcceptSource(ctx, src), "accepted the address of %s: %s %s", src.ID, src.Kind, command.Compact(src.Config))
	})
}

// isMCP reports whether a configuration is one of an MCP server, which alone has
// a transport.
func isMCP(config json.RawMessage) bool {
	var of struct{ Transport json.RawMessage }
	return json.Unmarshal(config, &of) == nil && of.Transport != nil
}

// refreshLook is how often the state of a refresh is read.
const refreshLook = 250 * time.Millisecond

func sourceRefresh(a *command.App) *cobra.Command {
	wait := listingWait
	cmd := command.New(a, "refresh ID", command.Arguments(1, 1, "the source's id"), func(ctx context.Context, c *client.Client, args []string) error {
		asked, err := c.RefreshSource(ctx, args[0])
		if err != nil {
			return err
		}
		src, done, err := ListedSince(ctx, c, args[0], asked, wait)
		switch {
		case err != nil:
			return err
		case a.JSON:
			return a.WriteJSON(src)
		case !done:
			a.Note("Requested; its tools are not listed yet. `countersign source list` shows when they are.")
			return nil
		case src.ListError != nil:
			return fmt.Errorf("the source %s could not be listed: %s", args[0], command.Safe(*src.ListError))
		}
		if err := a.Print("listed %s: %s\n", args[0], sourceState(src)); err != nil {
			return err
		}
		noteDenied(a, src)
		return nil
	})
	cmd.Flags().DurationVar(&wait, "wait", wait, "maximum `duration` to wait for the tool listing")
	return cmd
}

// ListedSince waits for a source to be listed later than a time, for some time.
func ListedSince(ctx context.Context, c *client.Client, id string, asked time.Time, wait time.Duration) (found wire.Source, done bool, err error) {
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
