package identity

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Operators returns the command operator.
func Operators(a *command.App) *cobra.Command {
	return command.NewGroup("operator", command.NewList(a, command.View[wire.Operator]{
		Head: []string{"PERSON", "NAME", "ROLE", "E-MAIL", "LOGS IN AT", "SLACK", "LAST SEEN"},
		Row: func(o wire.Operator) []string {
			state := o.Role
			if o.Disabled {
				state = "disabled"
			}
			slack := strings.Trim(o.SlackTeam+"/"+o.SlackUser, "/")
			return []string{o.ID, o.Name, state, o.Email, o.Issuer, slack, command.Local(o.LastSeenAt)}
		},
	}, (*client.Client).Operators),
		operatorAdd(a), operatorSet(a), operatorSessions(a),
		operatorSwitch(a, "disable", true), operatorSwitch(a, "enable", false))
}

// operatorSessions returns the command session, about the sessions of people in
// browsers.
func operatorSessions(a *command.App) *cobra.Command {
	return command.NewGroup("session", command.NewList(a, command.View[wire.BrowserSession]{
		Empty: "Nobody is logged in in a browser.", Head: []string{"SESSION", "NAME", "ROLE", "BY", "ADDRESS", "OPENED", "USED", "ENDS"},
		Row: func(s wire.BrowserSession) []string {
			return []string{s.ID, s.Name, s.Role, s.Via, s.Address, command.Local(&s.CreatedAt), command.Local(&s.UsedAt), command.Local(&s.ExpiresAt)}
		},
	}, (*client.Client).Sessions),
		command.NewChange(a, "end SESSION", "the id of a session", "ended session %s", (*client.Client).EndSession))
}

// personFlags adds the flags of a person's attributes.
func personFlags(cmd *cobra.Command, in *wire.OperatorInput) {
	flags := cmd.Flags()
	flags.StringVar(&in.Name, "name", "", "display name of the person")
	flags.StringVar(&in.Email, "email", "", "e-mail `address`, for display only")
	command.EnumFlag(cmd, &in.RoleSet, "role", "fixed `role`: viewer, operator, admin or owner; none uses the role of the login",
		"viewer", "operator", "admin", "owner", "none")
	flags.StringVar(&in.Issuer, "issuer", "", "`address` of the issuer where the person logs in")
	flags.StringVar(&in.Subject, "subject", "", "`id` of the person at that issuer: the claim sub")
	flags.StringVar(&in.SlackTeam, "slack-team", "", "Slack team `id` of the person, such as T024BE7LD")
	flags.StringVar(&in.SlackUser, "slack-user", "", "Slack user `id` of the person, such as U2147483697")
}

func operatorAdd(a *command.App) *cobra.Command {
	var in wire.OperatorInput
	cmd := command.New(a, "add", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		in.RoleSet = strings.TrimPrefix(in.RoleSet, "none")
		if in.Name == "" {
			return command.Misuse("--name is required")
		}
		made, err := c.AddOperator(ctx, in)
		if err == nil && a.JSON {
			return a.WriteJSON(made)
		}
		return a.Done(err, "%s", made.ID)
	})
	personFlags(cmd, &in)
	return cmd
}

func operatorSet(a *command.App) *cobra.Command {
	var in wire.OperatorInput
	cmd := command.New(a, "set PERSON-ID", command.Arguments(1, 1, "the person's id"), nil)
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		in.RoleSet = strings.TrimPrefix(in.RoleSet, "none")
		err := changePerson(ctx, c, args[0], func(was *wire.OperatorInput) {
			for name, field := range map[string][2]*string{
				"name": {&was.Name, &in.Name}, "email": {&was.Email, &in.Email}, "role": {&was.RoleSet, &in.RoleSet}, "issuer": {&was.Issuer, &in.Issuer},
				"subject": {&was.Subject, &in.Subject}, "slack-team": {&was.SlackTeam, &in.SlackTeam}, "slack-user": {&was.SlackUser, &in.SlackUser},
			} {
				if cmd.Flags().Changed(name) {
					*field[0] = *field[1]
				}
			}
		})
		return a.Done(err, "set %s", args[0])
	})
	personFlags(cmd, &in)
	return cmd
}

func operatorSwitch(a *command.App, word string, disabled bool) *cobra.Command {
	return command.New(a, word+" PERSON-ID", command.Arguments(1, 1, "the person's id"), func(ctx context.Context, c *client.Client, args []string) error {
		err := changePerson(ctx, c, args[0], func(was *wire.OperatorInput) { was.Disabled = disabled })
		return a.Done(err, "%sd %s", word, args[0])
	})
}

// changePerson reads a person and sets it changed.
func changePerson(ctx context.Context, c *client.Client, id string, change func(*wire.OperatorInput)) error {
	all, err := c.Operators(ctx)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.ID == id {
			change(&o.OperatorInput)
			return c.PutOperator(ctx, id, o.OperatorInput)
		}
	}
	return command.Misuse("no such person; `countersign operator list` shows the ids")
}

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
		a.CreateFlag(providerSet(a)), providerTest(a), audienceAllow(a),
		command.NewChange(a, "delete PROVIDER", "the id of a provider", "deleted %s", (*client.Client).DeleteProvider))
}

// audienceAllow lets a tenant use an audience that is not its own. Nobody can do
// so through the API.
func audienceAllow(a *command.App) *cobra.Command {
	var tenant, issuer, audience string
	var remove bool
	cmd := command.NewLocal("allow-audience", command.NoArguments(), func(ctx context.Context, _ []string) error {
		if tenant == "" || issuer == "" || audience == "" {
			return command.Misuse("--tenant, --issuer and --audience are required")
		}
		done := "allowed"
		if remove {
			done = "no longer allows"
		}
		err := a.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) error {
			id, err := identity.TenantByName(ctx, tx, tenant)
			if err != nil {
				return err
			}
			if err := identity.AllowAudience(ctx, tx, id, issuer, audience, !remove); err != nil {
				return err
			}
			return audit.Write(ctx, tx, audit.Event{Tenant: id, Kind: audit.Configured, Actor: "countersign provider", Items: []audit.Item{{
				Subject: "audience of an issuer " + done, Detail: map[string]any{"issuer": issuer, "audience": audience, "allowed": !remove},
			}}})
		})
		return a.Done(err, "%s %s of %s for %s", done, audience, issuer, tenant)
	})
	flags := cmd.Flags()
	flags.StringVar(&tenant, "tenant", "", "`name` of the tenant (required)")
	flags.StringVar(&issuer, "issuer", "", "`address` of the issuer, exactly as in the claim iss (required)")
	flags.StringVar(&audience, "audience", "", "`audience` to allow for this tenant alone (required)")
	flags.BoolVar(&remove, "remove", false, "withdraw the permission")
	return cmd
}

func providerSet(a *command.App) *cobra.Command {
	var in wire.ProviderInput
	var secretFile string
	cmd := command.New(a, "set PROVIDER", command.Arguments(1, 1, "an id for the provider"), func(ctx context.Context, c *client.Client, args []string) error {
		if in.Issuer == "" {
			return command.Misuse("--issuer is required")
		}
		if secretFile != "" {
			secret, err := os.ReadFile(secretFile)
			if err != nil {
				return command.Misuse("--web-client-secret-file: %v", err)
			}
			in.WebClientSecret = new(strings.TrimSpace(string(secret)))
		}
		return a.Done(c.PutProvider(ctx, args[0], in), "set %s", args[0])
	})
	flags := cmd.Flags()
	flags.StringVar(&in.Issuer, "issuer", "", "`address` of the issuer, exactly as in the claim iss (required)")
	flags.StringVar(&in.Audience, "audience", "", "required `audience` of tokens, usually the client id (default countersign- followed by the tenant's id)")
	flags.StringArrayVar(&in.Clients, "client", nil, "also accept tokens issued to this `client` (repeatable)")
	flags.StringVar(&in.RoleClaim, "role-claim", "", "`claim` that holds a person's roles: a name or a JSON Pointer")
	flags.StringToStringVar(&in.Roles, "role", nil, "map a value of the claim to a role, as `value=role` (repeatable)")
	command.EnumFlag(cmd, &in.DefaultRole, "default-role", "`role` of people without one: operator or viewer (default: login is refused)", "operator", "viewer")
	flags.StringVar(&in.Label, "label", "", "`label` of its button on the login page")
	flags.StringVar(&in.WebClientID, "web-client-id", "", "`client` id of the API at the issuer, for logins in a browser")
	flags.StringVar(&secretFile, "web-client-secret-file", "", "`file` that holds the client secret; an empty file removes the secret")
	flags.StringArrayVar(&in.AllowedDomains, "domain", nil, "require a verified e-mail address in this `domain` (repeatable)")
	return cmd
}

// maxClaims bounds a file of claims, in bytes.
const maxClaims = 64 << 10

// providerTest shows the role of a login with certain claims.
func providerTest(a *command.App) *cobra.Command {
	var file string
	cmd := command.New(a, "test PROVIDER", command.Arguments(1, 1, "the id of a provider"), func(ctx context.Context, c *client.Client, args []string) error {
		if file == "" {
			return command.Misuse("--claims is required")
		}
		claims, err := a.ReadFile(file, maxClaims)
		if err != nil {
			return err
		}
		all, err := c.Providers(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(p wire.Provider) bool { return p.ID == args[0] })
		if at < 0 {
			return command.Misuse("unknown provider %q; `countersign provider list` shows them", args[0])
		}
		people, err := c.Operators(ctx)
		if err != nil {
			return err
		}
		p := identity.Provider{
			Issuer: all[at].Issuer, Audience: all[at].Audience, RoleClaim: all[at].RoleClaim, Roles: make(map[string]identity.Role),
			DefaultRole: identity.Role(all[at].DefaultRole), AllowedDomains: all[at].AllowedDomains, WebClientID: all[at].WebClientID,
		}
		for value, role := range all[at].Roles {
			p.Roles[value] = identity.Role(role)
		}
		var known []identity.Operator
		for _, o := range people {
			known = append(known, identity.Operator{Issuer: o.Issuer, Subject: o.Subject, RoleSet: identity.Role(o.RoleSet), Disabled: o.Disabled})
		}
		got, err := p.Preview(claims, known)
		if err != nil {
			return err
		}
		return showAdmission(a, got)
	})
	cmd.Flags().StringVar(&file, "claims", "", "`file` with the claims, the JSON object of an ID token; - reads standard input (required)")
	return cmd
}

func showAdmission(a *command.App, got identity.Admission) error {
	role := cmp.Or(string(got.Role), "refused")
	if a.JSON {
		return a.WriteJSON(map[string]string{"role": string(got.Role), "reason": got.Reason, "name": got.Name, "email": got.Email})
	}
	return a.Table([]string{"LOGIN", role}, [][]string{{"why", got.Reason}, {"name", got.Name}, {"e-mail", cmp.Or(got.Email, "none that is verified")}})
}
