package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
)

// The first byte of a digest is the scheme that it was made by, so that a new
// scheme is not taken for drift: a digest is compared with what its own scheme
// makes of the definition.
const (
	// schemeParts hashed each part of a definition as it was written.
	schemeParts = 1
	// schemeSets is schemeParts with what JSON Schema means as a set in one
	// order, and with texts that begin with a bracket taken as texts.
	schemeSets = 2
	// schemeInterface is the first scheme of interface digests, schemeAddress that
	// of the digests of addresses.
	schemeInterface = 1
	schemeAddress   = 1
	// schemeBinding is the scheme of bindings. No digest of a definition has it.
	schemeBinding = 3
)

// Digest covers all of a tool's definition that its source gave: whatever an
// agent reads or a call depends on. The order of keys does not count, nor that
// of names in required and of values in enum. The error is that a part of the
// definition has no canonical form.
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

// InterfaceDigest covers what a call of a tool depends on: the schemas without
// the texts that only describe, and the hints, from which its risk follows.
// Titles, descriptions, defaults and examples do not count; a property that is
// named like one of them does.
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

// sum hashes the hashes of the parts, so that nothing can move from one part
// to the next, under the name of what they are a digest of.
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

// partsDigest is the digest of scheme schemeParts. It is none for a definition
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

// Lists reports whether a digest of a definition, of whichever scheme, is of the
// tool's definition as it was last listed. A digest of a scheme that this
// version does not know is of nothing.
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
		// What has no digest is like no definition that was ever seen.
		own, _ = fullDigest(t.Key.Action, t.Definition)
	}
	return len(own) > 0 && bytes.Equal(own, digest)
}
