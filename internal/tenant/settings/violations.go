package settings

import (
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"policy_modes_tenant_id_fkey":    fault.New(fault.NotFound, "no such tenant"),
	"policy_rules_tenant_id_fkey":    fault.New(fault.NotFound, "no such tenant"),
	"policy_rules_rule_id_check":     fault.New(fault.Invalid, "a rule's id is 1 to 100 of a-z, 0-9, dot, - and _, and starts with a letter or a digit"),
	"session_modes_tenant_id_fkey":   fault.New(fault.NotFound, "no such tenant"),
	"preferences_tenant_id_fkey":     fault.New(fault.NotFound, "no such tenant"),
	"grants_tenant_id_fkey":          fault.New(fault.NotFound, "no such tenant"),
	"grants_pins_check":              fault.New(fault.Invalid, "a grant's pins are JSON Pointers with values"),
	"grants_expires_at_check":        fault.New(fault.Invalid, "a grant holds for 1 second to 90 days"),
	"reviews_tenant_id_fkey":         fault.New(fault.NotFound, "no such tenant"),
	"reviews_risk_check":             fault.New(fault.Invalid, "a risk is low, medium or high"),
	"reviews_approvals_needed_check": fault.New(fault.Invalid, "an action needs 1 to 5 approvals"),
	"reviews_wait_seconds_check":     fault.New(fault.Invalid, "the times of a review are at most 30 days"),
	"reviews_warn_seconds_check":     fault.New(fault.Invalid, "the times of a review are at most 30 days"),
	"reviews_escalate_seconds_check": fault.New(fault.Invalid, "the times of a review are at most 30 days"),
}
