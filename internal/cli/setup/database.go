// Package setup has the commands that set Countersign up on a machine: dev,
// migrate, doctor, tenant and version.
package setup

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Migrate returns the command migrate.
func Migrate(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:  "migrate",
		Args: command.NoArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := a.DatabaseURL()
			if err != nil {
				return err
			}
			m, err := postgres.Migrate(cmd.Context(), url)
			if err != nil {
				return err
			}
			if a.JSON {
				return a.WriteJSON(map[string]int64{"from": m.From, "to": m.To, "river": int64(m.River)})
			}
			if m.From == m.To {
				_, err = fmt.Fprintf(a.Out, "The schema is at version %d already (River at %d).\n", m.To, m.River)
			} else {
				_, err = fmt.Fprintf(a.Out, "The schema went from version %d to %d (River at %d).\n", m.From, m.To, m.River)
			}
			return err
		},
	}
}

// Tenant returns the command tenant.
func Tenant(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:  "tenant",
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(&cobra.Command{
		Use:  "create NAME",
		Args: command.Arguments(1, 1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var id envelope.TenantID
			err := a.InDatabase(cmd.Context(), "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) (err error) {
				id, err = identity.NewTenant(ctx, tx, args[0])
				return err
			})
			if err != nil {
				return err
			}
			if a.JSON {
				return a.WriteJSON(map[string]string{"tenant_id": id.String(), "name": args[0]})
			}
			_, err = fmt.Fprintf(a.Out, "%s\n", id)
			return err
		},
	})
	return cmd
}
