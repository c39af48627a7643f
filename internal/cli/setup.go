package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// setUpFor bounds how long setting something up may take.
const setUpFor = 30 * time.Second

// databaseURL is where the database is, which only commands that set one up
// ask for.
func (a *app) databaseURL() (string, error) {
	if url := a.sys.Getenv(databaseEnv); url != "" {
		return url, nil
	}
	return "", misuse("%s must say where the database is: postgres://user:password@host:5432/database", databaseEnv)
}

const migrateHelp = `Bring the database of DATABASE_URL to the schema of this version: the roles, the
tables and those of River. It is safe to run again, and from several machines at
once. Run it before the new API and workers start.

The user of DATABASE_URL must be allowed to create roles and schemas.`

func (a *app) migrate() *cobra.Command {
	return &cobra.Command{
		Use:     "migrate",
		Short:   "Bring the database to this version's schema",
		Long:    migrateHelp,
		Example: "  DATABASE_URL=postgres://postgres@localhost/countersign countersign migrate",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := a.databaseURL()
			if err != nil {
				return err
			}
			m, err := postgres.Migrate(cmd.Context(), url)
			if err != nil {
				return err
			}
			if a.json {
				return a.document(map[string]int64{"from": m.From, "to": m.To, "river": int64(m.River)})
			}
			if m.From == m.To {
				_, err = fmt.Fprintf(a.sys.Out, "The schema is at version %d already (River at %d).\n", m.To, m.River)
			} else {
				_, err = fmt.Fprintf(a.sys.Out, "The schema went from version %d to %d (River at %d).\n", m.From, m.To, m.River)
			}
			return err
		},
	}
}

// inDatabase does something in a transaction of the scope of a tenant, or of
// the whole database without one.
func (a *app) inDatabase(ctx context.Context, tenant string, do func(ctx context.Context, tx pgx.Tx, id envelope.TenantID) error) error {
	ctx, cancel := context.WithTimeout(ctx, setUpFor)
	defer cancel()
	pool, err := a.openDatabase(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	return inScope(ctx, pool, tenant, do)
}

// openDatabase returns a pool of one connection, which answers, on the database
// of DATABASE_URL. Whoever calls it closes it.
func (a *app) openDatabase(ctx context.Context) (*pgxpool.Pool, error) {
	url, err := a.databaseURL()
	if err != nil {
		return nil, err
	}
	pool, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConns: 1, Name: "countersign"})
	if err != nil {
		return nil, err
	}
	ping, cancel := context.WithTimeout(ctx, setUpFor)
	defer cancel()
	if err := pool.Ping(ping); err != nil {
		pool.Close()
		return nil, fmt.Errorf("the database of %s does not answer; is it running, and is the address right?", databaseEnv)
	}
	return pool, nil
}

func inScope(ctx context.Context, pool *pgxpool.Pool, tenant string, do func(ctx context.Context, tx pgx.Tx, id envelope.TenantID) error) error {
	var id envelope.TenantID
	scope := postgres.Admin()
	if tenant != "" {
		err := postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) (err error) {
			id, err = identity.TenantByName(ctx, tx, tenant)
			return err
		})
		if err != nil {
			return fmt.Errorf("%w; `countersign tenant create` makes one", err)
		}
		scope = postgres.API(id)
	}
	return postgres.InTx(ctx, pool, scope, func(tx pgx.Tx) error { return do(ctx, tx, id) })
}

func (a *app) tenant() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tenant",
		Short:   "Set tenants up, in the database of DATABASE_URL",
		Long:    "Tenants share a Countersign and see nothing of each other. This works on the\ndatabase of DATABASE_URL itself.",
		Example: "  countersign tenant create acme",
		Args:    cobra.ArbitraryArgs,
		RunE:    group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "create NAME",
		Short:   "Make a tenant",
		Long:    "Make a tenant in the database of DATABASE_URL. It has no sources, rules or\ntokens yet; \"countersign token create --role admin\" makes the first token.",
		Example: "  countersign tenant create acme\n  countersign token create --tenant acme --role admin --name \"Ana, laptop\"",
		Args:    arguments(1, 1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var id envelope.TenantID
			err := a.inDatabase(cmd.Context(), "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) (err error) {
				id, err = identity.NewTenant(ctx, tx, args[0])
				return err
			})
			if err != nil {
				return err
			}
			if a.json {
				return a.document(map[string]string{"tenant_id": id.String(), "name": args[0]})
			}
			_, err = fmt.Fprintf(a.sys.Out, "%s\n", id)
			return err
		},
	})
	return cmd
}
