package rest

import (
	"sync"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

const (
	// bulkFrom is the length from which a body counts as large, in bytes.
	bulkFrom = 1 << 20
	// maxBulk bounds the large bodies in memory, in bytes, and maxTenantBulk those
	// of one tenant.
	maxBulk       = 4 * envelope.MaxManyBytes
	maxTenantBulk = 2 * envelope.MaxManyBytes
)

// bulk counts the bytes of the large bodies that are being read and handled.
type bulk struct {
	mu      sync.Mutex
	all     int64
	tenants map[envelope.TenantID]int64
}

// hold counts a body until release is called. A length below zero is not known,
// and counts as the most that the body may have. The error is fault.Busy.
func (b *bulk) hold(tenant envelope.TenantID, length, most int64) (release func(), err error) {
	if length < 0 || length > most {
		length = most
	}
	if length < bulkFrom {
		return func() {}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all+length > maxBulk || b.tenants[tenant]+length > maxTenantBulk {
		return nil, fault.New(fault.Busy, "too many requests with large bodies at once; try again")
	}
	b.all += length
	b.tenants[tenant] += length
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.all -= length
		if b.tenants[tenant] -= length; b.tenants[tenant] == 0 {
			delete(b.tenants, tenant)
		}
	}, nil
}
