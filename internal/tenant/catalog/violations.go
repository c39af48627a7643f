package catalog

import (
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"sources_tenant_id_fkey":        fault.New(fault.NotFound, "no such tenant"),
	"sources_pkey":                  fault.New(fault.Conflict, "a source of that id exists"),
	"sources_source_id_check":       fault.New(fault.Invalid, "a source's id is 1 to 100 of a-z, 0-9, dot, - and _, and starts with a letter or a digit"),
	"sources_kind_check":            fault.New(fault.Invalid, "a source's kind is mcp, builtin, tool_gateway, composio, slack, linear, sentry or webhook"),
	"sources_default_risk_check":    fault.New(fault.Invalid, "a risk is read, write or danger"),
	"sources_drift_guard_check":     fault.New(fault.Invalid, "a drift guard is full or interface"),
	"tools_source_id_fkey":          fault.New(fault.NotFound, "no such source"),
	"tools_risk_override_check":     fault.New(fault.Invalid, "a risk is read, write or danger"),
	"tools_effect_override_check":   fault.New(fault.Invalid, "an effect is read, idempotent, keyed or once"),
	"tools_name_parts_check":        fault.New(fault.Invalid, "a part of a tool's full name is 1 to 100 of a-z, 0-9, - and _, and starts with a letter or a digit"),
	"tools_max_attempts_check":      fault.New(fault.Invalid, "max_attempts is 1 to 100"),
	"snapshot_rules_source_id_fkey": fault.New(fault.NotFound, "no such source"),
}
