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
	return command.NewGroup("provider", command.NewList(a, command.View[wire.Provider]{
		Head: []string{"PROVIDER", "ISSUER", "AUDIENCE", "ROLE CLAIM", "ROLES", "ELSE", "DOMAINS"},
		Row: func(p wire.Provider) []string {
			var roles []string
			for _, value := range slices.Sorted(maps.Keys(p.Roles)) {
				roles = append(roles, value+"="+p.Roles[value])
			}
			return []string{p.ID, p.Issuer, p.Audience, p.RoleClaim, strings.Join(roles, " "), p.DefaultRole, strings.Join(p.AllowedDomains, " ")}
		},
	}, (*client.Client).Providers),
		providerSet(a),
		command.NewChange(a, "delete PROVIDER", "the id of a provider", "deleted %s", (*client.Client).DeleteProvider))
}

func providerSet(a *command.App) *cobra.Command {
	var in wire.ProviderInput
	cmd := command.New(a, "set PROVIDER", command.Arguments(1, 1, "an id for the provider"), func(ctx context.Context, c *client.Client, args []string) error {
		if in.Issuer == "" || in.Audience == "" {
			return command.Misuse("--issuer and --audience are required")
		}
		return a.Done(c.PutProvider(ctx, args[0], in), "set %s", args[0])
	})
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
