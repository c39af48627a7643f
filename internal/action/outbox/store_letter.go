package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/redact"
)

// Letters returns a page of dead letters, the newest envelopes first.
func Letters(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f LetterFilter) ([]Letter, error) {
	rows, err := dbsqlc.New().DeadLetterList(ctx, tx, &dbsqlc.DeadLetterListParams{
		TenantID: uuid.UUID(tenant), Before: before(f.Before), Reason: some(string(f.Reason)), Source: some(f.Source), Tool: some(f.Tool),
		Code: some(f.Code), Since: maybe(f.Since), Until: maybe(f.Until), Most: int64(f.Most),
	})
	if err != nil {
		return nil, err
	}
	letters := make([]Letter, len(rows))
	for i, r := range rows {
		letters[i] = letterFromRow(r)
	}
	return letters, nil
}

// LetterOf returns one envelope's dead letter.
func LetterOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID) (Letter, error) {
	rows, err := dbsqlc.New().DeadLetterPerID(ctx, tx, &dbsqlc.DeadLetterPerIDParams{TenantID: uuid.UUID(tenant), ActionIds: uuids([]envelope.ActionID{action})})
	if err != nil {
		return Letter{}, err
	}
	if len(rows) == 0 {
		return Letter{}, fault.New(fault.NotFound, "no dead letter %s", action)
	}
	return letterFromRow(dbsqlc.DeadLetterListRow(rows[0])), nil
}

// Replay puts dead letters on the schedule again under their old idempotency
// keys, with as many attempts as at first. An unknown one may be doubled by
// it: without Doubling those are left out, unless they were named by id, which
// is fault.Conflict for the whole lot.
func Replay(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, lot Lot, pace Pace) (LotDone, error) {
	chosen, err := choose(ctx, tx, tenant, lot, pace.Doubling || lot.IDs != nil && !lot.DryRun)
	if err != nil {
		return LotDone{}, err
	}
	done := LotDone{Actions: chosen}
	if !lot.DryRun {
		taken, err := take(ctx, tx, tenant, chosen)
		if err != nil {
			return LotDone{}, err
		}
		if done.Actions, err = requeue(ctx, tx, tenant, lot, taken, pace.Doubling); err != nil {
			return LotDone{}, err
		}
		if done.Ahead, err = spread(ctx, tx, tenant, lot, pace, done.Actions); err != nil {
			return LotDone{}, err
		}
	}
	return done, count(ctx, tx, tenant, lot, pace.Doubling, &done)
}

// Discard gives dead letters up. The ledger keeps what happened.
func Discard(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, lot Lot) (LotDone, error) {
	chosen, err := choose(ctx, tx, tenant, lot, true)
	if err != nil {
		return LotDone{}, err
	}
	done := LotDone{Actions: chosen}
	if !lot.DryRun {
		taken, err := take(ctx, tx, tenant, chosen)
		if err != nil {
			return LotDone{}, err
		}
		event := audit.Event{Tenant: tenant, Kind: audit.Discarded, Actor: lot.Actor}
		done.Actions = make([]envelope.ActionID, len(taken))
		for i, r := range taken {
			done.Actions[i] = envelope.ActionID(r.ActionID)
			event.Items = append(event.Items, audit.Item{Action: done.Actions[i], Note: lot.Note})
		}
		if err := audit.Write(ctx, tx, event); err != nil {
			return LotDone{}, err
		}
	}
	return done, count(ctx, tx, tenant, lot, true, &done)
}

// choose finds the letters of a lot.
func choose(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, lot Lot, unsure bool) ([]envelope.ActionID, error) {
	f := lot.Filter
	rows, err := dbsqlc.New().DeadLetterChoose(ctx, tx, &dbsqlc.DeadLetterChooseParams{
		TenantID: uuid.UUID(tenant), Every: lot.IDs == nil, ActionIds: uuids(lot.IDs), Unsure: unsure,
		Reason: some(string(f.Reason)), Source: some(f.Source), Tool: some(f.Tool), Code: some(f.Code),
		Since: maybe(f.Since), Until: maybe(f.Until), Most: int64(lot.Most),
	})
	if err != nil {
		return nil, err
	}
	chosen := make([]envelope.ActionID, len(rows))
	for i, id := range rows {
		chosen[i] = envelope.ActionID(id)
	}
	return chosen, nil
}

// take removes letters and returns them, the oldest envelope first. What
// somebody else took meanwhile is not among them.
func take(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, chosen []envelope.ActionID) ([]dbsqlc.DeadLetterTakeRow, error) {
	if len(chosen) == 0 {
		return nil, nil
	}
	taken, err := dbsqlc.New().DeadLetterTake(ctx, tx, &dbsqlc.DeadLetterTakeParams{TenantID: uuid.UUID(tenant), ActionIds: uuids(chosen)})
	slices.SortFunc(taken, func(a, b dbsqlc.DeadLetterTakeRow) int { return slices.Compare(a.ActionID[:], b.ActionID[:]) })
	return taken, err
}

// requeue puts letters that were taken on the schedule.
func requeue(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, lot Lot, taken []dbsqlc.DeadLetterTakeRow, doubling bool) ([]envelope.ActionID, error) {
	if len(taken) == 0 {
		return nil, nil
	}
	ids, attempts := make([]uuid.UUID, len(taken)), make([]int32, len(taken))
	event := audit.Event{Tenant: tenant, Kind: audit.Replayed, Actor: lot.Actor}
	replayed := make([]envelope.ActionID, len(taken))
	for i, r := range taken {
		if Reason(r.Reason) == Unknown && !doubling {
			return nil, fault.New(fault.Conflict, "action %s may have had its effect; replaying it could double that and must be asked for", r.ActionID)
		}
		ids[i], attempts[i], replayed[i] = r.ActionID, r.Attempt, envelope.ActionID(r.ActionID)
		event.Items = append(event.Items, audit.Item{Action: replayed[i], Status: envelope.StatusPending, Attempt: int(r.Attempt), Note: lot.Note})
	}
	_, err := dbsqlc.New().OutboxEnqueue(ctx, tx, &dbsqlc.OutboxEnqueueParams{TenantID: uuid.UUID(tenant), ActionIds: ids, Attempts: attempts})
	err = violations.Fault(err)
	if err != nil {
		return nil, err
	}
	return replayed, audit.Write(ctx, tx, event)
}

// spread gives replayed envelopes their places in the schedule of their
// selection, and returns how far that reaches.
func spread(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, lot Lot, pace Pace, replayed []envelope.ActionID) (time.Duration, error) {
	gap := pace.gap()
	if gap == 0 || len(replayed) == 0 {
		return 0, nil
	}
	q, selection := dbsqlc.New(), "ids"
	if lot.IDs == nil {
		selection = lot.Filter.name()
	}
	stretch := time.Duration(len(replayed)) * gap
	got, err := q.ReplayScheduleAdvance(ctx, tx, &dbsqlc.ReplayScheduleAdvanceParams{
		TenantID: uuid.UUID(tenant), Selection: selection, StretchSeconds: stretch.Seconds(),
	})
	if err != nil {
		return 0, err
	}
	err = q.DeadLetterPace(ctx, tx, &dbsqlc.DeadLetterPaceParams{
		TenantID: uuid.UUID(tenant), ActionIds: uuids(replayed), Due: due(got.StartsAt, gap, len(replayed)),
	})
	if err != nil {
		return 0, err
	}
	return seconds(got.AheadSeconds), q.ReplayScheduleForget(ctx, tx, uuid.UUID(tenant))
}

// count adds to what was done how many letters that fit are there now.
func count(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, lot Lot, doubling bool, done *LotDone) error {
	q, f := dbsqlc.New(), lot.Filter
	var err error
	if done.AsOf, err = q.DeadLetterClock(ctx, tx); err != nil {
		return err
	}
	rows, err := q.DeadLetterTally(ctx, tx, &dbsqlc.DeadLetterTallyParams{
		TenantID: uuid.UUID(tenant), Every: lot.IDs == nil, ActionIds: uuids(lot.IDs),
		Reason: some(string(f.Reason)), Source: some(f.Source), Tool: some(f.Tool), Code: some(f.Code), Since: maybe(f.Since), Until: maybe(f.Until),
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		t := Tally{Source: r.SourceID, Tool: r.ToolName, Reason: Reason(r.Reason), Letters: int(r.Letters)}
		if t.Reason == Unknown && !doubling {
			done.LeftOut += t.Letters
		} else {
			done.Left += t.Letters
		}
		done.Tallies = append(done.Tallies, t)
	}
	return nil
}

// Resolve takes an envelope out of the dead letters of which somebody found
// out what happened, and says so in the ledger. An envelope whose call did not
// happen goes back under its old idempotency key, with as many attempts as at
// first. fault.Conflict says that its outcome is not, or no longer, unknown.
func Resolve(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, r Resolution) error {
	status, err := envelope.Next(envelope.StatusUnknown, r.event())
	if err != nil {
		return err
	}
	letter, err := holdUnknown(ctx, tx, tenant, action, r.Look)
	if err != nil {
		return err
	}
	taken, err := take(ctx, tx, tenant, []envelope.ActionID{action})
	if err != nil {
		return err
	}
	if status == envelope.StatusPending {
		_, err = dbsqlc.New().OutboxEnqueue(ctx, tx, &dbsqlc.OutboxEnqueueParams{
			TenantID: uuid.UUID(tenant), ActionIds: []uuid.UUID{taken[0].ActionID}, Attempts: []int32{letter.Attempt},
		})
		err = violations.Fault(err)
		if err != nil {
			return err
		}
	}
	err = dbsqlc.New().ToolExecutionNote(ctx, tx, &dbsqlc.ToolExecutionNoteParams{
		TenantID: uuid.UUID(tenant), ActionID: uuid.UUID(action), Attempt: letter.Attempt, Status: string(status),
		Code: CodeResolved, Message: redact.Text(r.Note), Worker: r.Actor,
	})
	if err != nil {
		return err
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Resolved, Actor: r.Actor, Items: []audit.Item{
		{Action: action, Status: status, Attempt: int(letter.Attempt), Code: CodeResolved, Note: r.Note},
	}})
}

// holdUnknown locks an unknown letter, and says why it cannot be resolved if it is
// none.
func holdUnknown(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, look int) (dbsqlc.DeadLetterHoldRow, error) {
	letter, err := dbsqlc.New().DeadLetterHold(ctx, tx, &dbsqlc.DeadLetterHoldParams{TenantID: uuid.UUID(tenant), ActionID: uuid.UUID(action)})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return letter, missing(ctx, tx, tenant, action)
	case err != nil:
		return letter, err
	case Reason(letter.Reason) != Unknown:
		return letter, fault.New(fault.Conflict, "action %s is no riddle: it is a dead letter because it was %s; replay or discard it", action, letter.Reason)
	case look != 0 && int(letter.VerifyTries) != look:
		return letter, fault.New(fault.Conflict, "action %s has been looked into again since", action)
	}
	return letter, nil
}

// missing says what an envelope is that is no dead letter.
func missing(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID) error {
	views, err := Get(ctx, tx, tenant, action)
	if err != nil {
		return err
	}
	if len(views) == 0 {
		return fault.New(fault.NotFound, "no action %s", action)
	}
	return fault.New(fault.Conflict, "action %s is no dead letter; it is %s", action, views[0].Envelope.Result.Status)
}

// Enqueue puts an envelope that was granted on the schedule.
func Enqueue(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actions ...envelope.ActionID) error {
	_, err := dbsqlc.New().OutboxEnqueue(ctx, tx, &dbsqlc.OutboxEnqueueParams{
		TenantID: uuid.UUID(tenant), ActionIds: uuids(actions), Attempts: make([]int32, len(actions)),
	})
	err = violations.Fault(err)
	return err
}

// takeBack removes an envelope from the schedule, or withdraws it from
// approval. One that was approved while it waited for the lock on it is on the
// schedule by then, so that is looked at again.
func takeBack(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, actor string) (bool, error) {
	q, by := dbsqlc.New(), "undone by "+actor
	unschedule := func() (int64, error) {
		return q.OutboxUndo(ctx, tx, &dbsqlc.OutboxUndoParams{
			TenantID: uuid.UUID(tenant), ActionID: uuid.UUID(action), Code: CodeUndone, Message: by,
		})
	}
	withdraw := func() (int64, error) {
		return q.ActionWithdraw(ctx, tx, &dbsqlc.ActionWithdrawParams{
			TenantID: uuid.UUID(tenant), ActionID: uuid.UUID(action), DecidedBy: actor, Message: by,
		})
	}
	for _, try := range []func() (int64, error){unschedule, withdraw, unschedule} {
		if n, err := try(); err != nil || n > 0 {
			return n > 0, err
		}
	}
	return false, nil
}

func letterFromRow(r dbsqlc.DeadLetterListRow) Letter {
	return Letter{
		Action: envelope.ActionID(r.ActionID), ExternalID: text(r.ExternalID), Source: r.SourceID, Tool: r.ToolName,
		Reason: Reason(r.Reason), Attempt: int(r.Attempt), Code: text(r.Code), Message: text(r.Message), At: r.CreatedAt,
		Verify: Verifying{Tries: int(r.VerifyTries), Said: text(r.VerifySaid), Next: r.VerifyAfter},
	}
}

func uuids(actions []envelope.ActionID) []uuid.UUID {
	ids := make([]uuid.UUID, len(actions))
	for i, a := range actions {
		ids[i] = uuid.UUID(a)
	}
	return ids
}

// maybe turns the zero time into none.
func maybe(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
