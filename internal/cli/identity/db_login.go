package identity

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// loginActor is who the record names where a database login was bound.
const loginActor = "countersign db-login"

// DBLogins returns the command db-login.
func DBLogins(a *command.App) *cobra.Command {
	return command.NewGroup("db-login", loginBind(a), loginList(a), loginUnbind(a))
}

// binding is a database login as the commands show it.
type binding struct {
	Login       string    `json:"login"`
	LoginID     string    `json:"login_id"`
	EmployeeID  string    `json:"employee_id,omitempty"`
	SessionID   string    `json:"session_id,omitempty"`
	OperatorID  string    `json:"operator_id,omitempty"`
	Tools       []string  `json:"tools,omitempty"`
	Automations []string  `json:"automations,omitempty"`
	Employees   []string  `json:"employees,omitempty"`
	Sessions    []string  `json:"sessions,omitempty"`
	Prefix      string    `json:"external_id_prefix,omitempty"`
	MaxWaiting  int       `json:"max_waiting"`
	BoundAt     time.Time `json:"bound_at,omitzero"`
	BoundBy     string    `json:"bound_by"`
}

func bindingOf(l identity.DBLogin) binding {
	b := binding{
		Login: l.Login, LoginID: l.ID.String(), SessionID: l.Session, Tools: l.Tools,
		Automations: l.Names.Automations, Employees: l.Names.Employees, Sessions: l.Names.Sessions, Prefix: l.Names.ExternalIDPrefix, MaxWaiting: l.MaxWaiting, BoundAt: l.BoundAt, BoundBy: string(l.By),
	}
	if l.Employee != (envelope.EmployeeID{}) {
		b.EmployeeID = l.Employee.String()
	}
	if l.Operator != uuid.Nil {
		b.OperatorID = l.Operator.String()
	}
	return b
}

// inTenant works on the database itself: no route of the API binds a login.
func inTenant(ctx context.Context, a *command.App, tenant string, do func(ctx context.Context, tx pgx.Tx, id envelope.TenantID) error) error {
	if tenant == "" {
		return command.Misuse("--tenant is required: it names the tenant in the database of DATABASE_URL")
	}
	return a.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) error {
		id, err := identity.TenantByName(ctx, tx, tenant)
		if err != nil {
			return err
		}
		return do(ctx, tx, id)
	})
}

func loginBind(a *command.App) *cobra.Command {
	l := identity.DBLogin{By: loginActor}
	var tenant, employee, operator string
	var triage bool
	cmd := command.NewLocal("bind LOGIN", command.Arguments(1, 1, "a database login"), func(ctx context.Context, args []string) error {
		l.Login = args[0]
		if triage {
			l.Tools = append(l.Tools, plan.Patterns()...)
		}
		if employee != "" {
			if err := l.Employee.UnmarshalText([]byte(employee)); err != nil {
				return command.Misuse("--employee-id: %v", err)
			}
		}
		if operator != "" {
			id, err := uuid.Parse(operator)
			if err != nil {
				return command.Misuse("--operator must be the id of a person; `countersign operator list` shows them")
			}
			l.Operator = id
		}
		err := inTenant(ctx, a, tenant, func(ctx context.Context, tx pgx.Tx, id envelope.TenantID) (err error) {
			if l, err = identity.BindDBLogin(ctx, tx, id, l); err != nil {
				return err
			}
			what, detail := l.AuditItem()
			return audit.Write(ctx, tx, audit.Event{
				Tenant: id, Kind: audit.Configured, Actor: loginActor, Items: []audit.Item{{Subject: what, Detail: detail}},
			})
		})
		if err != nil {
			return err
		}
		return a.Result(bindingOf(l), "bound %s\n", command.Safe(l.Login))
	})
	flags := cmd.Flags()
	flags.StringVar(&tenant, "tenant", "", "`name` of the tenant (required)")
	flags.StringVar(&employee, "employee-id", "", "`id` of the employee that it acts for")
	flags.StringVar(&l.Session, "session-id", "", "`session` of its proposals (default: none, or those of --session)")
	flags.StringVar(&operator, "operator", "", "`id` of the person behind it, who then cannot approve its actions")
	flags.StringArrayVar(&l.Tools, "tool", nil, "allow tools that match this `pattern`, such as crm:* (repeatable; default all)")
	flags.BoolVar(&triage, "triage", false, "allow the tools that triage proposes: of mail, and of the built-in action tags")
	flags.StringArrayVar(&l.Names.Automations, "automation", nil, "allow proposals for this automation or `pattern`, such as 'news*' (repeatable)")
	flags.StringArrayVar(&l.Names.Employees, "employee", nil, "allow proposals for this employee `id`, or * for all (repeatable)")
	flags.StringArrayVar(&l.Names.Sessions, "session", nil, "without --session-id: allow proposals in this session or `pattern`, such as 'chat-*' (repeatable)")
	flags.StringVar(&l.Names.ExternalIDPrefix, "external-id-prefix", "", "require this `prefix` in external ids, such as shop/")
	flags.IntVar(&l.MaxWaiting, "max-waiting", identity.DefaultMaxWaiting, "approximate limit of waiting proposals")
	return cmd
}

func loginList(a *command.App) *cobra.Command {
	var tenant string
	view := command.View[binding]{
		Empty: "no login is bound; `countersign db-login bind` binds one",
		Head:  []string{"LOGIN", "ID", "TOOLS", "BOUND"},
		Row: func(b binding) []string {
			return []string{b.Login, b.LoginID, strings.Join(b.Tools, " "), command.Local(&b.BoundAt)}
		},
	}
	cmd := command.NewLocal("list", command.NoArguments(), func(ctx context.Context, _ []string) error {
		var all []binding
		err := inTenant(ctx, a, tenant, func(ctx context.Context, tx pgx.Tx, id envelope.TenantID) error {
			logins, err := identity.DBLogins(ctx, tx, id)
			for _, l := range logins {
				all = append(all, bindingOf(l))
			}
			return err
		})
		return view.Show(a)(all, err)
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "`name` of the tenant (required)")
	return cmd
}

func loginUnbind(a *command.App) *cobra.Command {
	var tenant string
	cmd := command.NewLocal("unbind LOGIN", command.Arguments(1, 1, "a database login"), func(ctx context.Context, args []string) error {
		err := inTenant(ctx, a, tenant, func(ctx context.Context, tx pgx.Tx, id envelope.TenantID) error {
			bound, err := identity.UnbindDBLogin(ctx, tx, id, args[0])
			if err != nil {
				return err
			}
			if !bound {
				return command.Misuse("no login %s is bound to the tenant; `countersign db-login list` shows them", command.Safe(args[0]))
			}
			return audit.Write(ctx, tx, audit.Event{
				Tenant: id, Kind: audit.Configured, Actor: loginActor,
				Items: []audit.Item{{Subject: "database login " + args[0] + " unbound", Detail: map[string]any{"login": args[0]}}},
			})
		})
		if err != nil {
			return err
		}
		return a.Result(map[string]string{"unbound": args[0]}, "unbound %s\n", command.Safe(args[0]))
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "`name` of the tenant (required)")
	return cmd
}
