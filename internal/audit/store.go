package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Write stores events in the transaction of the change that they record. If it
// fails, the change must not be committed.
func Write(ctx context.Context, tx pgx.Tx, events ...Event) error {
	return write(ctx, tx, events, func(tx pgx.Tx) pgx.Tx { return tx })
}

// WriteLast is Write at the end of a transaction, together with its commit. If
// there are no events, it does not commit.
func WriteLast(ctx context.Context, tx pgx.Tx, events ...Event) error {
	return write(ctx, tx, events, postgres.Final)
}

func write(ctx context.Context, tx pgx.Tx, events []Event, last func(pgx.Tx) pgx.Tx) error {
	if err := addDigests(ctx, tx, events); err != nil {
		return fmt.Errorf("digest the rows of events: %w", err)
	}
	p := &dbsqlc.EventInsertManyParams{}
	for _, e := range events {
		if len(e.Items) == 0 {
			continue
		}
		items, err := encodeItems(e.Items)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		p.TenantIds = append(p.TenantIds, uuid.UUID(e.Tenant))
		p.Kinds = append(p.Kinds, string(e.Kind))
		p.Actors = append(p.Actors, string(e.Actor))
		p.Items = append(p.Items, items)
		p.Digests = append(p.Digests, postgres.NotNull(encodeDigests(e.Items)))
	}
	if len(p.TenantIds) == 0 {
		return nil
	}
	if err := dbsqlc.New().EventInsertMany(ctx, last(tx), p); err != nil {
		return err
	}
	announce(tx, events)
	return nil
}

// announce announces events that were written.
func announce(tx pgx.Tx, events []Event) {
	var last envelope.TenantID
	for _, e := range events {
		if len(e.Items) == 0 || e.Kind == Proposed && e.Tenant == last {
			continue
		}
		last = e.Tenant
		n := postgres.Notice{Tenant: e.Tenant.String(), Changed: e.Kind != Proposed}
		if n.Changed {
			n.Ended = endedOf(e.Items)
		}
		postgres.Announce(tx, n)
	}
}

// endedOf returns the actions of an event if all of them have ended and they are few.
func endedOf(items []Item) []postgres.Tail {
	if len(items) > postgres.MaxEnded || slices.ContainsFunc(items, func(it Item) bool { return !envelope.Ended(it.Status) }) {
		return nil
	}
	tails := make([]postgres.Tail, len(items))
	for i, it := range items {
		tails[i] = postgres.TailOf(it.Action)
	}
	return tails
}

// Read returns up to most events after a position. It leaves out events that an
// open transaction may still precede, so that a later read never skips an event.
func Read(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after Position, most int) ([]Stored, error) {
	rows, err := dbsqlc.New().EventList(ctx, tx, &dbsqlc.EventListParams{
		TenantID: tenant, Txid: after.Tx, EventID: after.Event, Most: int64(most),
	})
	if err != nil {
		return nil, err
	}
	stored := make([]Stored, len(rows))
	for i, r := range rows {
		s := &stored[i]
		s.Position, s.At = Position{r.Txid, r.EventID}, r.At
		s.Tenant, s.Kind, s.Actor = tenant, Kind(r.Kind), envelope.Actor(r.Actor)
		if err := json.Unmarshal(r.Items, &s.Items); err != nil {
			return nil, fmt.Errorf("decode event %s: %w", s.Position, err)
		}
	}
	return stored, nil
}

// Latest returns the position after which only new events follow.
func Latest(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (Position, error) {
	txid, err := dbsqlc.New().EventLatest(ctx, tx, tenant)
	if errors.Is(err, pgx.ErrNoRows) {
		return Position{}, nil
	}
	return Position{Tx: txid, Event: math.MaxInt64}, err
}

// EnsurePartitions creates the partitions of tool_executions for this month and
// the next monthsAhead months. A month without a partition accepts no rows.
func EnsurePartitions(ctx context.Context, tx pgx.Tx, monthsAhead int) error {
	_, err := dbsqlc.New().PartitionEnsure(ctx, tx, int32(monthsAhead))
	return err
}

// ExportRows is the number of events per call of Export.
const ExportRows = readRows

// Export returns the next events of a time range after a position, in order:
// ExportRows of them, or fewer at the end. Like Read it leaves out events that
// others may still precede. An event of a long transaction may be exported only
// when a checkpoint covers it.
func Export(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, span Span, after Position) ([]Entry, error) {
	if span.Until.IsZero() {
		span.Until = endOfTime()
	}
	after, until, err := bounds(ctx, tx, tenant, span, after)
	if err != nil {
		return nil, err
	}
	rows, err := dbsqlc.New().EventExport(ctx, tx, &dbsqlc.EventExportParams{
		TenantID: tenant, AfterTxid: after.Tx, AfterEvent: after.Event, UntilTxid: until.Tx, UntilEvent: until.Event,
		FromAt: span.From, UntilAt: span.Until, Most: ExportRows,
	})
	return postgres.Map(rows, err, func(r dbsqlc.EventExportRow) Entry {
		position := Position{r.Txid, r.EventID}
		return Entry{
			Position: position, Checkpoint: r.CheckpointNo, At: r.At, Kind: Kind(r.Kind), Actor: envelope.Actor(r.Actor), Items: r.Items, Digests: r.Digests,
			Leaf: leafOf(tenant, row{position, r.At, r.Kind, r.Actor, r.Items, r.Digests}).hash,
		}
	})
}

// bounds narrows a range of positions to the checkpoints with events of a time
// range, since no index on time exists.
func bounds(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, span Span, after Position) (Position, Position, error) {
	q := dbsqlc.New()
	first, err := q.CheckpointAfter(ctx, tx, &dbsqlc.CheckpointAfterParams{TenantID: tenant, At: span.From})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return after, after, err
	}
	if begin := (Position{first.UntilTxid, first.UntilEvent}); err == nil && after.Compare(begin) < 0 {
		after = begin
	}
	last, err := q.CheckpointBefore(ctx, tx, &dbsqlc.CheckpointBeforeParams{TenantID: tenant, At: span.Until})
	if errors.Is(err, pgx.ErrNoRows) {
		return after, Position{math.MaxUint64, math.MaxInt64}, nil
	}
	return after, Position{last.UntilTxid, last.UntilEvent}, err
}

// endOfTime is later than every event.
func endOfTime() time.Time { return time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC) }

// readRows is the number of events in memory at a time. An event may have a
// thousand items.
const readRows = 200

// Due returns up to most tenants after another one that have uncovered events,
// in order. It needs the scope of the worker.
func Due(ctx context.Context, tx pgx.Tx, after envelope.TenantID, most int) ([]envelope.TenantID, error) {
	return dbsqlc.New().CheckpointDue(ctx, tx, &dbsqlc.CheckpointDueParams{After: uuid.UUID(after), Most: int64(most)})
}

// Checkpoint adds one checkpoint to a tenant's chain, over up to most events
// that no open transaction can precede. It returns the number of covered events:
// none if there are none, or if another worker is adding a checkpoint. It needs
// the scope of the worker.
func Checkpoint(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, most int) (int, error) {
	q := dbsqlc.New()
	mine, err := q.CheckpointLock(ctx, tx, uuid.UUID(tenant))
	if err != nil || !mine {
		return 0, err
	}
	// A separate statement, whose snapshot is taken under the lock.
	head, err := q.CheckpointHead(ctx, tx, tenant)
	if err != nil {
		return 0, err
	}
	s := checkpoint{no: head.CheckpointNo + 1, version: checkpointVersion, prev: head.Hash, at: head.Now}
	if head.CheckpointNo == 0 {
		s.prev = make([]byte, len(Hash{}))
	}
	after := Position{head.UntilTxid, head.UntilEvent}
	for int(s.events) < most {
		want := min(most-int(s.events), readRows)
		rows, err := q.EventCoverable(ctx, tx, &dbsqlc.EventCoverableParams{
			TenantID: tenant, AfterTxid: after.Tx, AfterEvent: after.Event, Most: int64(want),
		})
		if err != nil {
			return 0, err
		}
		for _, r := range rows {
			s.cover(tenant, row{Position{r.Txid, r.EventID}, r.At, r.Kind, r.Actor, r.Items, r.Digests})
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
	return int(s.events), q.CheckpointInsert(ctx, tx, &dbsqlc.CheckpointInsertParams{
		TenantID: tenant, CheckpointNo: s.no, Version: s.version,
		FromTxid: s.from.Tx, FromEvent: s.from.Event, UntilTxid: s.until.Tx, UntilEvent: s.until.Event,
		OldestAt: s.oldest, NewestAt: s.newest, Events: s.events, Leaves: s.leaves,
		PrevHash: s.prev, Hash: hash[:], CreatedAt: s.at,
	})
}

// Head is the last checkpoint of a chain. A copy that is kept elsewhere proves
// later that the chain still has it.
type Head struct {
	Checkpoint int64 `json:"checkpoint_no"`
	Hash       Hash  `json:"hash"`
}

// CurrentHead returns the head of a tenant's chain; nil if it has no checkpoint.
func CurrentHead(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (*Head, error) {
	head, err := dbsqlc.New().CheckpointHead(ctx, tx, tenant)
	if err != nil || head.CheckpointNo == 0 {
		return nil, err
	}
	h := &Head{Checkpoint: head.CheckpointNo}
	copy(h.Hash[:], head.Hash)
	return h, nil
}

// NoteHead records that a head was exported, and returns the time of the first
// time that it was. If the chain has no such checkpoint, the error is
// fault.NotFound. The record is not an event, since an event would change the
// head.
func NoteHead(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, head Head) (time.Time, error) {
	at, err := dbsqlc.New().CheckpointNote(ctx, tx, &dbsqlc.CheckpointNoteParams{
		TenantID: tenant, CheckpointNo: head.Checkpoint, Hash: head.Hash[:],
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return at, fault.New(fault.NotFound, "unknown checkpoint %d with this hash", head.Checkpoint)
	}
	return at.UTC(), err
}

// nextCheckpoint reads the checkpoint after a number. It returns false if none
// is found.
func nextCheckpoint(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after int64) (checkpoint, bool, error) {
	r, err := dbsqlc.New().CheckpointNext(ctx, tx, &dbsqlc.CheckpointNextParams{TenantID: tenant, After: after})
	if errors.Is(err, pgx.ErrNoRows) {
		return checkpoint{}, false, nil
	}
	return checkpoint{
		no: r.CheckpointNo, version: r.Version, from: Position{r.FromTxid, r.FromEvent}, until: Position{r.UntilTxid, r.UntilEvent},
		oldest: r.OldestAt, newest: r.NewestAt, events: r.Events, leaves: r.Leaves,
		prev: r.PrevHash, at: r.CreatedAt, stored: r.Hash, pruned: r.Pruned,
	}, err == nil, err
}

// link is the checkpoint from which a chain continues.
type link struct {
	no    int64
	until Position
	// stored and computed are the hashes by which the next checkpoint may name
	// this one: that in the row, and that of its contents. They differ only if
	// the row was changed.
	stored, computed []byte
}

// genesis returns the link before the first checkpoint.
func genesis() link {
	zero := make([]byte, len(Hash{}))
	return link{until: beginning(), stored: zero, computed: zero}
}

// eachRow calls do for every event after one position up to another, in order.
func eachRow(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after, until Position, do func(row)) error {
	for {
		rows, err := dbsqlc.New().EventRange(ctx, tx, &dbsqlc.EventRangeParams{
			TenantID: tenant, AfterTxid: after.Tx, AfterEvent: after.Event, UntilTxid: until.Tx, UntilEvent: until.Event, Most: readRows,
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			after = Position{r.Txid, r.EventID}
			do(row{after, r.At, r.Kind, r.Actor, r.Items, r.Digests})
		}
		if len(rows) < readRows {
			return nil
		}
	}
}

// prunedThrough returns the last checkpoint for which an event records that
// retention deleted its events and all earlier ones. Its pruned_at alone proves
// nothing.
func prunedThrough(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (int64, error) {
	q := dbsqlc.New()
	for below := int64(math.MaxInt64); ; {
		mark, err := q.CheckpointPruned(ctx, tx, &dbsqlc.CheckpointPrunedParams{TenantID: tenant, Below: below})
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		event, err := q.EventGet(ctx, tx, &dbsqlc.EventGetParams{TenantID: tenant, Txid: mark.Txid, EventID: mark.EventID})
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return 0, err
		}
		if err == nil && recordsPruning(Kind(event.Kind), event.Items, mark.CheckpointNo) {
			return mark.CheckpointNo, nil
		}
		below = mark.CheckpointNo
	}
}

// recordsPruning reports whether an event records the pruning of a checkpoint.
func recordsPruning(kind Kind, items []byte, no int64) bool {
	var list []struct {
		Detail struct {
			From  int64 `json:"from_checkpoint"`
			Until int64 `json:"until_checkpoint"`
		}
	}
	if kind != Pruned || json.Unmarshal(items, &list) != nil || len(list) != 1 {
		return false
	}
	return list[0].Detail.From <= no && no <= list[0].Detail.Until
}

// maxUncovered bounds the count of uncovered events.
const maxUncovered = 100_000

// uncovered counts the events after a position, up to maxUncovered, and returns
// the time of the oldest.
func uncovered(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after Position) (int64, time.Time, error) {
	r, err := dbsqlc.New().EventUncovered(ctx, tx, &dbsqlc.EventUncoveredParams{
		TenantID: tenant, AfterTxid: after.Tx, AfterEvent: after.Event, Most: maxUncovered,
	})
	return r.Events, r.Since.UTC(), err
}

// findHead returns the number of the checkpoint with a hash, or 0.
func findHead(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, hash Hash) (int64, error) {
	no, err := dbsqlc.New().CheckpointByHash(ctx, tx, &dbsqlc.CheckpointByHashParams{TenantID: tenant, Hash: hash[:]})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return no, err
}

// TamperedError means that events were kept as evidence, because they differ
// from their checkpoint.
type TamperedError struct {
	Tenant envelope.TenantID
	// First is one of the findings.
	First Finding
}

// Error names the checkpoint.
func (e *TamperedError) Error() string {
	return fmt.Sprintf("the events of checkpoint %d of tenant %s do not verify, and are kept: %s", e.First.Checkpoint, e.Tenant, e.First.Kind)
}

// Prune deletes about most events of a tenant's oldest checkpoints that are past
// its retention, and returns the number of deleted events. Events that fail
// verification are a *TamperedError. It needs the scope of the worker.
func Prune(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, most int) (int64, error) {
	q := dbsqlc.New()
	rows, err := q.CheckpointPrunable(ctx, tx, &dbsqlc.CheckpointPrunableParams{TenantID: tenant, Most: int64(most)})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	first, last, events := rows[0].CheckpointNo, rows[0].CheckpointNo, int(rows[0].Events)
	for _, r := range rows[1:] {
		if r.CheckpointNo != last+1 || events+int(r.Events) > most {
			break
		}
		last, events = r.CheckpointNo, events+int(r.Events)
	}
	report, err := Verify(ctx, tx, tenant, Options{After: first - 1, Until: last})
	if err != nil {
		return 0, err
	}
	if len(report.Findings) > 0 {
		return 0, &TamperedError{tenant, report.Findings[0]}
	}
	return q.CheckpointPrune(ctx, tx, &dbsqlc.CheckpointPruneParams{TenantID: uuid.UUID(tenant), FirstNo: first, LastNo: last})
}
