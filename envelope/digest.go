package envelope

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/countersign-dev/countersign/internal/fault"
)

const digestPrefix = "sha256:"

// Digest is the SHA-256 of a canonical form. Two digests are equal if and only
// if the values have the same meaning.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a result of Canonical.
func DigestOf(canonical []byte) Digest { return sha256.Sum256(canonical) }

// ParseDigest parses the output of String. The error is fault.Invalid.
func ParseDigest(text string) (Digest, error) {
	var d Digest
	digits, ok := strings.CutPrefix(text, digestPrefix)
	if ok && len(digits) == hex.EncodedLen(len(d)) && strings.ToLower(digits) == digits {
		if _, err := hex.Decode(d[:], []byte(digits)); err == nil {
			return d, nil
		}
	}
	return Digest{}, fault.New(fault.Invalid, "a digest must be sha256: and 64 hexadecimal digits in lower case")
}

// String returns "sha256:" and 64 hexadecimal digits in lower case.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

// MarshalText returns the same as String and never an error.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDigest.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}
