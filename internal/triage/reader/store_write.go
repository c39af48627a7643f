package reader

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/lease"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// write stores the decisions and makes the proposals.
func (c *chunk) write(ctx context.Context, tx pgx.Tx) error {
	q, tenant, account := dbsqlc.New(), c.lease.Tenant, c.lease.Account.ID
	steps := []func() error{
		func() error {
			return inserted(c.messages, func(rows []byte) error {
				if err := q.TriageMessagesInsert(ctx, tx, &dbsqlc.TriageMessagesInsertParams{TenantID: tenant, AccountID: account, Rows: rows}); err != nil {
					return err
				}
				return q.TriageRefsInsert(ctx, tx, &dbsqlc.TriageRefsInsertParams{TenantID: tenant, AccountID: account, Rows: rows})
			})
		},
		func() error {
			return inserted(c.findings, func(rows []byte) error {
				return q.TriageFindingsInsert(ctx, tx, &dbsqlc.TriageFindingsInsertParams{TenantID: tenant, AccountID: account, Rows: rows})
			})
		},
		func() error { return c.joinThreads(ctx, tx) },
		func() error {
			return inserted(c.senders.Rows(), func(rows []byte) error {
				return q.TriageSendersAdd(ctx, tx, &dbsqlc.TriageSendersAddParams{TenantID: tenant, AccountID: account, Rows: rows})
			})
		},
		func() error {
			return inserted(c.locations, func(rows []byte) error {
				return q.TriageLocationsPut(ctx, tx, &dbsqlc.TriageLocationsPutParams{TenantID: tenant, AccountID: account, Folder: c.folder.Name, Rows: rows})
			})
		},
		func() error { return c.broughtBack(ctx, tx) },
		func() error {
			return inserted(c.decisions, func(rows []byte) error {
				return q.TriageDecisionsPut(ctx, tx, &dbsqlc.TriageDecisionsPutParams{TenantID: tenant, AccountID: account, RunID: c.run.id, Rows: rows})
			})
		},
		func() error { return c.wantTexts(ctx, tx) },
		func() error { return c.decideAgain(ctx, tx) },
		func() error { return withdraw(ctx, tx, c.lease, c.narrowed, false) },
		func() (err error) {
			c.proposed, err = propose(ctx, tx, c.lease, c.run, c.proposals)
			return err
		},
		func() error {
			return count(ctx, tx, c.lease, c.run, runCounts{read: len(c.mails), decided: len(c.decisions), proposed: c.proposed, skipped: len(c.skipped)})
		},
		func() error { return putAside(ctx, tx, c.lease, c.folder, c.skipped) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// inserted passes rows to a statement, unless there are none.
func inserted[T any](rows []T, insert func([]byte) error) error {
	if len(rows) == 0 {
		return nil
	}
	raw, err := postgres.JSON(rows)
	if err != nil {
		return &messageError{err: err}
	}
	return insert(raw)
}

// joinThreads joins the threads that a message of the chunk belongs to, with
// their follow-ups.
func (c *chunk) joinThreads(ctx context.Context, tx pgx.Tx) error {
	for id, others := range c.threads.Joined() {
		kept, err := dbsqlc.New().TriageThreadsJoin(ctx, tx, &dbsqlc.TriageThreadsJoinParams{TenantID: c.lease.Tenant, ThreadIds: append(others, id)})
		if err != nil {
			return err
		}
		if kept != id {
			c.threads.FollowUps.Join(id, kept)
		}
	}
	return nil
}

// propose stores proposals with the origin of every value, and proposes those
// that no earlier run proposed. It returns their number.
func propose(ctx context.Context, tx pgx.Tx, l *lease.Lease, run *Run, proposals []proposalRow) (n int, err error) {
	err = inserted(proposals, func(raw []byte) error {
		rows, err := dbsqlc.New().TriageProposalsInsert(ctx, tx, &dbsqlc.TriageProposalsInsertParams{TenantID: l.Tenant, AccountID: l.Account.ID, RunID: run.id, Rows: raw})
		if err != nil || len(rows) == 0 {
			return err
		}
		n = len(rows)
		return proposeAll(ctx, tx, l, rows)
	})
	return n, err
}

// proposeAll proposes the envelopes of stored proposals.
func proposeAll[R ~struct {
	ExternalID string
	Envelope   []byte
}](ctx context.Context, tx pgx.Tx, l *lease.Lease, rows []R) error {
	envelopes, external := make([][]byte, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		row := dbsqlc.TriageProposalsInsertRow(r)
		envelopes[i], external[i] = row.Envelope, row.ExternalID
	}
	ids, err := dbsqlc.New().TriageProposalsPropose(ctx, tx, &dbsqlc.TriageProposalsProposeParams{TenantID: uuid.UUID(l.Tenant), AccountID: l.Account.ID, Envelopes: envelopes})
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return lease.ErrPaused
	}
	return dbsqlc.New().TriageProposalsProposed(ctx, tx, &dbsqlc.TriageProposalsProposedParams{TenantID: l.Tenant, ExternalIds: external, ProposalIds: ids})
}

// Propose proposes one action about a message, unless a run has done so, and
// counts it.
func (r *Reader) Propose(ctx context.Context, tx pgx.Tx, run *Run, about uuid.UUID, p plan.Proposal) error {
	row, err := proposalRowOf(about, p)
	if err != nil {
		return err
	}
	n, err := propose(ctx, tx, r.lease, run, []proposalRow{row})
	if err != nil || n == 0 {
		return err
	}
	run.counted = true
	return count(ctx, tx, r.lease, run, runCounts{proposed: n})
}

func touch(ctx context.Context, tx pgx.Tx, l *lease.Lease, rows []touchedRow) error {
	return inserted(rows, func(raw []byte) error {
		return dbsqlc.New().TriageTouched(ctx, tx, &dbsqlc.TriageTouchedParams{TenantID: l.Tenant, Rows: raw})
	})
}

// moved records changes of known messages in one transaction: changed flags and
// empty locations.
func (r *Reader) moved(ctx context.Context, f mailbox.Folder, changes mailbox.Changes) error {
	return r.lease.Write(ctx, func(tx pgx.Tx) error {
		if changes.Reset {
			maps.DeleteFunc(r.aside, func(at mailbox.Location, _ bool) bool { return at.Folder == f.Name })
			return errors.Join(void(ctx, tx, r.lease, f.Name), clearAside(ctx, tx, r.lease, f.Name, nil, true))
		}
		if len(changes.Flagged) > 0 {
			if err := r.flagged(ctx, tx, f, changes.Flagged); err != nil {
				return err
			}
		}
		if len(changes.Gone) == 0 {
			return nil
		}
		gone := &dbsqlc.TriageLocationsDeleteParams{TenantID: r.lease.Tenant, AccountID: r.lease.Account.ID, Folder: f.Name, Keys: make([]string, len(changes.Gone))}
		for i, l := range changes.Gone {
			gone.Keys[i] = l.Key
		}
		if err := clearAside(ctx, tx, r.lease, f.Name, gone.Keys, false); err != nil {
			return err
		}
		ids, err := dbsqlc.New().TriageLocationsDelete(ctx, tx, gone)
		if err != nil {
			return err
		}
		return errors.Join(markLeft(ctx, tx, r.lease, ids), withdrawGone(ctx, tx, r.lease, f.Name, ids))
	})
}

// flagged stores changed flags, and the owner's actions that they imply.
func (r *Reader) flagged(ctx context.Context, tx pgx.Tx, f mailbox.Folder, items []mailbox.Item) error {
	now := make(map[string][]string, len(items))
	keys := make([]string, len(items))
	for i, it := range items {
		now[it.Key], keys[i] = it.Flags, it.Key
	}
	q := dbsqlc.New()
	rows, err := q.TriageLocations(ctx, tx, &dbsqlc.TriageLocationsParams{TenantID: r.lease.Tenant, AccountID: r.lease.Account.ID, Folder: f.Name, Keys: keys})
	if err != nil {
		return err
	}
	var locations []locationRow
	var touched []touchedRow
	var pointless []uuid.UUID
	for _, row := range rows {
		locations = append(locations, locationRow{Key: row.Key, Message: row.MessageID, Flags: append([]string{}, now[row.Key]...)})
		var proposed []plan.Part
		if err := json.Unmarshal(row.Proposed, &proposed); err != nil {
			return err
		}
		if t, ok := touchedBy(row.Flags, now[row.Key], proposed, r.lease.Account.Proposals.LabelPrefix); ok {
			t.Message = row.MessageID
			touched = append(touched, t)
		}
		if unexpected(row.Flags, now[row.Key]) {
			pointless = append(pointless, row.MessageID)
		}
	}
	err = inserted(locations, func(raw []byte) error {
		return q.TriageLocationsPut(ctx, tx, &dbsqlc.TriageLocationsPutParams{TenantID: r.lease.Tenant, AccountID: r.lease.Account.ID, Folder: f.Name, Rows: raw})
	})
	if err != nil {
		return err
	}
	return errors.Join(touch(ctx, tx, r.lease, touched), withdraw(ctx, tx, r.lease, pointless, false))
}

// withdrawGone requests the withdrawal of proposals that expect messages in a
// folder, for messages that lost a location there.
func withdrawGone(ctx context.Context, tx pgx.Tx, l *lease.Lease, folder string, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	return dbsqlc.New().TriageProposalsWithdrawGone(ctx, tx, &dbsqlc.TriageProposalsWithdrawGoneParams{TenantID: l.Tenant, MessageIds: ids, Folder: folder})
}

// withdraw requests the withdrawal of pending proposals about messages that
// somebody moved or flagged. The source would refuse them, since it expects the
// message unchanged. moved reports whether the messages left their folders.
func withdraw(ctx context.Context, tx pgx.Tx, l *lease.Lease, ids []uuid.UUID, moved bool) error {
	if len(ids) == 0 {
		return nil
	}
	return dbsqlc.New().TriageProposalsWithdraw(ctx, tx, &dbsqlc.TriageProposalsWithdrawParams{TenantID: l.Tenant, MessageIds: ids, Moved: moved})
}

// broughtBack records restored messages, and the moves that the owner reversed.
func (c *chunk) broughtBack(ctx context.Context, tx pgx.Tx) error {
	if len(c.restored) == 0 {
		return nil
	}
	err := dbsqlc.New().TriageMessagesBack(ctx, tx, &dbsqlc.TriageMessagesBackParams{TenantID: c.lease.Tenant, MessageIds: c.restored})
	if err != nil {
		return err
	}
	refused := make([]outcomeRow, len(c.refusedNow))
	for i, id := range c.refusedNow {
		refused[i] = outcomeRow{Message: id, Refused: 1}
	}
	return errors.Join(touch(ctx, tx, c.lease, c.touched), countOutcomes(ctx, tx, c.lease, refused), withdraw(ctx, tx, c.lease, c.brought, false))
}

// decideAgain schedules messages to be decided again because of the chunk.
func (c *chunk) decideAgain(ctx context.Context, tx pgx.Tx) error {
	if len(c.brought) > 0 {
		if err := decideAgain(ctx, tx, c.lease, c.brought, reasonBroughtBack); err != nil {
			return err
		}
	}
	if len(c.threads.FollowUps.Answered) == 0 {
		return nil
	}
	p := &dbsqlc.TriageDecisionsAnsweredParams{TenantID: c.lease.Tenant}
	for thread, at := range c.threads.FollowUps.Answered {
		p.ThreadIds, p.AnsweredAts = append(p.ThreadIds, thread), append(p.AnsweredAts, at)
	}
	return dbsqlc.New().TriageDecisionsAnswered(ctx, tx, p)
}
