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

const migrateHelp = `Bring the database of DATABASE_URL to the schema of this version: the roles, the
tables and those of River. It is safe to run again, and from several machines at
once. Run it before the new API and workers start.

The user of DATABASE_URL must be allowed to create roles and schemas.`

// Migrate returns the command migrate.
func Migrate(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "migrate",
		Short:   "Bring the database to this version's schema",
		Long:    migrateHelp,
		Example: "  DATABASE_URL=postgres://postgres@localhost/countersign countersign migrate",
		Args:    command.Arguments(0, 0, ""),
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
		Use:     "tenant",
		Short:   "Set tenants up, in the database of DATABASE_URL",
		Long:    "Tenants share a Countersign and see nothing of each other. This works on the\ndatabase of DATABASE_URL itself.",
		Example: "  countersign tenant create acme",
		Args:    cobra.ArbitraryArgs,
		RunE:    command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "create NAME",
		Short:   "Make a tenant",
		Long:    "Make a tenant in the database of DATABASE_URL. It has no sources, rules or\ntokens yet; \"countersign token create --role admin\" makes the first token.",
		Example: "  countersign tenant create acme\n  countersign token create --tenant acme --role admin --name \"Ana, laptop\"",
		Args:    command.Arguments(1, 1, "a name"),
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
