package rest

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// listPreferences lists what is switched off. Who asks for an employee gets
// what holds for that one: its own and everybody's. An agent asks for itself.
func (s *Server) listPreferences(c *call) error {
	var employee envelope.EmployeeID
	one := c.query.Has("employee_id")
	if one {
		if err := employee.UnmarshalText([]byte(c.query.Get("employee_id"))); err != nil {
			return invalid("/query/employee_id", envelope.RuleFormat, "must be a UUID")
		}
	}
	if c.by.Role == identity.RoleAgent {
		if one && employee != c.by.Employee {
			return fault.New(fault.Denied, "an agent sees the preferences of its own employee")
		}
		employee, one = c.by.Employee, true
	}
	return listed(s, c, func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]settings.Preference, error) {
		all, err := settings.Preferences(ctx, tx, tenant)
		return slices.DeleteFunc(all, func(p settings.Preference) bool {
			return one && p.Employee != employee && p.Employee != (envelope.EmployeeID{})
		}), err
	})
}

func (s *Server) putPreference(c *call) error {
	var p settings.Preference
	if err := c.decode(&p); err != nil {
		return err
	}
	c.detail = map[string]any{"employee_id": orNil(p.Employee), "key": p.Pattern, "enabled": false}
	return s.configure(c, "preference: "+p.Pattern+" switched off", func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutPreference(ctx, tx, c.by.Tenant, p, c.by.Name)
	})
}

func (s *Server) deletePreference(c *call) error {
	var employee envelope.EmployeeID
	if text := c.query.Get("employee_id"); text != "" {
		if err := employee.UnmarshalText([]byte(text)); err != nil {
			return invalid("/query/employee_id", envelope.RuleFormat, "must be a UUID")
		}
	}
	key := c.query.Get("key")
	c.detail = map[string]any{"employee_id": orNil(employee), "key": key, "enabled": true}
	return s.configure(c, "preference: "+key+" switched on", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeletePreference(ctx, tx, c.by.Tenant, employee, key)
	})
}
