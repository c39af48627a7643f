package envelope

import (
	"crypto/sha1"

	"github.com/google/uuid"
)

// Key returns the idempotency key of an action for a tool: the same for every claim and
// every attempt. An action id is unique in its tenant only, and two tenants may share a
// server.
func Key(of TenantID, id ActionID) string {
	var both [32]byte
	copy(both[:16], of[:])
	copy(both[16:], id[:])
	sum := sha1.Sum(both[:]) // uuid.NewSHA1 allocates
	key := uuid.UUID(sum[:16])
	key[6], key[8] = key[6]&0x0f|0x50, key[8]&0x3f|0x80
	return key.String()
}
