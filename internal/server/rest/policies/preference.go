package policies

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// preferences is the collection of switched-off tools, by employee and
// pattern.
var preferences = request.Collection[wire.Preference]{
	Name: "preferences", Noun: "preference",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.Preference, error) {
		employee, one, err := c.Employee()
		if err != nil {
			return nil, err
		}
		if c.By.Role == identity.RoleAgent {
			employee, one = c.By.Employee, true
		}
		all, err := settings.Preferences(ctx, tx, c.By.Tenant, c.R.PathValue("tool"))
		all = slices.DeleteFunc(all, func(p settings.Preference) bool {
			return one && p.Employee != employee && p.Employee != (envelope.EmployeeID{})
		})
		return request.Map(all, func(p settings.Preference) wire.Preference {
			return wire.Preference{Employee: p.Employee, Tool: p.Pattern, Change: p.LastChange}
		}), err
	},
	Key:  func(p wire.Preference) string { return modeKey(p.Employee.String(), p.Tool) },
	ETag: func(p *wire.Preference) *string { return &p.ETag },
}

// Preferences handles GET /api/v1/preferences. It lists the switched-off
// tools. With an employee it lists those that apply to the employee: its own
// preferences and everybody's. Agents get those of their own employee.
func Preferences(c *request.Call) error {
	if employee, one, err := c.Employee(); err == nil && one && c.By.Role == identity.RoleAgent && employee != c.By.Employee {
		return fault.New(fault.Denied, "an agent sees the preferences of its own employee")
	}
	return preferences.List(c)
}

// PutPreference handles PUT /api/v1/preferences/{tool}. It switches tools off
// for an employee, or for everybody.
func PutPreference(c *request.Call) error {
	employee, _, err := c.Employee()
	if err != nil {
		return err
	}
	p := settings.Preference{Employee: employee, Pattern: c.R.PathValue("tool"), SetBy: c.By.Person()}
	c.Detail = map[string]any{"employee_id": request.NilIfZero(employee), "tool": p.Pattern, "enabled": false}
	return preferences.Put(c, modeKey(employee.String(), p.Pattern), "preference: "+p.Pattern+" switched off", func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutPreference(ctx, tx, c.By.Tenant, p, c.By.Actor())
	})
}

// DeletePreference handles DELETE /api/v1/preferences/{tool}. It switches tools
// on again.
func DeletePreference(c *request.Call) error {
	employee, _, err := c.Employee()
	if err != nil {
		return err
	}
	tool := c.R.PathValue("tool")
	c.Detail = map[string]any{"employee_id": request.NilIfZero(employee), "tool": tool, "enabled": true}
	return preferences.Delete(c, modeKey(employee.String(), tool), "preference: "+tool+" switched on", func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeletePreference(ctx, tx, c.By.Tenant, employee, tool)
	})
}
