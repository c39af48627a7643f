package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// checkpointVersion is the version of the hashed encoding, and
	// checkpointEvents the maximum number of events per checkpoint.
	checkpointVersion = 1
	checkpointEvents  = 5000
	// leafSize is the length of a leaf: a position and a hash.
	leafSize = 16 + sha256.Size
)

// Hash is a SHA-256 sum, written as 64 hexadecimal digits.
type Hash [sha256.Size]byte

// ParseHash parses the output of String.
func ParseHash(text string) (Hash, error) {
	var h Hash
	return h, h.UnmarshalText([]byte(text))
}

// String returns the hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the same as String and never an error.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText parses the output of MarshalText.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) == 2*len(h) {
		if _, err := hex.Decode(h[:], text); err == nil {
			return nil
		}
	}
	return fmt.Errorf("a hash has %d hexadecimal digits", 2*len(h))
}

// row is an event as stored.
type row struct {
	position          Position
	at                time.Time
	kind, actor, text string
	digests           []byte
}

// leaf is a checkpoint's entry for an event.
type leaf struct {
	position Position
	hash     Hash
}

// leafOf returns the leaf of a tenant's event. Its hash covers the items as
// PostgreSQL prints them, and the digests.
func leafOf(tenant envelope.TenantID, r row) leaf {
	e := make(encoding, 0, usualEncoding).text("countersign event 1")
	e = e.tenant(tenant)
	e = e.position(r.position)
	e = e.time(r.at)
	e = e.text(r.kind)
	e = e.text(r.actor)
	e = e.text(r.text)
	e = e.bytes(r.digests)
	return leaf{r.position, e.sum()}
}

// appendLeaf encodes a leaf as a checkpoint stores it.
func appendLeaf(b []byte, l leaf) []byte {
	b = binary.BigEndian.AppendUint64(b, l.position.Tx)
	b = binary.BigEndian.AppendUint64(b, uint64(l.position.Event))
	return append(b, l.hash[:]...)
}

// leavesOf decodes the leaves of appendLeaf. It returns false for bytes that no
// checkpoint has: none, part of a leaf, or leaves out of order.
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

// checkpoint is one link of a tenant's chain. prev and stored are the values in
// the row, which may have been tampered with.
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

// hash returns the hash of a checkpoint's contents.
func (s *checkpoint) hash(tenant envelope.TenantID) Hash {
	e := make(encoding, 0, usualEncoding).text("countersign checkpoint")
	e = e.number(uint64(s.version))
	e = e.tenant(tenant)
	e = e.number(uint64(s.no))
	e = e.position(s.from)
	e = e.position(s.until)
	e = e.time(s.oldest)
	e = e.time(s.newest)
	e = e.number(uint64(s.events))
	e = e.time(s.at)
	e = e.bytes(s.prev)
	e = e.bytes(s.leaves)
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

// beginning returns the position before every event, even a forged one.
func beginning() Position { return Position{0, math.MinInt64} }

// before returns the position just before another.
func before(p Position) Position {
	if p.Event == math.MinInt64 {
		return beginning()
	}
	return Position{p.Tx, p.Event - 1}
}

// encoding encodes lists of values unambiguously: each value follows its length,
// in eight bytes.
type encoding []byte

// usualEncoding is the size, in bytes, up to which encodings are made on the
// stack. Every action of a batch has two.
const usualEncoding = 640

func (e encoding) bytes(b []byte) encoding {
	return append(binary.BigEndian.AppendUint64(e, uint64(len(b))), b...)
}

func (e encoding) text(s string) encoding {
	return append(binary.BigEndian.AppendUint64(e, uint64(len(s))), s...)
}

func (e encoding) number(n uint64) encoding {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(e, 8), n)
}

func (e encoding) tenant(t envelope.TenantID) encoding {
	id := uuid.UUID(t)
	return e.bytes(id[:])
}

func (e encoding) position(p Position) encoding {
	return e.number(p.Tx).number(uint64(p.Event))
}

// time encodes the microseconds since 1970, the precision of the database.
func (e encoding) time(t time.Time) encoding { return e.number(uint64(t.UnixMicro())) }

func (e encoding) sum() Hash { return sha256.Sum256(e) }

// CheckpointAll adds the due checkpoints of all tenants, one per transaction,
// while more returns true. One tenant's error does not stop the others. It
// reports whether all tenants were reached.
func CheckpointAll(ctx context.Context, db postgres.Begins, more func() bool) (bool, error) {
	var failed error
	for after := (envelope.TenantID{}); more(); {
		const tenantsAtOnce = 100
		due, err := postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) ([]envelope.TenantID, error) {
			return Due(ctx, tx, after, tenantsAtOnce)
		})
		if err != nil {
			return false, errors.Join(failed, err)
		}
		for _, tenant := range due {
			if err := checkpointTenant(ctx, db, tenant, more); err != nil {
				failed = errors.Join(failed, fmt.Errorf("checkpoint events of tenant %s: %w", tenant, err))
			}
			after = tenant
		}
		if len(due) < tenantsAtOnce {
			return more(), failed
		}
	}
	return false, failed
}

func checkpointTenant(ctx context.Context, db postgres.Begins, tenant envelope.TenantID, more func() bool) error {
	for n := checkpointEvents; n == checkpointEvents && more(); {
		err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) (err error) {
			n, err = Checkpoint(ctx, tx, tenant, checkpointEvents)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
