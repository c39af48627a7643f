package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

const (
	// sealVersion names the form of what hashes are taken of, and sealMost is
	// how many events one seal covers at most.
	sealVersion = 1
	sealMost    = 5000
	// leafSize is the length of a leaf: a place and a hash.
	leafSize = 16 + sha256.Size
)

// Hash is a SHA-256 sum. It is written as 64 hexadecimal digits.
type Hash [sha256.Size]byte

// ParseHash reads what String wrote.
func ParseHash(text string) (Hash, error) {
	var h Hash
	return h, h.UnmarshalText([]byte(text))
}

// String writes a hash.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the same as String and never an error.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return fmt.Errorf("a hash has %d hexadecimal digits", 2*len(h))
	}
	if _, err := hex.Decode(h[:], text); err != nil {
		return fmt.Errorf("a hash has %d hexadecimal digits", 2*len(h))
	}
	return nil
}

// row is an event as the database has it.
type row struct {
	place             Place
	at                time.Time
	kind, actor, text string
}

// leaf is what a seal keeps of an event.
type leaf struct {
	place Place
	hash  Hash
}

// leafOf takes the hash of a tenant's event. It covers the items as
// PostgreSQL writes them.
func leafOf(tenant envelope.TenantID, r row) leaf {
	e := newEncoding("countersign event 1")
	e.tenant(tenant)
	e.place(r.place)
	e.time(r.at)
	e.text(r.kind)
	e.text(r.actor)
	e.text(r.text)
	return leaf{r.place, e.sum()}
}

// appendLeaf writes a leaf as a seal keeps it.
func appendLeaf(b []byte, l leaf) []byte {
	b = binary.BigEndian.AppendUint64(b, l.place.Tx)
	b = binary.BigEndian.AppendUint64(b, uint64(l.place.Event))
	return append(b, l.hash[:]...)
}

// leavesOf reads what appendLeaf wrote. It is false for what no seal holds:
// nothing, part of a leaf, or leaves that are not in the order of places.
func leavesOf(b []byte) ([]leaf, bool) {
	if len(b) == 0 || len(b)%leafSize != 0 {
		return nil, false
	}
	leaves := make([]leaf, 0, len(b)/leafSize)
	for one := range slices.Chunk(b, leafSize) {
		leaves = append(leaves, leaf{
			Place{binary.BigEndian.Uint64(one), int64(binary.BigEndian.Uint64(one[8:]))}, Hash(one[16:]),
		})
	}
	inOrder := slices.IsSortedFunc(leaves, func(a, b leaf) int { return a.place.Compare(b.place) })
	return leaves, inOrder
}

// seal is one link of a tenant's chain. prev and stored are what stands in
// the row, which may be anything.
type seal struct {
	no             int64
	version        int32
	from, until    Place
	oldest, newest time.Time
	events         int32
	leaves         []byte
	prev           []byte
	at             time.Time
	stored         []byte
	pruned         bool
}

// hash takes the hash of a seal.
func (s *seal) hash(tenant envelope.TenantID) Hash {
	e := newEncoding("countersign seal")
	e.number(uint64(s.version))
	e.tenant(tenant)
	e.number(uint64(s.no))
	e.place(s.from)
	e.place(s.until)
	e.time(s.oldest)
	e.time(s.newest)
	e.number(uint64(s.events))
	e.time(s.at)
	e.bytes(s.prev)
	e.bytes(s.leaves)
	return e.sum()
}

// cover adds an event to a seal.
func (s *seal) cover(tenant envelope.TenantID, r row) {
	if s.events == 0 {
		s.from, s.oldest, s.newest = r.place, r.at, r.at
	}
	s.until = r.place
	if r.at.Before(s.oldest) {
		s.oldest = r.at
	}
	if r.at.After(s.newest) {
		s.newest = r.at
	}
	s.events++
	s.leaves = appendLeaf(s.leaves, leafOf(tenant, r))
}

// beginning is before every event, even a forged one.
func beginning() Place { return Place{0, math.MinInt64} }

// before is the place just before one.
func before(p Place) Place {
	if p.Event == math.MinInt64 {
		return beginning()
	}
	return Place{p.Tx, p.Event - 1}
}

// encoding writes values so that no two lists of them look the same: each has
// its length, eight bytes, before it.
type encoding struct{ b []byte }

// newEncoding begins with the name of the form.
func newEncoding(form string) *encoding {
	e := &encoding{}
	e.text(form)
	return e
}

func (e *encoding) bytes(b []byte) {
	e.b = binary.BigEndian.AppendUint64(e.b, uint64(len(b)))
	e.b = append(e.b, b...)
}

func (e *encoding) text(s string) {
	e.b = binary.BigEndian.AppendUint64(e.b, uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoding) number(n uint64) { e.bytes(binary.BigEndian.AppendUint64(nil, n)) }

func (e *encoding) tenant(t envelope.TenantID) {
	id := uuid.UUID(t)
	e.bytes(id[:])
}

func (e *encoding) place(p Place) {
	e.number(p.Tx)
	e.number(uint64(p.Event))
}

// time writes the microseconds since 1970, which are all that the database
// keeps.
func (e *encoding) time(t time.Time) { e.number(uint64(t.UnixMicro())) }

func (e *encoding) sum() Hash { return sha256.Sum256(e.b) }
