package identity

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const providerHelp = `Issuers of OpenID Connect whose signed tokens are taken, so that people log in
with the account that they have: Keycloak, Okta, Entra, Google, and others. Only
an owner sets them up: who vouches for people decides who they are.`

// Providers returns the command provider.
func Providers(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "provider",
		Short:   "Set up where people log in: list, set, delete",
		Long:    providerHelp,
		Example: "  countersign provider list\n  countersign provider set acme --issuer https://login.acme.com --audience countersign --default-role viewer",
		Args:    cobra.ArbitraryArgs,
		RunE:    command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(providerList(a), providerSet(a), &cobra.Command{
		Use:     "delete PROVIDER",
		Short:   "Take an issuer's tokens no more",
		Long:    "Take an issuer's tokens no more, within ten seconds. The people stay, and so do\nthe tokens that were made for them here.",
		Example: "  countersign provider delete acme",
		Args:    command.Arguments(1, 1, "the id of a provider"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.Done(c.DeleteProvider(ctx, args[0]), "deleted %s", args[0])
		}),
	})
	return cmd
}

func providerList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List whose signed tokens are taken",
		Long:    "List whose signed tokens are taken, and what they make of whom. With --json it\nis one object a line.",
		Example: "  countersign provider list",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.Providers(ctx)
			if err != nil {
				return err
			}
			if a.JSON {
				return command.WriteJSONLines(a, all)
			}
			rows := make([][]string, len(all))
			for i, p := range all {
				var roles []string
				for _, value := range slices.Sorted(maps.Keys(p.Roles)) {
					roles = append(roles, value+"="+p.Roles[value])
				}
				rows[i] = []string{p.ID, p.Issuer, p.Audience, p.RoleClaim, strings.Join(roles, " "), p.DefaultRole, strings.Join(p.AllowedDomains, " ")}
			}
			return command.Table(a.Out, []string{"PROVIDER", "ISSUER", "AUDIENCE", "ROLE CLAIM", "ROLES", "ELSE", "DOMAINS"}, rows)
		}),
	}
}

const providerSetHelp = `Take the signed tokens of an issuer that are for an audience. Everything is set;
what no flag names is taken away.

A person's role is the highest that --role-claim and --role give, or else
--default-role, or else none, and then the person is refused. Where anybody can
have an account, as at Google, name --domain, or everybody is let in.`

func providerSet(a *command.App) *cobra.Command {
	var in client.ProviderInput
	cmd := &cobra.Command{
		Use:   "set PROVIDER",
		Short: "Take an issuer's signed tokens",
		Long:  providerSetHelp,
		Example: `  countersign provider set keycloak --issuer https://login.acme.com/realms/acme --audience countersign \
    --role-claim /realm_access/roles --role outbox-operators=operator --role outbox-admins=admin
  countersign provider set google --issuer https://accounts.google.com --audience 1234.apps.googleusercontent.com \
    --domain acme.com --default-role viewer`,
		Args: command.Arguments(1, 1, "an id for the provider"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if in.Issuer == "" || in.Audience == "" {
				return command.Misuse("--issuer and --audience are required")
			}
			return a.Done(c.PutProvider(ctx, args[0], in), "set %s", args[0])
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Issuer, "issuer", "", "the issuer's `address`, as its tokens write it (required)")
	flags.StringVar(&in.Audience, "audience", "", "for `whom` its tokens must be, as a rule the client's id (required)")
	flags.StringArrayVar(&in.Clients, "client", nil, "a `client`, beside the audience, to which a token may have been issued; may be repeated")
	flags.StringVar(&in.RoleClaim, "role-claim", "", "the `claim` that says what somebody may do: a name, or a JSON Pointer")
	flags.StringToStringVar(&in.Roles, "role", nil, "which of its values is which role, as `value=role`; may be repeated")
	flags.StringVar(&in.DefaultRole, "default-role", "", "the `role` of others: operator or viewer (default they are refused)")
	flags.StringArrayVar(&in.AllowedDomains, "domain", nil, "a `domain` of which people must have a verified e-mail address; may be repeated")
	command.Fixed(cmd, "default-role", "operator", "viewer")
	return cmd
}
