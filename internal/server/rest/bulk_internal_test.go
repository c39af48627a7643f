package rest

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

func TestLargeBodiesAreBoundedPerTenantAndInAll(t *testing.T) {
	t.Parallel()
	one, two, three := envelope.TenantID(uuid.New()), envelope.TenantID(uuid.New()), envelope.TenantID(uuid.New())
	b := bulk{tenants: make(map[envelope.TenantID]int64)}
	hold := func(tenant envelope.TenantID, length int64) (func(), error) {
		return b.hold(tenant, length, envelope.MaxManyBytes)
	}

	release, first := hold(one, envelope.MaxManyBytes)
	_, more := hold(one, envelope.MaxManyBytes)
	_, second := hold(one, bulkFrom)
	_, small := hold(one, bulkFrom-1)
	_, other := hold(two, -1)
	_, another := hold(two, envelope.MaxManyBytes)
	_, full := hold(three, bulkFrom)
	release()
	_, again := hold(three, bulkFrom)

	for name, err := range map[string]error{"the first": first, "another of a tenant": more, "another of another tenant": another, "a small one": small, "that of another tenant": other, "one after another was released": again} {
		if err != nil {
			t.Errorf("%s is refused: %v", name, err)
		}
	}
	for name, err := range map[string]error{"a second one of a tenant": second, "one of a third tenant": full} {
		if !errors.Is(err, fault.Busy) {
			t.Errorf("%s: hold() = %v, want fault.Busy", name, err)
		}
	}
	if len(b.tenants) != 3 {
		t.Errorf("%d tenants are counted, want 3", len(b.tenants))
	}
}
