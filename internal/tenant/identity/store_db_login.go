package identity

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// DBLogin is a database login that may propose in SQL, with its rights.
type DBLogin struct {
	// ID identifies the proposer in actions.
	ID uuid.UUID
	// Login is the name of the role in PostgreSQL.
	Login string
	// Employee, Session, Operator, Tools and Names are those of a Grant, except
	// that without a session its proposals have none.
	Employee envelope.EmployeeID
	Session  string
	Operator uuid.UUID
	Tools    []string
	Names    Names
	// MaxWaiting is the approximate maximum of its waiting proposals.
	MaxWaiting int
	BoundAt    time.Time
	By         envelope.Actor
}

// DefaultMaxWaiting is the default of MaxWaiting.
const DefaultMaxWaiting = 250_000

// AuditItem returns the audit log entry of a binding.
func (l DBLogin) AuditItem() (subject string, detail map[string]any) {
	detail = map[string]any{"login": l.Login, "login_id": l.ID, "tools": l.Tools, "automations": l.Names.Automations, "employees": l.Names.Employees, "sessions": l.Names.Sessions}
	if l.Names.ExternalIDPrefix != "" {
		detail["external_id_prefix"] = l.Names.ExternalIDPrefix
	}
	if l.Employee != (envelope.EmployeeID{}) {
		detail["employee_id"] = l.Employee
	}
	if l.Session != "" {
		detail["session_id"] = l.Session
	}
	if l.Operator != uuid.Nil {
		detail["operator_id"] = l.Operator
	}
	return "database login " + l.Login + " bound", detail
}

// BindDBLogin binds a login, in a transaction of the scope postgres.Admin. A
// login that is already bound to the tenant is bound again under a new id: its
// waiting proposals are refused. A login bound to another tenant is
// fault.Conflict. One that does not exist, cannot log in, or is a superuser, who
// could impersonate another login, is fault.Invalid.
func BindDBLogin(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, l DBLogin) (DBLogin, error) {
	if err := l.check(ctx, tx, tenant); err != nil {
		return DBLogin{}, err
	}
	if _, err := UnbindDBLogin(ctx, tx, tenant, l.Login); err != nil {
		return DBLogin{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return DBLogin{}, err
	}
	l.ID = id
	return l, violations.Fault(dbsqlc.New().DbLoginBind(ctx, tx, &dbsqlc.DbLoginBindParams{
		TenantID: tenant, LoginID: id, Login: l.Login, EmployeeID: postgres.OrNull(l.Employee), SessionID: postgres.OrNull(l.Session),
		OperatorID: postgres.OrNull(l.Operator), Tools: l.Tools, Automations: l.Names.Automations, Employees: l.Names.Employees, Sessions: l.Names.Sessions, ExternalIDPrefix: postgres.OrNull(l.Names.ExternalIDPrefix),
		WaitingMax: int32(l.MaxWaiting), BoundBy: string(l.By),
	}))
}

func (l *DBLogin) check(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
	const mostWaiting = 10_000_000
	if l.MaxWaiting < 1 || l.MaxWaiting > mostWaiting {
		return fault.New(fault.Invalid, "the waiting proposals of a login must be limited to 1 to %d", mostWaiting)
	}
	if err := l.Names.check(); err != nil {
		return err
	}
	if l.Tools != nil {
		if err := checkTools(l.Tools); err != nil {
			return err
		}
	}
	if l.Operator != uuid.Nil {
		if o, err := OperatorByID(ctx, tx, tenant, l.Operator); err != nil || o.Disabled {
			return errors.Join(err, fault.New(fault.Invalid, "the operator does not exist or is disabled"))
		}
	}
	role, err := dbsqlc.New().DbLoginRole(ctx, tx, l.Login)
	switch {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && !role.CanLogin:
		return fault.New(fault.Invalid, "the database has no login of that name; create it first: CREATE ROLE … LOGIN")
	case err != nil:
		return err
	case role.Superuser:
		return fault.New(fault.Invalid, "the login is a superuser, which could pass for any other login; make one for the application")
	}
	return nil
}

// UnbindDBLogin removes the binding of a login, in a transaction of the scope
// postgres.Admin. It reports whether it was bound. Its waiting proposals are
// refused.
func UnbindDBLogin(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, login string) (bool, error) {
	n, err := dbsqlc.New().DbLoginUnbind(ctx, tx, &dbsqlc.DbLoginUnbindParams{TenantID: tenant, Login: login})
	return n > 0, err
}

// DBLogins lists the bound logins of a tenant.
func DBLogins(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]DBLogin, error) {
	rows, err := dbsqlc.New().DbLoginList(ctx, tx, tenant)
	return postgres.Map(rows, err, func(r dbsqlc.DbLoginListRow) DBLogin {
		return DBLogin{
			ID: r.LoginID, Login: r.Login, Employee: postgres.OrZero(r.EmployeeID), Session: postgres.OrZero(r.SessionID),
			Operator: postgres.OrZero(r.OperatorID), Tools: r.Tools, Names: Names{r.Automations, r.Employees, r.Sessions, postgres.OrZero(r.ExternalIDPrefix)}, MaxWaiting: int(r.WaitingMax),
			BoundAt: r.BoundAt, By: envelope.Actor(strings.TrimSpace(r.BoundBy)),
		}
	})
}
