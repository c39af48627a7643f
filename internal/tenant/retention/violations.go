package retention

import (
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"retention_tenant_id_fkey":        fault.New(fault.NotFound, "no such tenant"),
	"retention_checks_tenant_id_fkey": fault.New(fault.NotFound, "no such tenant"),
	"retention_kind_check":            fault.New(fault.Invalid, "retention is of actions or of events"),
	"retention_days_check":            fault.New(fault.Invalid, "days are 1 to 36500"),
	"retention_action_check":          fault.New(fault.Invalid, "a retention's action is delete or report"),
}
