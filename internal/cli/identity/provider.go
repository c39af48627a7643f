package identity

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Providers returns the command provider.
func Providers(a *command.App) *cobra.Command {
	return command.NewGroup("provider", "Set up where people log in: list, set, delete",
		`OpenID Connect issuers whose tokens are accepted, so that people log in with the
account that they have: Keycloak, Okta, Entra, Google, and others. Only an owner
sets them up, since an issuer decides who people are.`,
		"  countersign provider list\n  countersign provider set acme --issuer https://login.acme.com --audience countersign --default-role viewer",
		command.NewList(a, command.Help{
			Short:   "List the identity providers",
			Long:    "List the identity providers, and the roles that they give. With --json it is one\nobject a line.",
			Example: "  countersign provider list",
		}, command.View[wire.Provider]{
			Head: []string{"PROVIDER", "ISSUER", "AUDIENCE", "ROLE CLAIM", "ROLES", "ELSE", "DOMAINS"},
			Row: func(p wire.Provider) []string {
				var roles []string
				for _, value := range slices.Sorted(maps.Keys(p.Roles)) {
					roles = append(roles, value+"="+p.Roles[value])
				}
				return []string{p.ID, p.Issuer, p.Audience, p.RoleClaim, strings.Join(roles, " "), p.DefaultRole, strings.Join(p.AllowedDomains, " ")}
			},
		}, func(ctx context.Context, c *client.Client) ([]wire.Provider, error) { return c.Providers(ctx) }),
		providerSet(a),
		command.NewChange(a, "delete PROVIDER", command.Help{
			Short:   "Accept an issuer's tokens no more",
			Long:    "Accept an issuer's tokens no more, within ten seconds. The people stay, and so\ndo the tokens that were made for them here.",
			Example: "  countersign provider delete acme",
		}, "the id of a provider", "deleted %s", func(ctx context.Context, c *client.Client, id string) error { return c.DeleteProvider(ctx, id) }))
}

const providerSetHelp = `Accept the tokens of an issuer that are for an audience. Everything is replaced;
what no flag names is removed.

A person's role is the highest that --role-claim and --role give, or else
--default-role, or else none, and then the person is refused. Where anybody can
have an account, as at Google, name --domain, or everybody has access.`

func providerSet(a *command.App) *cobra.Command {
	var in wire.ProviderInput
	cmd := &cobra.Command{
		Use:   "set PROVIDER",
		Short: "Accept an issuer's tokens",
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
	command.EnumFlag(cmd, &in.DefaultRole, "default-role", "the `role` of others: operator or viewer (default they are refused)", "operator", "viewer")
	flags.StringArrayVar(&in.AllowedDomains, "domain", nil, "a `domain` of which people must have a verified e-mail address; may be repeated")
	return cmd
}
