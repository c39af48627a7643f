package triage

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/triage/process"
)

func run(a *command.App) *cobra.Command {
	var once bool
	cmd := command.NewLocal("run", command.NoArguments(), func(ctx context.Context, _ []string) error {
		var cfg config.Triage
		if err := config.ReadVariables(&cfg, a.Getenv); err != nil {
			return command.Misuse("the configuration cannot be used:\n%v", err)
		}
		of := process.From(cfg)
		of.Lookup, of.Log = a.Getenv, telemetry.NewLogger(a.Err, cfg.LogLevel)
		p, err := process.Open(ctx, of)
		if err != nil {
			return err
		}
		defer p.Close()
		if !once {
			return p.Run(ctx)
		}
		if err := p.Once(ctx); err != nil {
			return err
		}
		if a.JSON {
			return a.WriteJSON(map[string]bool{"ok": true})
		}
		fmt.Fprintln(a.Out, "Every account was read; see countersign triage status.")
		return nil
	})
	cmd.Flags().BoolVar(&once, "once", false, "read every account once, then exit")
	return cmd
}
