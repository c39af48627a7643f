package limits

import (
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"tenants_session_pending_max_check": fault.New(fault.Invalid, "a session's limits are 0 to 1000000"),
	"tenants_session_minute_max_check":  fault.New(fault.Invalid, "a session's limits are 0 to 1000000"),
	"buckets_tenant_id_fkey":            fault.New(fault.NotFound, "no such tenant"),
	"buckets_name_check":                fault.New(fault.Invalid, "a bucket's name is 1 to 100 of a-z, 0-9, dot, - and _, and starts with a letter or a digit"),
	"buckets_rate_check":                fault.New(fault.Invalid, "a bucket's rate has a limit of at least 1, an interval of at least a millisecond, and a burst of at least 1"),
	"buckets_calendar_check":            fault.New(fault.Invalid, "a bucket's calendar is hour, day, week or month, with a limit of at least 1"),
	"buckets_concurrency_check":         fault.New(fault.Invalid, "a bucket's concurrency is at least 1"),
	"tools_retry_check":                 fault.New(fault.Invalid, "a retry's base and cap are at least a millisecond, and its jitter is 0 to 1"),
	"tools_retry_max_attempts_check":    fault.New(fault.Invalid, "max_attempts is 1 to 100"),
	"quiet_hours_tenant_id_fkey":        fault.New(fault.NotFound, "no such tenant"),
	"quiet_hours_scope_check":           fault.New(fault.Invalid, "quiet hours are of a tenant, an employee, a bucket or a recipient"),
	"quiet_hours_spread_seconds_check":  fault.New(fault.Invalid, "quiet hours are followed by a spread of at most a day"),
	"employees_tenant_id_fkey":          fault.New(fault.NotFound, "no such tenant"),
	"employees_trust_check":             fault.New(fault.Invalid, "trust is none, low, medium or high"),
}
