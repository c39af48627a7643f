package contact

import (
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"do_not_contact_tenant_id_fkey": fault.New(fault.NotFound, "no such tenant"),
	"do_not_contact_kind_check":     fault.New(fault.Invalid, "an entry's kind is email, domain, phone or handle"),
}
