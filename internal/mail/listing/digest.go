// Package listing finds changes in a folder whose server or file system can
// only list its present contents. A cursor holds a digest of fixed size over
// the messages and flags that were accounted for, and the reader keeps a hash
// of each name. Neither grows with the size of messages, and a listing of any
// length is read as a stream.
package listing

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

const buckets = 256

// Digest is a digest over a set of messages and their flags; messages can be
// added and removed in any order. It consists of buckets, so that a difference
// narrows down to a small part of the messages.
type Digest [buckets]uint64

// Add adds a message with its flags.
func (d *Digest) Add(key, flags string) { d[bucket(key)] += hash(key, flags) }

// Remove removes a message that was added with the same flags.
func (d *Digest) Remove(key, flags string) { d[bucket(key)] -= hash(key, flags) }

// MayDiffer reports whether the message with this key may be missing in another
// digest, or have other flags there.
func (d *Digest) MayDiffer(other *Digest, key string) bool {
	return d[bucket(key)] != other[bucket(key)]
}

// MarshalText writes a digest for a cursor.
func (d *Digest) MarshalText() ([]byte, error) {
	raw := make([]byte, 0, buckets*8)
	for _, sum := range d {
		raw = binary.BigEndian.AppendUint64(raw, sum)
	}
	return []byte(base64.StdEncoding.EncodeToString(raw)), nil
}

// UnmarshalText reads a digest from a cursor.
func (d *Digest) UnmarshalText(text []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(raw) != buckets*8 {
		return fmt.Errorf("digest of a cursor: %w", mailbox.ErrInvalid)
	}
	for i := range d {
		d[i] = binary.BigEndian.Uint64(raw[i*8:])
	}
	return nil
}

func bucket(key string) int { return int(keyHash(key) % buckets) }

func keyHash(key string) uint64 { return xxhash.Sum64String(key) }

func hash(key, flags string) uint64 {
	return keyHash(key) ^ bits.RotateLeft64(xxhash.Sum64String(flags), 31)
}
