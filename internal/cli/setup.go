package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/identity"
	"github.com/countersign-dev/countersign/internal/postgres"
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

func (a *app) tokens() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		Short:   "Set tokens up, in the database of DATABASE_URL",
		Long:    "A token says who asks: an agent proposes, an operator decides, an admin sets up.\nThis works on the database of DATABASE_URL itself; administrators can do the\nsame over the API.",
		Example: "  countersign token create --tenant acme --role agent --name \"mail agent\"",
		Args:    cobra.ArbitraryArgs,
		RunE:    group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(a.tokenCreate(), a.tokenRevoke())
	return cmd
}

type tokenFlags struct {
	tenant, role, name, session, employee string
	ttl                                   time.Duration
}

func (a *app) tokenCreate() *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token",
		Long: `Make a token and write it to standard output, alone on its line. It is stored as
a hash, so nothing ever shows it again.`,
		Example: `  countersign token create --tenant acme --role agent --name "mail agent" --session inbox
  export COUNTERSIGN_TOKEN="$(countersign token create --tenant acme --role operator --name Ana --ttl 720h)"`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runTokenCreate(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", "", "the tenant's `name` (required)")
	flags.StringVar(&f.role, "role", "", "the holder's `role`: agent, operator or admin (required)")
	flags.StringVar(&f.name, "name", "", "the holder's `name`, shown wherever it did something (required)")
	flags.StringVar(&f.session, "session", "", "the `session` that the holder proposes in (agents get one of their own)")
	flags.StringVar(&f.employee, "employee", "", "the `id` of whom the holder acts for")
	flags.DurationVar(&f.ttl, "ttl", 0, "how long it is valid, such as 720h (default until it is revoked)")
	fixed(cmd, "role", "agent", "operator", "admin")
	return cmd
}

func (a *app) runTokenCreate(ctx context.Context, f tokenFlags) error {
	if f.tenant == "" || f.role == "" || f.name == "" {
		return misuse("--tenant, --role and --name are required")
	}
	grant := identity.Grant{Name: f.name, Role: identity.Role(f.role), Session: f.session, TTL: f.ttl}
	if !grant.Role.Valid() {
		return misuse("--role must be agent, operator or admin")
	}
	if f.employee != "" {
		if err := grant.Employee.UnmarshalText([]byte(f.employee)); err != nil {
			return misuse("--employee: %v", err)
		}
	}
	var made identity.Issued
	err := a.inDatabase(ctx, f.tenant, func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (err error) {
		made, err = identity.Issue(ctx, tx, tenant, grant, time.Now())
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.document(struct {
			TokenID   identity.TokenID `json:"token_id"`
			Token     string           `json:"token"`
			Name      string           `json:"name"`
			Role      identity.Role    `json:"role"`
			ExpiresAt *time.Time       `json:"expires_at"`
		}{made.Principal.Token, made.Token.Text(), f.name, grant.Role, made.ExpiresAt})
	}
	a.note("Made the token %s; this is the only time that it shows:", made.Principal.Token)
	_, err = fmt.Fprintln(a.sys.Out, made.Token.Text())
	return err
}

func (a *app) tokenRevoke() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use:     "revoke TOKEN-ID",
		Short:   "End a token's validity",
		Long:    "End a token's validity. It is named by its id, not by itself, and is refused\neverywhere within ten seconds.",
		Example: "  countersign token revoke 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --tenant acme",
		Args:    arguments(1, 1, "the token's id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := uuid.Parse(args[0])
			switch {
			case err != nil: // it may be the token itself, so it is not repeated
				return misuse("the argument is not the id of a token, which `token create` showed; give the id, not the token itself")
			case tenant == "":
				return misuse("--tenant is required")
			}
			err = a.inDatabase(cmd.Context(), tenant, func(ctx context.Context, tx pgx.Tx, t envelope.TenantID) error {
				return identity.Revoke(ctx, tx, t, identity.TokenID(id))
			})
			if err != nil {
				return err
			}
			if a.json {
				return a.document(map[string]string{"revoked": id.String()})
			}
			_, err = fmt.Fprintf(a.sys.Out, "revoked %s\n", id)
			return err
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "the tenant's `name` (required)")
	return cmd
}
