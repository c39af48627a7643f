package request

import (
	"sync"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// tenantShare is the limit of a tenant as a multiple of a token's.
const tenantShare = 5

// OpenLimit bounds the open requests of one kind in this process, such as
// streams, for one token and for all tokens of a tenant. It is safe for
// concurrent use.
type OpenLimit struct {
	what     string
	perToken int

	mu      sync.Mutex
	tokens  map[identity.TokenID]int
	tenants map[envelope.TenantID]int
}

// NewOpenLimit returns a limit of perToken for each token, and five times as
// many for a tenant. what is used in messages and the names of quotas, a plural.
func NewOpenLimit(what string, perToken int) *OpenLimit {
	return &OpenLimit{what: what, perToken: perToken, tokens: make(map[identity.TokenID]int), tenants: make(map[envelope.TenantID]int)}
}

// Open counts one more until closed is called. The error is fault.Limited.
func (l *OpenLimit) Open(by identity.Principal) (closed func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tokens[by.Token] >= l.perToken {
		return nil, l.exceeded("token", l.perToken)
	}
	if l.tenants[by.Tenant] >= l.perToken*tenantShare {
		return nil, l.exceeded("tenant", l.perToken*tenantShare)
	}
	l.tokens[by.Token]++
	l.tenants[by.Tenant]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.tokens[by.Token]--; l.tokens[by.Token] == 0 {
			delete(l.tokens, by.Token)
		}
		if l.tenants[by.Tenant]--; l.tenants[by.Tenant] == 0 {
			delete(l.tenants, by.Tenant)
		}
	}), nil
}

func (l *OpenLimit) exceeded(whose string, most int) error {
	const again = 5 * time.Second
	return fault.Exceeded(fault.Quota{Name: whose + "-" + l.what, Max: most, Reset: again},
		"this %s has %d %s open here, which is the limit; close some, or try again later", whose, most, l.what)
}
