package policies

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// GET /api/v1/preferences lists what is switched off. With an employee the
// answer is what holds for that employee: its own preferences and everybody's.
// Agents get those of their own employee.
func Preferences(c *request.Call) error {
	var employee envelope.EmployeeID
	one := c.Query.Has("employee_id")
	if one {
		if err := employee.UnmarshalText([]byte(c.Query.Get("employee_id"))); err != nil {
			return request.Invalid("/query/employee_id", envelope.RuleFormat, "must be a UUID")
		}
	}
	if c.By.Role == identity.RoleAgent {
		if one && employee != c.By.Employee {
			return fault.New(fault.Denied, "an agent sees the preferences of its own employee")
		}
		employee, one = c.By.Employee, true
	}
	return request.List(c, func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]settings.Preference, error) {
		all, err := settings.Preferences(ctx, tx, tenant)
		return slices.DeleteFunc(all, func(p settings.Preference) bool {
			return one && p.Employee != employee && p.Employee != (envelope.EmployeeID{})
		}), err
	})
}

// PUT /api/v1/preferences switches tools off for an employee, or for everybody.
func PutPreference(c *request.Call) error {
	var p settings.Preference
	if err := c.Decode(&p); err != nil {
		return err
	}
	c.Detail = map[string]any{"employee_id": request.NilIfZero(p.Employee), "tool": p.Pattern, "enabled": false}
	return c.Configure("preference: "+p.Pattern+" switched off", func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutPreference(ctx, tx, c.By.Tenant, p, c.By.Name)
	})
}

// DELETE /api/v1/preferences switches tools on again.
func DeletePreference(c *request.Call) error {
	var employee envelope.EmployeeID
	if text := c.Query.Get("employee_id"); text != "" {
		if err := employee.UnmarshalText([]byte(text)); err != nil {
			return request.Invalid("/query/employee_id", envelope.RuleFormat, "must be a UUID")
		}
	}
	key := c.Query.Get("tool")
	c.Detail = map[string]any{"employee_id": request.NilIfZero(employee), "tool": key, "enabled": true}
	return c.Configure("preference: "+key+" switched on", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeletePreference(ctx, tx, c.By.Tenant, employee, key)
	})
}
