package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
)

// The first byte of a digest is its scheme, so that a new scheme is not mistaken
// for drift: a digest is compared with the digest of the definition by the same
// scheme.
const (
	// schemeParts hashed each part of a definition as written.
	schemeParts = 1
	// schemeSets is schemeParts with the sets of JSON Schema in a fixed order,
	// and with texts that begin with a bracket as texts.
	schemeSets = 2
	// schemeInterface is the first scheme of interface digests, schemeAddress
	// that of address digests.
	schemeInterface = 1
	schemeAddress   = 1
	// schemeBinding is the scheme of bindings. No digest of a definition has it.
	schemeBinding = 3
)

// Digest covers the whole definition of a tool by its source. The order of keys,
// of names in required and of values in enum is ignored. The error is that a
// part of the definition has no canonical form.
func Digest(t source.Tool) ([]byte, error) {
	return fullDigest(t.Name, definitionOf(t))
}

func fullDigest(name string, d Definition) ([]byte, error) {
	input, output, hints, err := d.canonical(withTexts)
	if err != nil {
		return nil, err
	}
	return sum(schemeSets, "full", []byte(name), []byte(d.Title), []byte(d.Description), input, output, hints), nil
}

// InterfaceDigest covers the parts of a definition that a call depends on: the
// schemas without descriptive texts, and the hints, from which the risk is
// derived. Titles, descriptions, defaults and examples are ignored, but not
// properties with such names.
func InterfaceDigest(t source.Tool) ([]byte, error) {
	return interfaceDigest(t.Name, definitionOf(t))
}

func interfaceDigest(name string, d Definition) ([]byte, error) {
	input, output, hints, err := d.canonical(withoutTexts)
	if err != nil {
		return nil, err
	}
	return sum(schemeInterface, "interface", []byte(name), input, output, hints), nil
}

// canonical returns the canonical forms of the schemas and the hints.
func (d Definition) canonical(t texts) (input, output, hints []byte, err error) {
	if input, err = shape(d.InputSchema, t); err != nil {
		return nil, nil, nil, err
	}
	if output, err = shape(d.OutputSchema, t); err != nil {
		return nil, nil, nil, err
	}
	raw, err := json.Marshal(d.Hints)
	if err != nil {
		return nil, nil, nil, err
	}
	hints, err = envelope.Canonical(raw)
	return input, output, hints, err
}

// sum hashes the hashes of the parts, so that nothing can move from one part to
// the next, prefixed with the kind of digest.
func sum(scheme byte, of string, parts ...[]byte) []byte {
	return sumParts(scheme, append([][]byte{[]byte("countersign tool " + of)}, parts...))
}

func sumParts(scheme byte, parts [][]byte) []byte {
	h := sha256.New()
	for _, part := range parts {
		one := sha256.Sum256(part)
		h.Write(one[:])
	}
	return h.Sum([]byte{scheme})
}

// partsDigest returns the digest of scheme schemeParts; nil for a definition
// that the scheme could not read.
func partsDigest(name string, d Definition) []byte {
	hints, err := json.Marshal(d.Hints)
	if err != nil {
		return nil
	}
	parts := [][]byte{[]byte(name), []byte(d.Title), []byte(d.Description), d.InputSchema, d.OutputSchema, hints}
	for i, part := range parts {
		if len(part) > 0 && (part[0] == '{' || part[0] == '[') {
			if parts[i], err = envelope.Canonical(part); err != nil {
				return nil
			}
		}
	}
	return sumParts(schemeParts, parts)
}

// Lists reports whether a digest, of any known scheme, is that of the tool's
// latest definition. A digest of an unknown scheme matches nothing.
func (t *Tool) Lists(digest []byte) bool {
	if len(digest) == 0 {
		return false
	}
	if bytes.Equal(t.Digest, digest) {
		return true
	}
	if len(t.Digest) > 0 && t.Digest[0] == digest[0] {
		return false
	}
	var own []byte
	switch digest[0] {
	case schemeParts:
		own = partsDigest(t.Key.Action, t.Definition)
	case schemeSets:
		// A definition without a digest equals no other one.
		own, _ = fullDigest(t.Key.Action, t.Definition)
	}
	return len(own) > 0 && bytes.Equal(own, digest)
}
