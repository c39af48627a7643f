// Package identity has the commands for who may use the API: tokens, operators
// and identity providers, and the login of a person.
package identity

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// databaseActor is who the record names where the command line itself changed
// the database.
const databaseActor = "countersign token"

// Tokens returns the command token.
func Tokens(a *command.App) *cobra.Command {
	return command.NewGroup("token", tokenCreate(a), tokenList(a), tokenNarrow(a), tokenRotate(a), tokenRevoke(a))
}

func tokenCreate(a *command.App) *cobra.Command {
	var in wire.TokenInput
	var tenant string
	cmd := command.NewLocal("create", command.NoArguments(), func(ctx context.Context, _ []string) error {
		g, err := grantOf(in)
		if err != nil {
			return err
		}
		var made wire.IssuedToken
		if tenant != "" {
			made, err = issueInDatabase(ctx, a, tenant, g)
		} else {
			var c *client.Client
			if c, err = a.Client(); err == nil {
				made, err = c.IssueToken(ctx, in)
			}
		}
		if err != nil {
			return err
		}
		return showToken(a, made, "created token "+made.ID)
	})
	flags := cmd.Flags()
	flags.StringVar(&tenant, "tenant", "", "`name` of the tenant; works on the database of DATABASE_URL directly")
	command.EnumFlag(cmd, &in.Role, "role", "`role` of the holder: agent, viewer, operator, admin or owner (required)", "agent", "viewer", "operator", "admin", "owner")
	flags.StringVar(&in.Name, "name", "", "`name` of the holder, as shown in the audit log (required)")
	flags.StringVar(&in.SessionID, "session-id", "", "`session` of the holder's proposals (default for agents: a new one)")
	flags.StringVar(&in.EmployeeID, "employee-id", "", "`id` of the employee that the holder acts for")
	flags.StringVar(&in.OperatorID, "operator", "", "`id` of the person behind it")
	flags.StringArrayVar(&in.Scopes, "scope", nil, "allow only this `scope`, such as actions:read (repeatable)")
	flags.StringArrayVar(&in.Tools, "tool", nil, "allow only tools that match this `pattern`, such as mail:* (repeatable)")
	flags.StringArrayVar(&in.Automations, "automation", nil, "allow proposals for this automation or `pattern`, such as 'news*' (repeatable)")
	flags.StringArrayVar(&in.Employees, "employee", nil, "allow proposals for this employee `id`, or * for all (repeatable)")
	flags.StringArrayVar(&in.Sessions, "session", nil, "without --session-id: allow proposals in this session or `pattern`, such as 'chat-*' (repeatable)")
	flags.StringVar(&in.ExternalIDPrefix, "external-id-prefix", "", "require this `prefix` in external ids, such as mail/")
	command.LifetimeFlag(cmd, &in.ExpiresIn, "expires-in", "validity, such as 30d (default: until revoked)")
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions(texts(identity.Scopes()), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// grantOf checks a token to issue, and returns it as a store takes it.
func grantOf(in wire.TokenInput) (identity.Grant, error) {
	g := identity.Grant{Name: in.Name, Role: identity.Role(in.Role), Session: in.SessionID, Tools: in.Tools, Names: identity.Names{Automations: in.Automations, Employees: in.Employees, Sessions: in.Sessions, ExternalIDPrefix: in.ExternalIDPrefix}, TTL: time.Duration(in.ExpiresIn), By: databaseActor}
	if in.Role == "" || in.Name == "" {
		return g, command.Misuse("--role and --name are required")
	}
	for _, s := range in.Scopes {
		scope := identity.Scope(s)
		if !scope.Valid() {
			return g, command.Misuse("--scope must be one of %s", strings.Join(texts(identity.Scopes()), ", "))
		}
		g.Scopes = append(g.Scopes, scope)
	}
	if in.EmployeeID != "" {
		if err := g.Employee.UnmarshalText([]byte(in.EmployeeID)); err != nil {
			return g, command.Misuse("--employee-id: %v", err)
		}
	}
	if in.OperatorID != "" {
		id, err := uuid.Parse(in.OperatorID)
		if err != nil {
			return g, command.Misuse("--operator must be the id of a person; `countersign operator list` shows them")
		}
		g.Operator = id
	}
	return g, nil
}

// issueInDatabase makes a token and its event, in one transaction.
func issueInDatabase(ctx context.Context, a *command.App, tenant string, g identity.Grant) (wire.IssuedToken, error) {
	var made identity.Issued
	err := a.InDatabase(ctx, tenant, func(ctx context.Context, tx pgx.Tx, id envelope.TenantID) (err error) {
		if made, err = identity.Issue(ctx, tx, id, g, time.Now()); err != nil {
			return err
		}
		what, detail := made.AuditItem()
		return audit.Write(ctx, tx, audit.Event{
			Tenant: id, Kind: audit.Configured, Actor: databaseActor, Items: []audit.Item{{Subject: what, Detail: detail}},
		})
	})
	return made.JSON(), err
}

func texts(all []identity.Scope) []string {
	var out []string
	for _, s := range all {
		out = append(out, string(s))
	}
	return out
}

// showToken writes a secret, the only time that it shows.
func showToken(a *command.App, made wire.IssuedToken, what string) error {
	if a.JSON {
		return a.WriteJSON(made)
	}
	a.Note("%s; it is shown only once:", what)
	return a.Print("%s\n", made.Token)
}

func tokenList(a *command.App) *cobra.Command {
	var all bool
	view := command.View[wire.Token]{
		Head: []string{"TOKEN", "NAME", "ROLE", "NARROWED TO", "LAST USED", "ENDS"},
		Row: func(t wire.Token) []string {
			return []string{t.ID, t.Name, t.Role, narrowed(t), command.Local(t.LastUsedAt), ends(t)}
		},
	}
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return view.Show(a)(c.Tokens(ctx, all))
	})
	cmd.Flags().BoolVar(&all, "all", false, "include revoked and expired tokens")
	return cmd
}

// narrowed describes the restrictions of a token.
func narrowed(t wire.Token) string {
	return strings.Join(append(t.Scopes[:len(t.Scopes):len(t.Scopes)], t.Tools...), " ")
}

// ends describes when a token ends, or ended.
func ends(t wire.Token) string {
	if t.RevokedAt != nil {
		return "revoked " + command.Local(t.RevokedAt)
	}
	return cmp.Or(command.Local(t.ExpiresAt), "never")
}

func tokenNarrow(a *command.App) *cobra.Command {
	var in wire.TokenNarrowing
	cmd := command.New(a, "narrow TOKEN-ID", command.Arguments(1, 1, "the token's id"), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := tokenID(args[0])
		if err != nil {
			return err
		}
		is, err := c.NarrowToken(ctx, id, in)
		return command.Show(a, func(a *command.App, t wire.Token) error {
			return a.Print("narrowed token %s: %s; ends %s\n", t.ID, command.Line(cmp.Or(narrowed(t), "all scopes and tools")), ends(t))
		})(is, err)
	})
	flags := cmd.Flags()
	flags.StringArrayVar(&in.Scopes, "scope", nil, "keep only this `scope`, such as actions:read (repeatable)")
	flags.StringArrayVar(&in.Tools, "tool", nil, "keep only tools that match this `pattern`, such as mail:send (repeatable)")
	flags.StringArrayVar(&in.Automations, "automation", nil, "keep only this automation or `pattern` (repeatable)")
	flags.StringArrayVar(&in.Employees, "employee", nil, "keep only the employee with this `id` (repeatable)")
	flags.StringArrayVar(&in.Sessions, "session", nil, "keep only this session or `pattern` (repeatable)")
	flags.StringVar(&in.ExternalIDPrefix, "external-id-prefix", "", "require this longer `prefix` in external ids")
	command.LifetimeFlag(cmd, &in.ExpiresIn, "expires-in", "new validity from now, not longer than before (default: unchanged)")
	return cmd
}

func tokenRotate(a *command.App) *cobra.Command {
	var in wire.Rotation
	cmd := command.New(a, "rotate TOKEN-ID", command.Arguments(1, 1, "the token's id"), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := tokenID(args[0])
		if err != nil {
			return err
		}
		if time.Duration(in.Overlap) > identity.MaxOverlap {
			return command.Misuse("--overlap must be at most 7d")
		}
		made, err := c.RotateToken(ctx, id, in)
		if err != nil {
			return err
		}
		return showToken(a, made, "rotated token "+made.ID)
	})
	command.DurationFlag(cmd, &in.Overlap, "overlap", "how long the old secret stays valid, at most 7d")
	command.LifetimeFlag(cmd, &in.ExpiresIn, "expires-in", "new validity from now (default: unchanged)")
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

func tokenRevoke(a *command.App) *cobra.Command {
	var tenant string
	cmd := command.NewLocal("revoke TOKEN-ID", command.Arguments(1, 1, "the token's id"), func(ctx context.Context, args []string) error {
		id, err := tokenID(args[0])
		if err != nil {
			return err
		}
		if tenant != "" {
			err = revokeInDatabase(ctx, a, tenant, id)
		} else {
			var c *client.Client
			if c, err = a.Client(); err == nil {
				err = c.RevokeToken(ctx, id)
			}
		}
		if err != nil {
			return err
		}
		return a.Result(map[string]string{"revoked": id}, "revoked %s\n", id)
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "`name` of the tenant; works on the database of DATABASE_URL directly")
	return cmd
}

// revokeInDatabase revokes a token and records the event, in one transaction.
func revokeInDatabase(ctx context.Context, a *command.App, tenant, id string) error {
	return a.InDatabase(ctx, tenant, func(ctx context.Context, tx pgx.Tx, t envelope.TenantID) error {
		token, err := uuid.Parse(id)
		if err == nil {
			err = identity.Revoke(ctx, tx, t, identity.TokenID(token), databaseActor)
		}
		if err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Event{
			Tenant: t, Kind: audit.Configured, Actor: databaseActor, Items: []audit.Item{{Subject: "token " + id + " revoked"}},
		})
	})
}
