package pause

import (
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"pauses_tenant_id_fkey":   fault.New(fault.NotFound, "no such tenant"),
	"pauses_scope_check":      fault.New(fault.Invalid, "a pause is of everything, a tenant, an employee, a source, a bucket or a tool, and names which"),
	"pauses_everything_check": fault.New(fault.Invalid, "a pause is of everything, a tenant, an employee, a source, a bucket or a tool, and names which"),
	"pauses_subject_check":    fault.New(fault.Invalid, "a pause is of everything, a tenant, an employee, a source, a bucket or a tool, and names which"),
	"pauses_reason_check":     fault.New(fault.Invalid, "a pause has a reason"),
	"pauses_active_key":       fault.New(fault.Conflict, "the same is paused already"),
}
