package subscription

import (
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"subscriptions_tenant_id_fkey":           fault.New(fault.NotFound, "no such tenant"),
	"subscriptions_source_id_fkey":           fault.New(fault.NotFound, "no such source"),
	"subscriptions_name_check":               fault.New(fault.Invalid, "a subscription's name is 1 to 63 of a-z, 0-9, dot, - and _, and starts with a letter or a digit"),
	"subscriptions_kinds_check":              fault.New(fault.Invalid, "a subscription has 1 to 50 kinds of event"),
	"subscriptions_min_risk_check":           fault.New(fault.Invalid, "a risk is low, medium or high"),
	"subscriptions_pkey":                     fault.New(fault.Conflict, "a subscription of that name exists"),
	"subscriptions_subscription_id_key":      fault.New(fault.Conflict, "a subscription of that name exists"),
	"subscriptions_id_key":                   fault.New(fault.Conflict, "a subscription of that name exists"),
	"approval_messages_pkey":                 fault.New(fault.Conflict, "the subscription does not exist any more"),
	"approval_messages_subscription_id_fkey": fault.New(fault.Conflict, "the subscription does not exist any more"),
}
