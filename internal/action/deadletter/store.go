package deadletter

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// List returns a page of dead letters, the newest actions first.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) ([]Entry, error) {
	before := cmp.Or(f.Before, envelope.ActionID(uuid.Max))
	rows, err := dbsqlc.New().DeadLetterList(ctx, tx, &dbsqlc.DeadLetterListParams{
		TenantID: tenant, Before: before, Reason: postgres.OrNull(string(f.Reason)), Source: postgres.OrNull(f.Source), Tool: postgres.OrNull(f.Tool),
		Code: postgres.OrNull(f.Code), Since: postgres.OrNull(f.Since), Until: postgres.OrNull(f.Until), Most: int64(f.Limit),
	})
	return postgres.Map(rows, err, entryFromRow)
}

// The most dead letters that a Summary counts, and the most groups that it has.
const (
	maxCounted = 20_000
	maxGroups  = 500
)

// Summary counts the dead letters that a filter selects by tool, reason and code,
// the most first. Of very many it counts the newest.
func Summary(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) ([]wire.DeadLetterGroup, error) {
	rows, err := dbsqlc.New().DeadLetterSummary(ctx, tx, &dbsqlc.DeadLetterSummaryParams{
		TenantID: tenant, Reason: postgres.OrNull(string(f.Reason)), Source: postgres.OrNull(f.Source), Tool: postgres.OrNull(f.Tool),
		Code: postgres.OrNull(f.Code), Since: postgres.OrNull(f.Since), Until: postgres.OrNull(f.Until), Most: maxCounted, Groups: maxGroups,
	})
	return postgres.Map(rows, err, func(r dbsqlc.DeadLetterSummaryRow) wire.DeadLetterGroup {
		return wire.DeadLetterGroup{
			Source: r.SourceID, Tool: policy.Key{Source: r.SourceID, Action: r.ToolName}.String(), Reason: r.Reason, Code: r.Code,
			Count: int(r.Entries), Capped: r.Counted >= maxCounted, Oldest: r.Oldest.UTC(), Newest: r.Newest.UTC(),
		}
	})
}

// Get returns the dead letter of an action, or fault.NotFound.
func Get(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID) (Entry, error) {
	rows, err := dbsqlc.New().DeadLetterPerID(ctx, tx, &dbsqlc.DeadLetterPerIDParams{TenantID: tenant, ActionIds: []uuid.UUID{uuid.UUID(action)}})
	if err != nil {
		return Entry{}, err
	}
	if len(rows) == 0 {
		return Entry{}, fault.New(fault.NotFound, "no dead letter %s", action)
	}
	return entryFromRow(dbsqlc.DeadLetterListRow(rows[0])), nil
}

// Replay schedules dead letters again under their old idempotency keys, with
// all of its attempts again. Replaying an unknown outcome may repeat the
// effect: unless AllowDuplicates is set, unknown entries are left out, and an
// unknown entry that is named by id makes the whole request fail with
// fault.Conflict. The same holds for an ended try of an action tag, always: a later
// try may have had the effect, or may be about to.
func Replay(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, req BulkRequest, opts ReplayOptions) (BulkResult, error) {
	ended, err := endedTries(ctx, tx, tenant, req)
	if err != nil {
		return BulkResult{}, err
	}
	selected, err := choose(ctx, tx, tenant, req, opts.AllowDuplicates || req.IDs != nil && !req.DryRun, ended)
	if err != nil {
		return BulkResult{}, err
	}
	result := BulkResult{DryRun: req.DryRun, ActionIDs: selected}
	if !req.DryRun {
		taken, err := take(ctx, tx, tenant, selected)
		if err != nil {
			return BulkResult{}, err
		}
		if result.ActionIDs, err = requeue(ctx, tx, tenant, req, taken, opts.AllowDuplicates); err != nil {
			return BulkResult{}, err
		}
		ahead, err := spread(ctx, tx, tenant, req, opts.interval(), result.ActionIDs)
		if err != nil {
			return BulkResult{}, err
		}
		result.AheadMS = ahead.Round(time.Millisecond).Milliseconds()
	}
	return result, count(ctx, tx, tenant, req, opts.AllowDuplicates, ended, &result)
}

// Discard deletes dead letters. The attempts stay.
func Discard(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, req BulkRequest) (BulkResult, error) {
	selected, err := choose(ctx, tx, tenant, req, true, nil)
	if err != nil {
		return BulkResult{}, err
	}
	result := BulkResult{DryRun: req.DryRun, ActionIDs: selected}
	if !req.DryRun {
		taken, err := take(ctx, tx, tenant, selected)
		if err != nil {
			return BulkResult{}, err
		}
		event := audit.Event{Tenant: tenant, Kind: audit.Discarded, Actor: req.Actor}
		result.ActionIDs = make([]envelope.ActionID, len(taken))
		for i, r := range taken {
			result.ActionIDs[i] = r.ActionID
			event.Items = append(event.Items, audit.Item{Action: r.ActionID, Note: req.Note})
		}
		if err := audit.Write(ctx, tx, event); err != nil {
			return BulkResult{}, err
		}
	}
	return result, count(ctx, tx, tenant, req, true, nil, &result)
}

// choose returns the actions of a bulk request, the oldest first, without
// ended tries.
func choose(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, req BulkRequest, unknown bool, ended []envelope.ActionID) ([]envelope.ActionID, error) {
	f := req.Filter
	return dbsqlc.New().DeadLetterSelect(ctx, tx, &dbsqlc.DeadLetterSelectParams{
		TenantID: tenant, Every: req.IDs == nil, ActionIds: postgres.UUIDs(req.IDs), IncludeUnknown: unknown, EndedTries: postgres.UUIDs(ended),
		Reason: postgres.OrNull(string(f.Reason)), Source: postgres.OrNull(f.Source), Tool: postgres.OrNull(f.Tool), Code: postgres.OrNull(f.Code),
		Since: postgres.OrNull(f.Since), Until: postgres.OrNull(f.Until), Most: int64(req.Limit),
	})
}

// endedTries returns the dead letters of a request that are ended tries of action
// tags. One that is named by id is a fault.Conflict, except in a dry run.
func endedTries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, req BulkRequest) ([]envelope.ActionID, error) {
	rows, err := dbsqlc.New().DeadLetterEndedTries(ctx, tx, &dbsqlc.DeadLetterEndedTriesParams{TenantID: tenant, Every: req.IDs == nil, ActionIds: postgres.UUIDs(req.IDs)})
	ended := make([]envelope.ActionID, len(rows))
	for i, r := range rows {
		ended[i] = r.ActionID
		switch {
		case req.IDs == nil || req.DryRun:
		case r.OpenTry != "":
			return nil, fault.New(fault.Conflict, "action %s is an ended try of the action tag %s, whose try %s is open", r.ActionID, r.Tag, r.OpenTry)
		default:
			return nil, fault.New(fault.Conflict, "action %s is an ended try of an action tag; set the tag again for another try", r.ActionID)
		}
	}
	return ended, err
}

// take deletes entries and returns them, oldest action first. Entries that
// another transaction has deleted are left out.
func take(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, selected []envelope.ActionID) ([]dbsqlc.DeadLetterDeleteRow, error) {
	if len(selected) == 0 {
		return nil, nil
	}
	taken, err := dbsqlc.New().DeadLetterDelete(ctx, tx, &dbsqlc.DeadLetterDeleteParams{TenantID: tenant, ActionIds: postgres.UUIDs(selected)})
	slices.SortFunc(taken, func(a, b dbsqlc.DeadLetterDeleteRow) int { return slices.Compare(a.ActionID[:], b.ActionID[:]) })
	return taken, err
}

// requeue schedules the actions of deleted entries.
func requeue(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, req BulkRequest, taken []dbsqlc.DeadLetterDeleteRow, allowDuplicates bool) ([]envelope.ActionID, error) {
	if len(taken) == 0 {
		return nil, nil
	}
	attempts, unsure := make([]int32, len(taken)), make([]bool, len(taken))
	event := audit.Event{Tenant: tenant, Kind: audit.Replayed, Actor: req.Actor}
	replayed := make([]envelope.ActionID, len(taken))
	for i, r := range taken {
		if outbox.Reason(r.Reason) == outbox.Unknown && !allowDuplicates {
			return nil, fault.Coded(wire.CodeMayHaveHappened, fault.Conflict, "action %s may have had its effect; to replay it anyway, allow duplicates", r.ActionID)
		}
		attempts[i], replayed[i], unsure[i] = r.Attempt, r.ActionID, outbox.Reason(r.Reason) == outbox.Unknown
		event.Items = append(event.Items, audit.Item{Action: replayed[i], Status: envelope.StatusPending, Attempt: int(r.Attempt), Note: req.Note})
	}
	if err := outbox.Requeue(ctx, tx, tenant, replayed, attempts, unsure); err != nil {
		return nil, err
	}
	return replayed, audit.Write(ctx, tx, event)
}

// spread sets the due times of replayed actions by the schedule of their
// selection. It returns the time from now to the end of that schedule.
func spread(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, req BulkRequest, interval time.Duration, replayed []envelope.ActionID) (time.Duration, error) {
	if interval == 0 || len(replayed) == 0 {
		return 0, nil
	}
	q, selection := dbsqlc.New(), "ids"
	if req.IDs == nil {
		selection = req.Filter.selection()
	}
	stretch := time.Duration(len(replayed)) * interval
	schedule, err := q.ReplayScheduleAdvance(ctx, tx, &dbsqlc.ReplayScheduleAdvanceParams{
		TenantID: tenant, Selection: selection, StretchSeconds: stretch.Seconds(),
	})
	if err != nil {
		return 0, err
	}
	err = q.DeadLetterSpread(ctx, tx, &dbsqlc.DeadLetterSpreadParams{
		TenantID: tenant, ActionIds: postgres.UUIDs(replayed), Due: dueTimes(schedule.StartsAt, interval, len(replayed)),
	})
	if err != nil {
		return 0, err
	}
	return postgres.Seconds(schedule.AheadSeconds), q.ReplayScheduleForget(ctx, tx, tenant)
}

// count adds the number of matching entries that are left to a result, and of
// those that are left out.
func count(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, req BulkRequest, allowDuplicates bool, ended []envelope.ActionID, result *BulkResult) error {
	q, f := dbsqlc.New(), req.Filter
	at, err := q.DeadLetterClock(ctx, tx)
	if err != nil {
		return err
	}
	result.AsOf, result.ActionIDs, result.Counts = at.UTC(), append([]envelope.ActionID{}, result.ActionIDs...), []wire.DeadLetterCount{}
	rows, err := q.DeadLetterCount(ctx, tx, &dbsqlc.DeadLetterCountParams{
		TenantID: tenant, Every: req.IDs == nil, ActionIds: postgres.UUIDs(req.IDs), Reason: postgres.OrNull(string(f.Reason)),
		Source: postgres.OrNull(f.Source), Tool: postgres.OrNull(f.Tool), Code: postgres.OrNull(f.Code), Since: postgres.OrNull(f.Since), Until: postgres.OrNull(f.Until), EndedTries: postgres.UUIDs(ended),
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		c := wire.DeadLetterCount{Tool: r.SourceID + ":" + r.ToolName, Reason: r.Reason, Count: int(r.Entries)}
		if r.Reason == string(outbox.Unknown) && !allowDuplicates {
			result.LeftOut += c.Count
		} else {
			result.LeftOut += int(r.EndedTries)
			result.Left += c.Count - int(r.EndedTries)
		}
		result.Counts = append(result.Counts, c)
	}
	return nil
}

// Resolve deletes the entry of an action whose outcome was unknown and records
// the outcome as an attempt. An action whose call did not happen is scheduled
// again under its old idempotency key, with all of its attempts again.
// The error is fault.Conflict if the outcome is not, or no longer, unknown.
func Resolve(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, r Resolution) error {
	status, err := envelope.Next(envelope.StatusUnknown, r.event())
	if err != nil {
		return err
	}
	entry, err := lockUnknown(ctx, tx, tenant, action, r.ReconcileAttempt)
	if err != nil {
		return err
	}
	if _, err := take(ctx, tx, tenant, []envelope.ActionID{action}); err != nil {
		return err
	}
	if status == envelope.StatusPending {
		if err := outbox.Requeue(ctx, tx, tenant, []envelope.ActionID{action}, []int32{entry.Attempt}, []bool{false}); err != nil {
			return err
		}
	}
	err = dbsqlc.New().ToolExecutionNote(ctx, tx, &dbsqlc.ToolExecutionNoteParams{
		TenantID: tenant, ActionID: action, Attempt: entry.Attempt, Status: string(status),
		Code: CodeResolved, Message: redact.Text(r.Note), Worker: string(r.Actor),
	})
	if err != nil {
		return err
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Resolved, Actor: r.Actor, Items: []audit.Item{
		{Action: action, Status: status, Attempt: int(entry.Attempt), Code: CodeResolved, Note: r.Note},
	}})
}

// lockUnknown locks the entry of an action with an unknown outcome. If two
// resolutions race, the second waits and then finds no entry.
func lockUnknown(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, attempt int) (dbsqlc.DeadLetterLockRow, error) {
	entry, err := dbsqlc.New().DeadLetterLock(ctx, tx, &dbsqlc.DeadLetterLockParams{TenantID: tenant, ActionID: action})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return entry, notDead(ctx, tx, tenant, action)
	case err != nil:
		return entry, err
	case outbox.Reason(entry.Reason) != outbox.Unknown:
		return entry, fault.New(fault.Conflict, "the outcome of action %s is known: it is a dead letter because it was %s; replay or discard it", action, entry.Reason)
	case attempt != 0 && int(entry.ReconcileAttempts) != attempt:
		return entry, fault.New(fault.Conflict, "the findings about action %s changed meanwhile; read it again", action)
	}
	return entry, nil
}

// notDead returns the error for an action that is not a dead letter.
func notDead(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID) error {
	views, err := outbox.Get(ctx, tx, tenant, action)
	if err != nil {
		return err
	}
	if len(views) == 0 {
		return fault.New(fault.NotFound, "no action %s", action)
	}
	return fault.New(fault.Conflict, "action %s is not a dead letter; it is %s", action, views[0].Envelope.Result.Status)
}

func entryFromRow(r dbsqlc.DeadLetterListRow) Entry {
	return Entry{
		Action: r.ActionID, ExternalID: postgres.OrZero(r.ExternalID), Source: r.SourceID, Tool: r.ToolName,
		Reason: outbox.Reason(r.Reason), Attempt: int(r.Attempt), Code: postgres.OrZero(r.Code), Message: postgres.OrZero(r.Message), CreatedAt: r.CreatedAt,
		Reconciliation: Reconciliation{Attempts: int(r.ReconcileAttempts), LastResult: postgres.OrZero(r.LastResult), Next: r.ReconcileAt},
	}
}
