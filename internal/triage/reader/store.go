package reader

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/brief"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/lease"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/signal"
	"github.com/countersign-dev/countersign/internal/triage/thread"
)

// interruptRuns ends the unfinished runs of an account that another process
// left.
func interruptRuns(ctx context.Context, tx pgx.Tx, l *lease.Lease) error {
	return dbsqlc.New().TriageRunsInterrupted(ctx, tx, &dbsqlc.TriageRunsInterruptedParams{TenantID: l.Tenant, AccountID: l.Account.ID})
}

// runCounts are added to the row of a run.
type runCounts struct{ read, decided, proposed, skipped int }

func count(ctx context.Context, tx pgx.Tx, l *lease.Lease, run *Run, n runCounts) error {
	return dbsqlc.New().TriageRunCount(ctx, tx, &dbsqlc.TriageRunCountParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, RunID: run.id, Kind: string(run.kind),
		Read: int32(n.read), Decided: int32(n.decided), Proposed: int32(n.proposed), Skipped: int32(n.skipped),
	})
}

func endRun(ctx context.Context, tx pgx.Tx, l *lease.Lease, run *Run) error {
	return dbsqlc.New().TriageRunEnd(ctx, tx, &dbsqlc.TriageRunEndParams{TenantID: l.Tenant, RunID: run.id, Error: measure.Problem(run.err)})
}

func contacts(ctx context.Context, tx pgx.Tx, l *lease.Lease) ([]signal.Contact, error) {
	const most = 1000
	rows, err := dbsqlc.New().TriageContacts(ctx, tx, &dbsqlc.TriageContactsParams{TenantID: l.Tenant, AccountID: l.Account.ID, Most: most})
	return postgres.Map(rows, err, func(c dbsqlc.TriageContactsRow) signal.Contact { return signal.Contact{Name: c.Name, Addr: c.Address} })
}

// correctionsVersion changes whenever a correction is made or removed.
type correctionsVersion = dbsqlc.TriageCorrectionsVersionRow

func correctionsOf(ctx context.Context, tx pgx.Tx, l *lease.Lease) (correctionsVersion, error) {
	return dbsqlc.New().TriageCorrectionsVersion(ctx, tx, &dbsqlc.TriageCorrectionsVersionParams{TenantID: l.Tenant, AccountID: l.Account.ID})
}

// corrections returns the corrections that can be replayed: features of another
// version of the program cannot.
func corrections(ctx context.Context, tx pgx.Tx, l *lease.Lease) (made []classify.Correction, err error) {
	rows, err := dbsqlc.New().TriageCorrectionsOf(ctx, tx, &dbsqlc.TriageCorrectionsOfParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, Most: classify.MaxCorrections,
	})
	for _, row := range rows {
		c := classify.Correction{Sequence: row.CorrectionNo, Head: classify.Head(row.Head), Label: row.Label}
		if c.Features.UnmarshalBinary(row.Features) == nil {
			made = append(made, c)
		}
	}
	return made, err
}

// correctedSenders returns the number of corrections in force for each sender
// and list.
func correctedSenders(ctx context.Context, tx pgx.Tx, l *lease.Lease) (map[string]int, error) {
	rows, err := dbsqlc.New().TriageCorrectedSenders(ctx, tx, &dbsqlc.TriageCorrectedSendersParams{TenantID: l.Tenant, AccountID: l.Account.ID})
	counts := make(map[string]int, len(rows))
	for _, row := range rows {
		counts[row.Address] = int(row.Corrected)
	}
	return counts, err
}

// decideCorrected schedules messages to be decided again whose senders were
// corrected since the last time.
func decideCorrected(ctx context.Context, tx pgx.Tx, l *lease.Lease) error {
	return dbsqlc.New().TriageDecisionsCorrected(ctx, tx, &dbsqlc.TriageDecisionsCorrectedParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, Most: maxCorrected,
	})
}

func positionOf(ctx context.Context, tx pgx.Tx, l *lease.Lease, folder string) (position, error) {
	row, err := dbsqlc.New().TriageFolder(ctx, tx, &dbsqlc.TriageFolderParams{TenantID: l.Tenant, AccountID: l.Account.ID, Folder: folder})
	if errors.Is(err, pgx.ErrNoRows) {
		return position{}, nil
	}
	return position{cursor: mailbox.Cursor(row.Cursor), older: mailbox.Cursor(row.Older), olderDone: row.OlderDone, voided: row.Voided}, err
}

func putPosition(ctx context.Context, tx pgx.Tx, l *lease.Lease, f mailbox.Folder, at position) error {
	return dbsqlc.New().TriageFolderPut(ctx, tx, &dbsqlc.TriageFolderPutParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, Folder: f.Name, Use: string(f.Use),
		Cursor: string(at.cursor), Older: string(at.older), OlderDone: at.olderDone,
	})
}

// void sets the locations of a folder apart until it has been read again, so
// that its messages do not count as brought back.
func void(ctx context.Context, tx pgx.Tx, l *lease.Lease, folder string) error {
	return dbsqlc.New().TriageLocationsVoid(ctx, tx, &dbsqlc.TriageLocationsVoidParams{TenantID: l.Tenant, AccountID: l.Account.ID, Folder: folder})
}

func deleteVoided(ctx context.Context, tx pgx.Tx, l *lease.Lease, folder string) error {
	gone, err := dbsqlc.New().TriageLocationsVoidedDelete(ctx, tx, &dbsqlc.TriageLocationsVoidedDeleteParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, Folder: folder,
	})
	if err != nil {
		return err
	}
	return markLeft(ctx, tx, l, gone)
}

// markLeft records which of the gone messages are now only in folders that triage
// moves messages to.
func markLeft(ctx context.Context, tx pgx.Tx, l *lease.Lease, gone []uuid.UUID) error {
	if len(gone) == 0 {
		return nil
	}
	ids, err := dbsqlc.New().TriageMessagesLeft(ctx, tx, &dbsqlc.TriageMessagesLeftParams{
		TenantID: l.Tenant, MessageIds: gone, Elsewhere: postgres.Texts[string](movedTo()),
	})
	if err != nil {
		return err
	}
	return withdraw(ctx, tx, l, ids, true)
}

func knownLocations(ctx context.Context, tx pgx.Tx, l *lease.Lease, folder string) ([]mailbox.Location, error) {
	keys, err := dbsqlc.New().TriageLocationsKnown(ctx, tx, &dbsqlc.TriageLocationsKnownParams{TenantID: l.Tenant, AccountID: l.Account.ID, Folder: folder})
	return postgres.Map(keys, err, func(key string) mailbox.Location { return mailbox.Location{Folder: folder, Key: key} })
}

// load loads the input for deciding the chunk's messages.
func (c *chunk) load(ctx context.Context, tx pgx.Tx) error {
	return errors.Join(c.loadKnown(ctx, tx), c.loadThreads(ctx, tx), c.loadSenders(ctx, tx), c.loadAbsence(ctx, tx), c.loadBriefs(ctx, tx))
}

// loadBriefs loads the briefs that were mailed to the owner.
func (c *chunk) loadBriefs(ctx context.Context, tx pgx.Tx) (err error) {
	among := make([]*message.Message, len(c.mails))
	for i := range c.mails {
		among[i] = c.mails[i].message
	}
	c.briefs, err = brief.MailedOf(ctx, tx, c.lease.Tenant, c.lease.Account.ID, c.lease.Account.Settings.Addresses, among)
	return err
}

// loadAbsence loads the answers in the owner's absence so far.
func (c *chunk) loadAbsence(ctx context.Context, tx pgx.Tx) error {
	c.absence = plan.Absence{}
	a := c.lease.Account.Proposals.Away
	if !a.At(time.Now()) {
		return nil
	}
	rows, err := dbsqlc.New().TriageAbsence(ctx, tx, &dbsqlc.TriageAbsenceParams{TenantID: c.lease.Tenant, AccountID: c.lease.Account.ID, Since: a.Since})
	for _, r := range rows {
		c.absence.Answered(r.ExternalID, r.Deadline)
	}
	return err
}

func (c *chunk) loadKnown(ctx context.Context, tx pgx.Tx) error {
	identities := make([][]byte, len(c.mails))
	for i, m := range c.mails {
		identities[i] = m.message.Identity[:]
	}
	rows, err := dbsqlc.New().TriageMessagesKnown(ctx, tx, &dbsqlc.TriageMessagesKnownParams{TenantID: c.lease.Tenant, AccountID: c.lease.Account.ID, Identities: identities})
	c.known = make(map[string]knownMessage, len(rows))
	for _, r := range rows {
		c.known[string(r.Identity)] = knownMessage{id: r.MessageID, left: r.Left, moved: r.Moved, undone: r.Undone, judged: r.Judged}
	}
	if err != nil {
		return err
	}
	return c.loadJoins(ctx, tx)
}

// loadJoins loads the decisions about messages of which the chunk has copies
// that differ from the judged ones.
func (c *chunk) loadJoins(ctx context.Context, tx pgx.Tx) error {
	c.joins = map[string]Stored{}
	var ids []uuid.UUID
	for i := range c.mails {
		known := c.known[string(c.mails[i].message.Identity[:])]
		if c.again == nil && len(known.judged) > 0 && !slices.Contains(known.judged, c.mails[i].counted) && !slices.Contains(ids, known.id) {
			ids = append(ids, known.id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	due, err := c.reader.Stored(ctx, tx, ids)
	for _, d := range due {
		d.reason = reasonCopied
		c.joins[d.identity] = d
	}
	return err
}

func (c *chunk) loadThreads(ctx context.Context, tx pgx.Tx) error {
	p := &dbsqlc.TriageMessagesRelatedParams{TenantID: c.lease.Tenant, AccountID: c.lease.Account.ID, Named: []string{}, HeaderIds: []string{}, Subjects: []string{}}
	for _, m := range c.mails {
		p.Named = append(p.Named, m.values.Names...)
		if m.values.ID != "" {
			p.HeaderIds = append(p.HeaderIds, m.values.ID)
		}
		if subject := m.values.ThreadSubject; subject != "" && len(m.values.Names) == 0 && !slices.Contains(p.Subjects, subject) {
			p.Subjects = append(p.Subjects, subject)
		}
	}
	rows, err := dbsqlc.New().TriageMessagesRelated(ctx, tx, p)
	c.threads = thread.New()
	of := map[uuid.UUID]bool{}
	for _, due := range c.again {
		of[due.thread] = true
	}
	for _, r := range rows {
		of[r.ThreadID] = true
		c.threads.Add(&thread.Related{Thread: r.ThreadID, Outgoing: r.Outgoing, Bucket: decide.Bucket(r.Bucket), Message: thread.Message{
			ID: r.HeaderID, Names: r.Refs, ThreadSubject: r.ThreadSubject, Sender: r.Sender, Participants: r.Participants, Received: thread.InstantOf(r.ReceivedAt),
		}})
	}
	if err != nil || len(of) == 0 {
		return err
	}
	return c.loadFollowUps(ctx, tx, slices.Collect(maps.Keys(of)))
}

// loadFollowUps loads the answers that the owner waits for in threads.
func (c *chunk) loadFollowUps(ctx context.Context, tx pgx.Tx, of []uuid.UUID) error {
	rows, err := dbsqlc.New().TriageFollowUps(ctx, tx, &dbsqlc.TriageFollowUpsParams{TenantID: c.lease.Tenant, ThreadIds: of})
	for _, r := range rows {
		if r.AskedAt.Unix() > 0 {
			c.threads.FollowUps.Asked[r.ThreadID] = r.AskedAt
		}
		if r.AnsweredAt.Unix() > 0 {
			c.threads.FollowUps.Written[r.ThreadID] = r.AnsweredAt
		}
	}
	return err
}

func (c *chunk) loadSenders(ctx context.Context, tx pgx.Tx) error {
	addresses := []string{}
	for i := range c.mails {
		addresses = append(addresses, c.mails[i].values.Addresses()...)
	}
	rows, err := dbsqlc.New().TriageSenders(ctx, tx, &dbsqlc.TriageSendersParams{TenantID: c.lease.Tenant, AccountID: c.lease.Account.ID, Addresses: addresses})
	c.senders = thread.NewSenders()
	for _, r := range rows {
		c.senders.Known[r.Address] = signal.Sender{
			FirstSeen: r.FirstSeen, LastSeen: r.LastSeen, Received: int(r.Received), Sent: int(r.Sent), Replied: int(r.Replied),
			Accepted: int(r.Accepted), Corrected: int(r.Refused) + c.reader.corrected[r.Address],
		}
	}
	return err
}

// loadAside loads the messages set aside, and those of them that a person asked
// to read again.
func (r *Reader) loadAside(ctx context.Context, tx pgx.Tx) error {
	rows, err := dbsqlc.New().TriageSetAsideOf(ctx, tx, &dbsqlc.TriageSetAsideOfParams{TenantID: r.lease.Tenant, AccountID: r.lease.Account.ID, Most: maxAside})
	r.aside, r.readAgain = map[mailbox.Location]bool{}, map[string][]mailbox.Item{}
	for _, row := range rows {
		at := mailbox.Location{Folder: row.Folder, Key: row.Key}
		if row.Again {
			r.readAgain[row.Folder] = append(r.readAgain[row.Folder], mailbox.Item{Location: at, Received: row.ReceivedAt, Size: row.Size})
		} else if row.Key != "" {
			r.aside[at] = true
		}
	}
	return err
}

func putAside(ctx context.Context, tx pgx.Tx, l *lease.Lease, f mailbox.Folder, rows []asideRow) error {
	return inserted(rows, func(raw []byte) error {
		return dbsqlc.New().TriageSetAsidePut(ctx, tx, &dbsqlc.TriageSetAsidePutParams{TenantID: l.Tenant, AccountID: l.Account.ID, Folder: f.Name, Rows: raw})
	})
}

// clearAside removes messages of a folder from those set aside: at the given
// locations, which are empty now, or all of them with every.
func clearAside(ctx context.Context, tx pgx.Tx, l *lease.Lease, folder string, keys []string, every bool) error {
	return dbsqlc.New().TriageSetAsideClear(ctx, tx, &dbsqlc.TriageSetAsideClearParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, Folder: folder, Keys: append([]string{}, keys...), Every: every,
	})
}

// clearAsked removes the messages of a folder that a person asked for and that
// did not fail again.
func clearAsked(ctx context.Context, tx pgx.Tx, l *lease.Lease, folder string) error {
	return dbsqlc.New().TriageSetAsideClear(ctx, tx, &dbsqlc.TriageSetAsideClearParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, Folder: folder, Keys: []string{}, Asked: true,
	})
}

// latest returns the newest messages of a folder that were read before.
func latest(ctx context.Context, tx pgx.Tx, l *lease.Lease, folder string) ([]mailbox.Item, error) {
	rows, err := dbsqlc.New().TriageLocationsLatest(ctx, tx, &dbsqlc.TriageLocationsLatestParams{
		TenantID: l.Tenant, AccountID: l.Account.ID, Folder: folder, Most: controls,
	})
	return postgres.Map(rows, err, func(row dbsqlc.TriageLocationsLatestRow) mailbox.Item {
		return mailbox.Item{Location: mailbox.Location{Folder: row.Folder, Key: row.Key}, Received: row.ReceivedAt, Size: row.Size}
	})
}
