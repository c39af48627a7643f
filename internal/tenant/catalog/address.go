package catalog

import (
	"bytes"
	"encoding/json"

	"github.com/countersign-dev/countersign/envelope"
)

// timeoutMember is the member of a source's configuration that says how long to
// wait, and nothing about where.
const timeoutMember = "timeout"

// addressOf returns the digest of where calls of a source go: its kind, and its
// configuration except for how long to wait. Built-in tools run in the worker
// and have no address.
func addressOf(kind string, config json.RawMessage) []byte {
	if kind == KindBuiltin {
		config = nil
	}
	return sum(schemeAddress, "address", []byte(kind), withoutTimeout(config))
}

// SameAddress reports whether two configurations of one kind differ in nothing
// but how long to wait, regardless of how the database stores them.
func SameAddress(a, b json.RawMessage) bool { return bytes.Equal(withoutTimeout(a), withoutTimeout(b)) }

// withoutTimeout returns the canonical form of a configuration without its time
// limit, or the configuration as it is written if it has none.
func withoutTimeout(config json.RawMessage) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(config, &members) != nil {
		return config
	}
	delete(members, timeoutMember)
	raw, err := json.Marshal(members)
	if err != nil {
		return config
	}
	canonical, err := envelope.Canonical(raw)
	if err != nil {
		return config
	}
	return canonical
}

// SamePlace reports whether calls of two sources go to the same place: same kind,
// same address, same credentials, which may hold an address or name an account.
func (s Source) SamePlace(other Source) bool {
	return bytes.Equal(addressOf(s.Kind, s.Config), addressOf(other.Kind, other.Config)) && bytes.Equal(s.Secret, other.Secret)
}

// Moved reports whether the address is another than was accepted: all tools of
// the source have then drifted.
func (s Source) Moved() bool { return !bytes.Equal(s.address, s.acceptedAddress) }

// bind sets what a decision about the tool is bound to: its definition, and where
// its source is.
func (t *Tool) bind(src Source) {
	listed := t.Digest
	if len(listed) == 0 || listed[0] != schemeSets {
		// A binding does not change because of a new scheme.
		if present, err := fullDigest(t.Key.Action, t.Definition); err == nil {
			listed = present
		}
	}
	t.Binding = sum(schemeBinding, "binding", listed, src.address)
}

// Is reports whether a binding is the tool's: of its definition as it was last
// listed, from where its source is now.
func (t *Tool) Is(binding []byte) bool { return len(binding) > 0 && bytes.Equal(t.Binding, binding) }
