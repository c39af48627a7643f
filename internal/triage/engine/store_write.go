package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// write stores what was decided, and proposes.
func (c *chunk) write(ctx context.Context, tx pgx.Tx) error {
	q, tenant, account := dbsqlc.New(), c.tenant(), c.account.ID
	steps := []func() error{
		func() error {
			return inserted(c.messages, func(rows []byte) error {
				if err := q.TriageMessagesInsert(ctx, tx, &dbsqlc.TriageMessagesInsertParams{TenantID: tenant, AccountID: account, Rows: rows}); err != nil {
					return err
				}
				return q.TriageRefsInsert(ctx, tx, &dbsqlc.TriageRefsInsertParams{TenantID: tenant, AccountID: account, Rows: rows})
			})
		},
		func() error { return c.joinThreads(ctx, tx) },
		func() error {
			return inserted(c.senders.rows(), func(rows []byte) error {
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
				return q.TriageDecisionsPut(ctx, tx, &dbsqlc.TriageDecisionsPutParams{TenantID: tenant, AccountID: account, RunID: c.id, Rows: rows})
			})
		},
		func() error { return c.wantTexts(ctx, tx) },
		func() error { return c.decideAgain(ctx, tx) },
		func() error { return withdraw(ctx, tx, c.run, c.narrowed) },
		func() error { return c.propose(ctx, tx) },
		func() error {
			return q.TriageRunCount(ctx, tx, &dbsqlc.TriageRunCountParams{
				TenantID: tenant, AccountID: account, RunID: c.id, Kind: string(c.kind), Read: int32(len(c.mails)),
				Decided: int32(len(c.decisions)), Proposed: int32(c.proposed), Skipped: int32(len(c.skipped)),
			})
		},
		func() error { return putAside(ctx, tx, c.run, c.folder, c.skipped) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// inserted passes rows to a statement; none are not passed.
func inserted[T any](rows []T, insert func([]byte) error) error {
	if len(rows) == 0 {
		return nil
	}
	raw, err := rowsOf(rows)
	if err != nil {
		return err
	}
	return insert(raw)
}

// rows returns what was added, in one order, so that two transactions never wait
// for each other.
func (s *senders) rows() []senderRow {
	var all []senderRow
	for _, r := range s.added {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b senderRow) int {
		if a.Address < b.Address {
			return -1
		}
		return 1
	})
	return all
}

// joinThreads makes one of the threads that a message of the chunk belongs to. What
// was answered in them was answered in that one.
func (c *chunk) joinThreads(ctx context.Context, tx pgx.Tx) error {
	into := map[uuid.UUID][]uuid.UUID{}
	for other := range c.threads.joined {
		id := c.threads.now(other)
		into[id] = append(into[id], other)
	}
	for id, others := range into {
		kept, err := dbsqlc.New().TriageThreadsJoin(ctx, tx, &dbsqlc.TriageThreadsJoinParams{TenantID: c.tenant(), ThreadIds: append(others, id)})
		if err != nil {
			return err
		}
		if kept != id {
			c.threads.followUps.join(id, kept)
		}
	}
	return nil
}

// propose stores proposals with the origin of every value, and proposes those that
// no run proposed before.
func (c *chunk) propose(ctx context.Context, tx pgx.Tx) error {
	c.proposed = 0
	if len(c.proposals) == 0 {
		return nil
	}
	raw, err := rowsOf(c.proposals)
	if err != nil {
		return err
	}
	rows, err := dbsqlc.New().TriageProposalsInsert(ctx, tx, &dbsqlc.TriageProposalsInsertParams{TenantID: c.tenant(), AccountID: c.account.ID, Rows: raw})
	if err != nil || len(rows) == 0 {
		return err
	}
	envelopes, external := make([][]byte, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		envelopes[i], external[i] = r.Envelope, r.ExternalID
	}
	c.proposed = len(rows)
	return proposeAll(ctx, tx, c.run, envelopes, external)
}

// proposeAll proposes envelopes, whose rows have the names.
func proposeAll(ctx context.Context, tx pgx.Tx, r *run, envelopes [][]byte, external []string) error {
	ids, err := dbsqlc.New().TriageProposalsPropose(ctx, tx, envelopes)
	if err != nil {
		return err
	}
	return dbsqlc.New().TriageProposalsProposed(ctx, tx, &dbsqlc.TriageProposalsProposedParams{TenantID: r.tenant(), ExternalIds: external, ProposalIds: ids})
}

func touch(ctx context.Context, tx pgx.Tx, r *run, rows []touchedRow) error {
	return inserted(rows, func(raw []byte) error {
		return dbsqlc.New().TriageTouched(ctx, tx, &dbsqlc.TriageTouchedParams{TenantID: r.tenant(), Rows: raw})
	})
}

// moved records in one transaction what happened to messages that were there:
// flags that changed, locations that went.
func (p *pass) moved(ctx context.Context, f mailbox.Folder, changes mailbox.Changes) error {
	return p.write(ctx, func(tx pgx.Tx) error {
		if changes.Reset {
			maps.DeleteFunc(p.aside, func(at mailbox.Location, _ bool) bool { return at.Folder == f.Name })
			return errors.Join(void(ctx, tx, p.run, f.Name), clearAside(ctx, tx, p.run, f.Name, nil, true))
		}
		if len(changes.Flagged) > 0 {
			if err := p.flagged(ctx, tx, f, changes.Flagged); err != nil {
				return err
			}
		}
		if len(changes.Gone) == 0 {
			return nil
		}
		gone := &dbsqlc.TriageLocationsDeleteParams{TenantID: p.tenant(), AccountID: p.account.ID, Folder: f.Name, Keys: make([]string, len(changes.Gone))}
		for i, l := range changes.Gone {
			gone.Keys[i] = l.Key
		}
		if err := clearAside(ctx, tx, p.run, f.Name, gone.Keys, false); err != nil {
			return err
		}
		ids, err := dbsqlc.New().TriageLocationsDelete(ctx, tx, gone)
		if err != nil {
			return err
		}
		return left(ctx, tx, p.run, ids)
	})
}

// flagged stores flags that changed, and what the owner did to the message by
// changing them.
func (p *pass) flagged(ctx context.Context, tx pgx.Tx, f mailbox.Folder, items []mailbox.Item) error {
	now := make(map[string][]string, len(items))
	keys := make([]string, len(items))
	for i, it := range items {
		now[it.Key], keys[i] = it.Flags, it.Key
	}
	q := dbsqlc.New()
	rows, err := q.TriageLocations(ctx, tx, &dbsqlc.TriageLocationsParams{TenantID: p.tenant(), AccountID: p.account.ID, Folder: f.Name, Keys: keys})
	if err != nil {
		return err
	}
	var locations []locationRow
	var touched []touchedRow
	for _, r := range rows {
		locations = append(locations, locationRow{Key: r.Key, Message: r.MessageID, Flags: append([]string{}, now[r.Key]...)})
		var proposed []plan.Part
		if err := json.Unmarshal(r.Proposed, &proposed); err != nil {
			return err
		}
		if t, ok := touchedBy(r.Flags, now[r.Key], proposed, p.account.Proposals.LabelPrefix); ok {
			t.Message = r.MessageID
			touched = append(touched, t)
		}
	}
	err = inserted(locations, func(raw []byte) error {
		return q.TriageLocationsPut(ctx, tx, &dbsqlc.TriageLocationsPutParams{TenantID: p.tenant(), AccountID: p.account.ID, Folder: f.Name, Rows: raw})
	})
	if err != nil {
		return err
	}
	ids := make([]uuid.UUID, len(touched))
	for i, t := range touched {
		ids[i] = t.Message
	}
	return errors.Join(touch(ctx, tx, p.run, touched), withdraw(ctx, tx, p.run, ids))
}

// withdraw has workers withdraw what waits about messages that their owner moved or
// flagged: the source would refuse it, since it expects them as they were.
func withdraw(ctx context.Context, tx pgx.Tx, r *run, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	return dbsqlc.New().TriageProposalsWithdraw(ctx, tx, &dbsqlc.TriageProposalsWithdrawParams{TenantID: r.tenant(), MessageIds: ids})
}

// broughtBack records which messages lie again where they lay before they were
// moved away, and what their owner took back.
func (c *chunk) broughtBack(ctx context.Context, tx pgx.Tx) error {
	if len(c.back) == 0 {
		return nil
	}
	err := dbsqlc.New().TriageMessagesBack(ctx, tx, &dbsqlc.TriageMessagesBackParams{TenantID: c.tenant(), MessageIds: c.back})
	if err != nil {
		return err
	}
	refused := make([]outcomeRow, len(c.brought))
	for i, id := range c.brought {
		refused[i] = outcomeRow{Message: id, Refused: 1}
	}
	return errors.Join(touch(ctx, tx, c.run, c.touched), countOutcomes(ctx, tx, c.run, refused))
}

// decideAgain has the messages decided again for which the chunk is a reason.
func (c *chunk) decideAgain(ctx context.Context, tx pgx.Tx) error {
	if len(c.brought) > 0 {
		if err := decideAgain(ctx, tx, c.run, c.brought, reasonBroughtBack); err != nil {
			return err
		}
	}
	if len(c.threads.answered) == 0 {
		return nil
	}
	p := &dbsqlc.TriageDecisionsAnsweredParams{TenantID: c.tenant()}
	for thread, at := range c.threads.answered {
		p.ThreadIds, p.AnsweredAts = append(p.ThreadIds, thread), append(p.AnsweredAts, at)
	}
	return dbsqlc.New().TriageDecisionsAnswered(ctx, tx, p)
}
