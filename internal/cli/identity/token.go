// Package identity has the commands for who may use the API: tokens, operators
// and identity providers, and the login of a person.
package identity

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// databaseActor is who the record names where the command line itself changed
// the database.
const databaseActor = "countersign token"

const tokensHelp = `A token says who asks: an agent proposes, a viewer reads, an operator decides,
an admin sets up, and an owner also makes owners and admins. It can be narrowed
to scopes, which are rights of the API, and to tools.

They are made over the API by an admin or an owner. With --tenant this works on
the database of DATABASE_URL itself, which makes the first one.`

// Tokens returns the command token.
func Tokens(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Set tokens up: create, list, rotate, revoke",
		Long:  tokensHelp,
		Example: `  countersign token create --tenant acme --role owner --name "Ana, laptop"
  countersign token create --role agent --name "mail agent" --tool "mail:*"
  countersign token list`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(tokenCreate(a), tokenList(a), tokenRotate(a), tokenRevoke(a))
	return cmd
}

type tokenFlags struct {
	tenant, role, name, session, employee, operator string
	scopes, tools                                   []string
	ttl                                             time.Duration
}

const tokenCreateHelp = `Make a token and write it to standard output, alone on its line. It is stored as
a hash, so nothing ever shows it again.

With --scope it may do no more than the scopes say, and with --tool propose and
see no other tools. Neither gives what the role does not. Nobody hands out more
than it has: only owners make owners and admins. With --operator the token acts
as that person, and ends when the person is disabled.

With --tenant it is made in the database of DATABASE_URL itself.`

func tokenCreate(a *command.App) *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token",
		Long:  tokenCreateHelp,
		Example: `  countersign token create --tenant acme --role owner --name Ana
  countersign token create --role agent --name "mail agent" --session inbox --tool "mail:*" --ttl 720h
  countersign token create --role operator --name pager --scope pauses:write --scope actions:read`,
		Args: command.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return runTokenCreate(cmd.Context(), a, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", "", "the tenant's `name`, to work on the database itself")
	flags.StringVar(&f.role, "role", "", "the holder's `role`: agent, viewer, operator, admin or owner (required)")
	flags.StringVar(&f.name, "name", "", "the holder's `name`, shown wherever it did something (required)")
	flags.StringVar(&f.session, "session", "", "the `session` that the holder proposes in (agents get one of their own)")
	flags.StringVar(&f.employee, "employee", "", "the `id` of whom the holder acts for")
	flags.StringVar(&f.operator, "operator", "", "the `id` of the person behind it")
	flags.StringArrayVar(&f.scopes, "scope", nil, "a `right` that it is narrowed to; may be repeated")
	flags.StringArrayVar(&f.tools, "tool", nil, "a `pattern` of tools that it is narrowed to, such as mail:*; may be repeated")
	flags.DurationVar(&f.ttl, "ttl", 0, "how long it is valid, such as 720h (default until it is revoked)")
	command.Fixed(cmd, "role", "agent", "viewer", "operator", "admin", "owner")
	command.Fixed(cmd, "scope", texts(identity.Scopes())...)
	return cmd
}

// grant reads the flags.
func (f tokenFlags) grant() (identity.Grant, error) {
	g := identity.Grant{Name: f.name, Role: identity.Role(f.role), Session: f.session, Tools: f.tools, TTL: f.ttl, By: databaseActor}
	switch {
	case f.role == "" || f.name == "":
		return g, command.Misuse("--role and --name are required")
	case !g.Role.Valid():
		return g, command.Misuse("--role must be agent, viewer, operator, admin or owner")
	}
	for _, s := range f.scopes {
		scope := identity.Scope(s)
		if !scope.Valid() {
			return g, command.Misuse("--scope must be one of %s", strings.Join(texts(identity.Scopes()), ", "))
		}
		g.Scopes = append(g.Scopes, scope)
	}
	if f.employee != "" {
		if err := g.Employee.UnmarshalText([]byte(f.employee)); err != nil {
			return g, command.Misuse("--employee: %v", err)
		}
	}
	if f.operator != "" {
		id, err := uuid.Parse(f.operator)
		if err != nil {
			return g, command.Misuse("--operator must be the id of a person; `countersign operator list` shows them")
		}
		g.Operator = id
	}
	return g, nil
}

func runTokenCreate(ctx context.Context, a *command.App, f tokenFlags) error {
	g, err := f.grant()
	if err != nil {
		return err
	}
	var made client.IssuedToken
	if f.tenant != "" {
		made, err = issueInDatabase(ctx, a, f.tenant, g)
	} else {
		made, err = issueOverAPI(ctx, a, f)
	}
	if err != nil {
		return err
	}
	return showToken(a, made, "Made the token "+made.ID)
}

func issueOverAPI(ctx context.Context, a *command.App, f tokenFlags) (client.IssuedToken, error) {
	c, err := a.Client()
	if err != nil {
		return client.IssuedToken{}, err
	}
	return c.IssueToken(ctx, client.TokenInput{
		Name: f.name, Role: f.role, EmployeeID: f.employee, SessionID: f.session, OperatorID: f.operator,
		Scopes: f.scopes, Tools: f.tools, ExpiresIn: envelope.Duration(f.ttl),
	})
}

// issueInDatabase makes a token, and the event that tells of it, in one
// transaction.
func issueInDatabase(ctx context.Context, a *command.App, tenant string, g identity.Grant) (client.IssuedToken, error) {
	var made identity.Issued
	err := a.InDatabase(ctx, tenant, func(ctx context.Context, tx pgx.Tx, id envelope.TenantID) (err error) {
		if made, err = identity.Issue(ctx, tx, id, g, time.Now()); err != nil {
			return err
		}
		what, detail := made.Told()
		return audit.Write(ctx, tx, audit.Event{
			Tenant: id, Kind: audit.Configured, Actor: databaseActor, Items: []audit.Item{{Subject: what, Detail: detail}},
		})
	})
	return client.IssuedToken{
		ID: made.Principal.Token.String(), Token: made.Token.Text(), Name: g.Name, Role: string(g.Role), SessionID: made.Principal.Session,
		EmployeeID: given(g.Employee), OperatorID: given(g.Operator), Scopes: texts(g.Scopes), Tools: g.Tools, ExpiresAt: made.ExpiresAt,
	}, err
}

// given writes an id; none is empty.
func given[T interface {
	comparable
	fmt.Stringer
}](id T) string {
	var none T
	if id == none {
		return ""
	}
	return id.String()
}

func texts(all []identity.Scope) []string {
	var out []string
	for _, s := range all {
		out = append(out, string(s))
	}
	return out
}

// showToken writes a secret, the only time that it shows.
func showToken(a *command.App, made client.IssuedToken, what string) error {
	if a.JSON {
		return a.WriteJSON(made)
	}
	a.Note("%s; this is the only time that it shows:", what)
	_, err := fmt.Fprintln(a.Out, made.Token)
	return err
}

const tokenListHelp = `List the tokens of the tenant, newest first: what each may do, when it was shown
last, and when it ends. Their secrets are nowhere. It takes an admin's token.`

func tokenList(a *command.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List tokens, without their secrets",
		Long:    tokenListHelp,
		Example: "  countersign token list\n  countersign token list --all --json | jq -r 'select(.last_used_at == null) | .token_id'",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			tokens, err := c.Tokens(ctx, all)
			if err != nil {
				return err
			}
			if a.JSON {
				return command.WriteJSONLines(a, tokens)
			}
			rows := make([][]string, len(tokens))
			for i, t := range tokens {
				rows[i] = []string{t.ID, t.Name, t.Role, narrowed(t), command.Local(t.LastUsedAt), ends(t)}
			}
			return command.Table(a.Out, []string{"TOKEN", "NAME", "ROLE", "NARROWED TO", "LAST USED", "ENDS"}, rows)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that were revoked or have expired")
	return cmd
}

// narrowed says what a token is narrowed to.
func narrowed(t client.Token) string {
	return strings.Join(append(t.Scopes[:len(t.Scopes):len(t.Scopes)], t.Tools...), " ")
}

// ends says when a token ends, or ended.
func ends(t client.Token) string {
	if t.RevokedAt != nil {
		return "revoked " + command.Local(t.RevokedAt)
	}
	return cmp.Or(command.Local(t.ExpiresAt), "never")
}

const tokenRotateHelp = `Give a token another secret, and write it to standard output, alone on its line.
The token stays the same to everybody else: its id, its session and what it
proposed.

With --overlap the old secret stays valid that long, so that whoever holds it
can be given the new one; without, it ends at once. Do that when it leaked.`

func tokenRotate(a *command.App) *cobra.Command {
	var overlap, ttl time.Duration
	cmd := &cobra.Command{
		Use:     "rotate TOKEN-ID",
		Short:   "Give a token another secret",
		Long:    tokenRotateHelp,
		Example: "  countersign token rotate 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --overlap 1h",
		Args:    command.Arguments(1, 1, "the token's id"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			id, err := tokenID(args[0])
			if err != nil {
				return err
			}
			if overlap < 0 || overlap > identity.MaxOverlap || ttl < 0 {
				return command.Misuse("--overlap is at most 168h, and neither it nor --ttl is below zero")
			}
			made, err := c.RotateToken(ctx, id, overlap, ttl)
			if err != nil {
				return err
			}
			return showToken(a, made, "Rotated the token "+made.ID)
		}),
	}
	cmd.Flags().DurationVar(&overlap, "overlap", 0, "how long the old secret stays valid; at most 168h")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long the token is valid from now on (default as before)")
	return cmd
}

// tokenID reads the argument that names a token. It may be the token itself,
// so it is not repeated.
func tokenID(text string) (string, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return "", command.Misuse("the argument is not the id of a token, which `token list` shows; give the id, not the token itself")
	}
	return id.String(), nil
}

const tokenRevokeHelp = `End a token's validity. It is named by its id, not by itself, and is refused
everywhere within ten seconds. The last owner's is not revoked.

With --tenant this works on the database of DATABASE_URL itself.`

func tokenRevoke(a *command.App) *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use:     "revoke TOKEN-ID",
		Short:   "End a token's validity",
		Long:    tokenRevokeHelp,
		Example: "  countersign token revoke 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b",
		Args:    command.Arguments(1, 1, "the token's id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := tokenID(args[0])
			if err != nil {
				return err
			}
			if tenant != "" {
				err = revokeInDatabase(cmd.Context(), a, tenant, id)
			} else {
				err = revokeOverAPI(cmd.Context(), a, id)
			}
			if err != nil {
				return err
			}
			if a.JSON {
				return a.WriteJSON(map[string]string{"revoked": id})
			}
			_, err = fmt.Fprintf(a.Out, "revoked %s\n", id)
			return err
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "the tenant's `name`, to work on the database itself")
	return cmd
}

func revokeOverAPI(ctx context.Context, a *command.App, id string) error {
	c, err := a.Client()
	if err != nil {
		return err
	}
	return c.RevokeToken(ctx, id)
}

// revokeInDatabase revokes a token, with the event that tells of it, in one
// transaction.
func revokeInDatabase(ctx context.Context, a *command.App, tenant, id string) error {
	return a.InDatabase(ctx, tenant, func(ctx context.Context, tx pgx.Tx, t envelope.TenantID) error {
		token, err := uuid.Parse(id)
		if err == nil {
			err = identity.Revoke(ctx, tx, t, identity.TokenID(token))
		}
		if err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Event{
			Tenant: t, Kind: audit.Configured, Actor: databaseActor, Items: []audit.Item{{Subject: "token " + id + " revoked"}},
		})
	})
}
