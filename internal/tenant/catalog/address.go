package catalog

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// timeoutMember is the member of a source's configuration for the time limit. It
// is not part of the address.
const timeoutMember = "timeout"

// addressOf returns the digest of a source's address: its kind, and its
// configuration except for the time limit. Built-in tools run in the worker and
// have no address.
func addressOf(kind string, config json.RawMessage) []byte {
	if kind == KindBuiltin {
		config = nil
	}
	return sum(schemeAddress, "address", []byte(kind), withoutTimeout(config))
}

// SameAddress reports whether two configurations of one kind differ only in the
// time limit, regardless of their form in the database.
func SameAddress(a, b json.RawMessage) bool { return bytes.Equal(withoutTimeout(a), withoutTimeout(b)) }

// withoutTimeout returns the canonical form of a configuration without its time
// limit, or the configuration itself if it has no canonical form.
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

// SamePlace reports whether two sources have the same kind, address and
// credentials, which may contain an address or an account.
func (s Source) SamePlace(other Source) bool {
	return bytes.Equal(addressOf(s.Kind, s.Config), addressOf(other.Kind, other.Config)) && bytes.Equal(s.Secret, other.Secret) &&
		s.loginAt().Equal(other.loginAt())
}

// loginAt returns the time of the login, which names it; zero without one.
func (s Source) loginAt() time.Time {
	if s.Login == nil {
		return time.Time{}
	}
	return s.Login.At
}

// Moved reports whether the address differs from the accepted one: all tools of
// the source have then drifted.
func (s Source) Moved() bool { return !bytes.Equal(s.address, s.acceptedAddress) }

// bind sets the binding of the tool: the digest of its definition and the
// address of its source.
func (t *Tool) bind(src Source) {
	listed := t.Digest
	if len(listed) == 0 || listed[0] != schemeSets {
		// A binding is independent of the scheme.
		if present, err := fullDigest(t.Key.Action, t.Definition); err == nil {
			listed = present
		}
	}
	t.Binding = sum(schemeBinding, "binding", listed, src.address)
}

// Is reports whether a binding is that of the tool's current definition and of
// its source's current address.
func (t *Tool) Is(binding []byte) bool { return len(binding) > 0 && bytes.Equal(t.Binding, binding) }
