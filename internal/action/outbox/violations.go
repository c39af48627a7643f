package outbox

import (
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"outbox_pkey": fault.New(fault.Conflict, "the action waits in the outbox already"),
}
