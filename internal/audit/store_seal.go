package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// readRows is how many events are held in memory at a time: one may tell of a
// thousand envelopes.
const readRows = 200

// Due returns the tenants after one that have events to be sealed, at most so
// many, in order. It needs the scope of the worker.
func Due(ctx context.Context, tx pgx.Tx, after envelope.TenantID, most int) ([]envelope.TenantID, error) {
	ids, err := dbsqlc.New().SealDue(ctx, tx, &dbsqlc.SealDueParams{After: uuid.UUID(after), Most: int64(most)})
	return tenantIDs(ids), err
}

func tenantIDs(ids []uuid.UUID) []envelope.TenantID {
	tenants := make([]envelope.TenantID, len(ids))
	for i, id := range ids {
		tenants[i] = envelope.TenantID(id)
	}
	return tenants
}

// Seal adds one seal to a tenant's chain, over the next events that no open
// transaction can add any before, at most so many. It returns how many it
// covers: none when there are none, or somebody else is sealing at this
// moment. It needs the scope of the worker.
func Seal(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, most int) (int, error) {
	q := dbsqlc.New()
	mine, err := q.SealLock(ctx, tx, uuid.UUID(tenant))
	if err != nil || !mine {
		return 0, err
	}
	// A statement of its own: what it reads, it reads under the lock.
	head, err := q.SealHead(ctx, tx, uuid.UUID(tenant))
	if err != nil {
		return 0, err
	}
	s := seal{no: head.SealNo + 1, version: sealVersion, prev: head.Hash, at: head.Now}
	if head.SealNo == 0 {
		s.prev = make([]byte, len(Hash{}))
	}
	after := Place{head.UntilTxid, head.UntilEvent}
	for int(s.events) < most {
		want := min(most-int(s.events), readRows)
		rows, err := q.EventSealable(ctx, tx, &dbsqlc.EventSealableParams{
			TenantID: uuid.UUID(tenant), AfterTxid: after.Tx, AfterEvent: after.Event, Most: int64(want),
		})
		if err != nil {
			return 0, err
		}
		for _, r := range rows {
			s.cover(tenant, row{Place{r.Txid, r.EventID}, r.At, r.Kind, r.Actor, r.Items})
		}
		if len(rows) < want {
			break
		}
		after = s.until
	}
	if s.events == 0 {
		return 0, nil
	}
	hash := s.hash(tenant)
	return int(s.events), q.SealInsert(ctx, tx, &dbsqlc.SealInsertParams{
		TenantID: uuid.UUID(tenant), SealNo: s.no, Version: s.version,
		FromTxid: s.from.Tx, FromEvent: s.from.Event, UntilTxid: s.until.Tx, UntilEvent: s.until.Event,
		OldestAt: s.oldest, NewestAt: s.newest, Events: s.events, Leaves: s.leaves,
		PrevHash: s.prev, Hash: hash[:], SealedAt: s.at,
	})
}

// Head is the last seal of a chain. Whoever notes it elsewhere can see later
// whether the chain still holds it.
type Head struct {
	Seal int64 `json:"seal_no"`
	Hash Hash  `json:"hash"`
}

// CurrentHead returns the head of a tenant's chain; nil if nothing was sealed
// yet.
func CurrentHead(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (*Head, error) {
	head, err := dbsqlc.New().SealHead(ctx, tx, uuid.UUID(tenant))
	if err != nil || head.SealNo == 0 {
		return nil, err
	}
	h := &Head{Seal: head.SealNo}
	copy(h.Hash[:], head.Hash)
	return h, nil
}

// nextSeal reads the seal after a number; false when there is none.
func nextSeal(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after int64) (seal, bool, error) {
	r, err := dbsqlc.New().SealNext(ctx, tx, &dbsqlc.SealNextParams{TenantID: uuid.UUID(tenant), After: after})
	if errors.Is(err, pgx.ErrNoRows) {
		return seal{}, false, nil
	}
	return seal{
		no: r.SealNo, version: r.Version, from: Place{r.FromTxid, r.FromEvent}, until: Place{r.UntilTxid, r.UntilEvent},
		oldest: r.OldestAt, newest: r.NewestAt, events: r.Events, leaves: r.Leaves,
		prev: r.PrevHash, at: r.SealedAt, stored: r.Hash, pruned: r.Pruned,
	}, err == nil, err
}

// link is what a chain goes on from.
type link struct {
	no    int64
	until Place
	// hashes are those by which the next seal may name this one: that in the
	// row and that of its contents, which differ only if the row was changed.
	stored, computed []byte
}

// genesis is before the first seal.
func genesis() link {
	zero := make([]byte, len(Hash{}))
	return link{until: beginning(), stored: zero, computed: zero}
}

// eachRow calls do for every event behind one place and up to another, in
// order.
func eachRow(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after, until Place, do func(row)) error {
	for {
		rows, err := dbsqlc.New().EventRange(ctx, tx, &dbsqlc.EventRangeParams{
			TenantID: uuid.UUID(tenant), AfterTxid: after.Tx, AfterEvent: after.Event, UntilTxid: until.Tx, UntilEvent: until.Event, Most: readRows,
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			after = Place{r.Txid, r.EventID}
			do(row{after, r.At, r.Kind, r.Actor, r.Items})
		}
		if len(rows) < readRows {
			return nil
		}
	}
}

// prunedThrough returns the last seal of which an event says that retention
// took its events, and those before. A mark alone proves nothing.
func prunedThrough(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (int64, error) {
	q := dbsqlc.New()
	for below := int64(math.MaxInt64); ; {
		mark, err := q.SealPruned(ctx, tx, &dbsqlc.SealPrunedParams{TenantID: uuid.UUID(tenant), Below: below})
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		told, err := q.EventGet(ctx, tx, &dbsqlc.EventGetParams{TenantID: uuid.UUID(tenant), Txid: mark.Txid, EventID: mark.EventID})
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return 0, err
		}
		if err == nil && tellsOf(Kind(told.Kind), told.Items, mark.SealNo) {
			return mark.SealNo, nil
		}
		below = mark.SealNo
	}
}

// tellsOf says that an event tells of the pruning of a seal.
func tellsOf(kind Kind, items []byte, no int64) bool {
	var list []struct {
		Detail struct {
			From  int64 `json:"from_seal"`
			Until int64 `json:"until_seal"`
		}
	}
	if kind != Pruned || json.Unmarshal(items, &list) != nil || len(list) != 1 {
		return false
	}
	return list[0].Detail.From <= no && no <= list[0].Detail.Until
}

// unsealedMost bounds how many events are counted that no seal covers yet.
const unsealedMost = 100_000

// unsealed counts the events behind a place, up to unsealedMost, and says
// since when they wait.
func unsealed(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after Place) (int64, time.Time, error) {
	r, err := dbsqlc.New().EventUnsealed(ctx, tx, &dbsqlc.EventUnsealedParams{
		TenantID: uuid.UUID(tenant), AfterTxid: after.Tx, AfterEvent: after.Event, Most: unsealedMost,
	})
	return r.Events, r.Since.UTC(), err
}

// noted returns the number of the seal that has a hash; 0 when none has.
func noted(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, hash Hash) (int64, error) {
	no, err := dbsqlc.New().SealNoted(ctx, tx, &dbsqlc.SealNotedParams{TenantID: uuid.UUID(tenant), Hash: hash[:]})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return no, err
}

// TamperedError says that events were not deleted, because they are not what
// was sealed: they are evidence.
type TamperedError struct {
	Tenant envelope.TenantID
	// First is one of the findings.
	First Finding
}

// Error names the place.
func (e *TamperedError) Error() string {
	return fmt.Sprintf("the events of seal %d of tenant %s do not verify, and are kept: %s", e.First.Seal, e.Tenant, e.First.Kind)
}

// Prune deletes the events of a tenant's oldest seals, as many as are past its
// retention and hold not many more than so many events. It returns how many
// it deleted; none when there is nothing to do. What does not verify is a
// *TamperedError. It needs the scope of the worker.
func Prune(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, most int) (int64, error) {
	q := dbsqlc.New()
	rows, err := q.SealPrunable(ctx, tx, &dbsqlc.SealPrunableParams{TenantID: uuid.UUID(tenant), Most: int64(most)})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	first, last, events := rows[0].SealNo, rows[0].SealNo, int(rows[0].Events)
	for _, r := range rows[1:] {
		if r.SealNo != last+1 || events+int(r.Events) > most {
			break
		}
		last, events = r.SealNo, events+int(r.Events)
	}
	report, err := Verify(ctx, tx, tenant, Options{After: first - 1, Until: last})
	if err != nil {
		return 0, err
	}
	if len(report.Findings) > 0 {
		return 0, &TamperedError{tenant, report.Findings[0]}
	}
	return q.SealPrune(ctx, tx, &dbsqlc.SealPruneParams{TenantID: uuid.UUID(tenant), FirstNo: first, LastNo: last})
}
