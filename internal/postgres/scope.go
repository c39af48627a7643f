package postgres

import (
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// Scope is the role and tenant of a transaction. Without a scope, row-level
// security hides every row.
type Scope struct {
	role     string
	tenant   string
	planned  bool
	readOnly bool
}

// API acts for one tenant with the rights of the API: whatever the code queries,
// it reads and writes that tenant's rows only.
func API(tenant envelope.TenantID) Scope {
	return Scope{role: "countersign_api", tenant: tenant.String()}
}

// Authenticator acts for no tenant yet: it can find a token and nothing else.
func Authenticator() Scope { return Scope{role: "countersign_api"} }

// Worker acts with the rights of a worker, across tenants.
func Worker() Scope { return Scope{role: "countersign_worker"} }

// Admin acts as the connection's own user: for migrations and for setting up
// tenants from the command line.
func Admin() Scope { return Scope{} }

// Planned returns the scope with one kind of plan: index lookups in nested
// loops, planned once. The hot statements take and settle a few
// hundred rows by key. With small tables that were never analysed the planner
// sometimes preferred to merge or hash whole tables into them, and one run in
// six took five times as long.
func (s Scope) Planned() Scope {
	s.planned = true
	return s
}

// ReadOnly returns the scope with a read-only transaction.
func (s Scope) ReadOnly() Scope {
	s.readOnly = true
	return s
}

// idleTimeout ends a transaction whose client sends nothing: if its host froze or
// vanished, it would keep its locks, and with them a bucket, until TCP gives up,
// which takes hours.
const idleTimeout = "15s"

func (s Scope) begin() string {
	var b strings.Builder
	b.WriteString("begin")
	if s.readOnly {
		b.WriteString(" read only")
	}
	if s.role != "" {
		b.WriteString("; set local role " + s.role + "; set local idle_in_transaction_session_timeout = '" + idleTimeout + "'")
	}
	if s.tenant != "" {
		// The text of a UUID cannot break out of the quotes.
		b.WriteString("; set local countersign.tenant_id = '" + s.tenant + "'")
	}
	if s.planned {
		b.WriteString("; set local enable_hashjoin = off; set local enable_mergejoin = off" +
			"; set local enable_seqscan = off; set local enable_bitmapscan = off" +
			"; set local jit = off; set local plan_cache_mode = force_generic_plan")
	}
	return b.String()
}
