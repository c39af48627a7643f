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
	// checkpointVersion names the form of what hashes are taken of, and checkpointEvents is
	// how many events one checkpoint covers at most.
	checkpointVersion = 1
	checkpointEvents  = 5000
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
	position          Position
	at                time.Time
	kind, actor, text string
}

// leaf is what a checkpoint keeps of an event.
type leaf struct {
	position Position
	hash     Hash
}

// leafOf takes the hash of a tenant's event. It covers the items as
// PostgreSQL writes them.
func leafOf(tenant envelope.TenantID, r row) leaf {
	e := newEncoding("countersign event 1")
	e.tenant(tenant)
	e.position(r.position)
	e.time(r.at)
	e.text(r.kind)
	e.text(r.actor)
	e.text(r.text)
	return leaf{r.position, e.sum()}
}

// appendLeaf writes a leaf as a checkpoint keeps it.
func appendLeaf(b []byte, l leaf) []byte {
	b = binary.BigEndian.AppendUint64(b, l.position.Tx)
	b = binary.BigEndian.AppendUint64(b, uint64(l.position.Event))
	return append(b, l.hash[:]...)
}

// leavesOf reads what appendLeaf wrote. It is false for what no checkpoint holds:
// nothing, part of a leaf, or leaves that are not in the order of places.
func leavesOf(b []byte) ([]leaf, bool) {
	if len(b) == 0 || len(b)%leafSize != 0 {
		return nil, false
	}
	leaves := make([]leaf, 0, len(b)/leafSize)
	for one := range slices.Chunk(b, leafSize) {
		leaves = append(leaves, leaf{
			Position{binary.BigEndian.Uint64(one), int64(binary.BigEndian.Uint64(one[8:]))}, Hash(one[16:]),
		})
	}
	inOrder := slices.IsSortedFunc(leaves, func(a, b leaf) int { return a.position.Compare(b.position) })
	return leaves, inOrder
}

// checkpoint is one link of a tenant's chain. prev and stored are what stands in
// the row, which may be anything.
type checkpoint struct {
	no             int64
	version        int32
	from, until    Position
	oldest, newest time.Time
	events         int32
	leaves         []byte
	prev           []byte
	at             time.Time
	stored         []byte
	pruned         bool
}

// hash takes the hash of a checkpoint.
func (s *checkpoint) hash(tenant envelope.TenantID) Hash {
	e := newEncoding("countersign checkpoint")
	e.number(uint64(s.version))
	e.tenant(tenant)
	e.number(uint64(s.no))
	e.position(s.from)
	e.position(s.until)
	e.time(s.oldest)
	e.time(s.newest)
	e.number(uint64(s.events))
	e.time(s.at)
	e.bytes(s.prev)
	e.bytes(s.leaves)
	return e.sum()
}

// cover adds an event to a checkpoint.
func (s *checkpoint) cover(tenant envelope.TenantID, r row) {
	if s.events == 0 {
		s.from, s.oldest, s.newest = r.position, r.at, r.at
	}
	s.until = r.position
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
func beginning() Position { return Position{0, math.MinInt64} }

// before is the place just before one.
func before(p Position) Position {
	if p.Event == math.MinInt64 {
		return beginning()
	}
	return Position{p.Tx, p.Event - 1}
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

func (e *encoding) position(p Position) {
	e.number(p.Tx)
	e.number(uint64(p.Event))
}

// time writes the microseconds since 1970, which are all that the database
// keeps.
func (e *encoding) time(t time.Time) { e.number(uint64(t.UnixMicro())) }

func (e *encoding) sum() Hash { return sha256.Sum256(e.b) }
