package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/tenant/known"
)

const (
	// eventsAtOnce bounds the events of one step, and actionsAtOnce their actions,
	// except for those of one event. readAtOnce bounds the actions whose arguments are
	// in memory together.
	eventsAtOnce  = 500
	actionsAtOnce = 2000
	readAtOnce    = 100
	// pauses is the ratio of a tenant's pause to the step before it, so that a bulk load
	// does not notice the index, and pausesLate that of a step all of whose events are
	// older than late.
	pauses     = 15
	pausesLate = 4
	late       = time.Minute
)

// changing returns the kinds of events after which an action has other words.
func changing() []audit.Kind {
	return []audit.Kind{audit.Proposed, audit.Edited, audit.Voted, audit.Decided}
}

// Step indexes the next actions of one tenant, in the transaction that moves its cursor:
// a step that is cut short is done again. It reports false if no tenant has any.
func Step(ctx context.Context, db postgres.Begins) (bool, error) {
	return postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) (bool, error) {
		q := dbsqlc.New()
		at, err := q.ActionWordsClaim(ctx, tx)
		if errors.Is(err, pgx.ErrNoRows) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		events, err := q.ActionWordsEvents(ctx, tx, &dbsqlc.ActionWordsEventsParams{
			Kinds: postgres.Texts[string](changing()), TenantID: at.TenantID, Txid: at.CursorTxid, EventID: at.CursorEvent, Most: eventsAtOnce, Seconds: late.Seconds(),
		})
		if err != nil {
			return false, err
		}
		people := make(map[envelope.ActionID]*index)
		ids := make([]uuid.UUID, 0, len(events))
		to := &dbsqlc.ActionWordsAdvanceParams{TenantID: at.TenantID, Pauses: pausesLate}
		for _, e := range events {
			if len(ids) > 0 && len(ids)+len(e.ActionIds) > actionsAtOnce {
				break
			}
			to.Txid, to.EventID = e.Txid, e.EventID
			if e.Recent {
				to.Pauses = pauses
			}
			name, _, _ := envelope.Actor(e.Actor).Parts()
			for _, id := range e.ActionIds {
				names, known := people[envelope.ActionID(id)]
				if !known {
					names = newIndex()
					people[envelope.ActionID(id)] = names
					ids = append(ids, id)
				}
				names.text(name)
			}
		}
		for part := range slices.Chunk(ids, readAtOnce) {
			put := &dbsqlc.ActionWordsPutParams{TenantID: at.TenantID, TenantNo: at.TenantNo, Filled: at.Filled + to.Filled}
			if err := fill(ctx, tx, put, part, people); err != nil {
				return false, fmt.Errorf("index actions of tenant %s: %w", at.TenantID, err)
			}
			to.Filled += int64(len(part))
		}
		return len(events) > 0, q.ActionWordsAdvance(ctx, tx, to)
	})
}

// Find returns the next actions with all of some words, after one if that is not zero:
// those indexed last first, or first.
func Find(ctx context.Context, tx pgx.Tx, words Words, after envelope.ActionID, oldest bool, most int) ([]uuid.UUID, error) {
	return dbsqlc.New().ActionWordsFind(ctx, tx, &dbsqlc.ActionWordsFindParams{
		Words: words, After: postgres.OrNull(uuid.UUID(after)), Oldest: oldest, Most: int64(most),
	})
}

// fill stores the words of actions. Actions that are deleted now are left out.
func fill(ctx context.Context, tx pgx.Tx, put *dbsqlc.ActionWordsPutParams, ids []uuid.UUID, people map[envelope.ActionID]*index) error {
	q := dbsqlc.New()
	var approved []known.Call
	rows, err := q.ActionWordsSource(ctx, tx, &dbsqlc.ActionWordsSourceParams{TenantID: put.TenantID, ActionIds: ids})
	if err != nil || len(rows) == 0 {
		return err
	}
	for _, r := range rows {
		words := newIndex(r.SourceID, r.ToolName, r.SessionID, r.AutomationID, r.ExternalID)
		words.args(r.ExternalID, r.Args)
		put.ActionIds = append(put.ActionIds, uuid.UUID(r.ActionID))
		put.Words = append(put.Words, words.json())
		put.People = append(put.People, people[r.ActionID].json())
		if envelope.Approval(r.ApprovalState) == envelope.ApprovalGranted {
			approved = append(approved, known.Call{Action: r.ActionID, Args: redact.JSON(redact.Mail(r.ExternalID, r.Args))})
		}
	}
	if err := known.Put(ctx, tx, put.TenantID, approved); err != nil {
		return err
	}
	return q.ActionWordsPut(ctx, tx, put)
}
