package catalog

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/executor"
)

// digestScheme is the first byte of a definition's digest. A later scheme
// takes another number, so that changing the scheme is not taken for drift.
const digestScheme = 1

// Digest covers all of a tool's definition that its source gave: whatever an
// agent reads or a call depends on. The order of keys does not count.
func Digest(t executor.Tool) ([]byte, error) {
	hints, err := json.Marshal(t.Hints)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(t.Name), []byte(t.Title), []byte(t.Description), t.InputSchema, t.OutputSchema, hints} {
		if len(part) > 0 && (part[0] == '{' || part[0] == '[') {
			if part, err = envelope.Canonical(part); err != nil {
				return nil, err
			}
		}
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	return h.Sum([]byte{digestScheme}), nil
}
