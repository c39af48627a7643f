package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

func tenantOf(ctx context.Context, tx pgx.Tx) (envelope.TenantID, error) {
	id, err := dbsqlc.New().TriageTenant(ctx, tx)
	return envelope.TenantID(id), err
}

func fillSchedules(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
	return dbsqlc.New().TriageScheduleFill(ctx, tx, uuid.UUID(tenant))
}

func claim(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, holder uuid.UUID, lease time.Duration, most int, all bool, besides []uuid.UUID) ([]uuid.UUID, error) {
	return dbsqlc.New().TriageClaim(ctx, tx, &dbsqlc.TriageClaimParams{
		TenantID: uuid.UUID(tenant), Holder: &holder, LeaseSeconds: lease.Seconds(), Most: int64(most), AllAccounts: all, Besides: append([]uuid.UUID{}, besides...),
	})
}

func release(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account, holder uuid.UUID, pause time.Duration) error {
	return dbsqlc.New().TriageRelease(ctx, tx, &dbsqlc.TriageReleaseParams{
		TenantID: uuid.UUID(tenant), AccountID: account, Holder: &holder, PauseSeconds: pause.Seconds(),
	})
}

// require fails with errLost unless the run still holds its account, and keeps
// others from taking it until the transaction ends.
func require(ctx context.Context, tx pgx.Tx, r *run) error {
	n, err := dbsqlc.New().TriageHold(ctx, tx, &dbsqlc.TriageHoldParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Holder: &r.holder, LeaseSeconds: r.engine.cfg.Lease.Seconds(), Quota: r.quotaState(),
	})
	return postgres.Affected(n, err, errLost)
}

// renewal is what a run learns when it renews its lease.
type renewal struct {
	asked, enabled bool
	version        int64
}

func renew(ctx context.Context, tx pgx.Tx, r *run) (renewal, error) {
	row, err := dbsqlc.New().TriageRenew(ctx, tx, &dbsqlc.TriageRenewParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Holder: &r.holder, LeaseSeconds: r.engine.cfg.Lease.Seconds(),
	})
	return renewal{row.Asked, row.Enabled, row.Version}, err
}

// startSchedule returns how many runs failed one after the other. What they left
// of the provider's limits is what this run has.
func startSchedule(ctx context.Context, tx pgx.Tx, r *run) (failures int, err error) {
	row, err := dbsqlc.New().TriageScheduleStart(ctx, tx, &dbsqlc.TriageScheduleStartParams{TenantID: r.tenant(), AccountID: r.account.ID, Holder: &r.holder})
	if errors.Is(err, pgx.ErrNoRows) {
		err = errLost
	}
	if err != nil {
		return 0, err
	}
	var left quota.State
	if err := json.Unmarshal(row.Quota, &left); err != nil {
		return 0, fmt.Errorf("quota of the account: %w", err)
	}
	r.bucket.Restore(left)
	return int(row.Failures), nil
}

// quotaState is what is left of the provider's limits, as it is stored. A time
// and a number have JSON.
func (r *run) quotaState() []byte {
	raw, _ := json.Marshal(r.bucket.State())
	return raw
}

func endSchedule(ctx context.Context, tx pgx.Tx, r *run, problem string, pause time.Duration) error {
	return dbsqlc.New().TriageScheduleEnd(ctx, tx, &dbsqlc.TriageScheduleEndParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Holder: &r.holder, Error: problem, PauseSeconds: pause.Seconds(), Quota: r.quotaState(),
	})
}

// interruptRuns ends the runs of an account that another process left without an
// end.
func interruptRuns(ctx context.Context, tx pgx.Tx, r *run) error {
	return dbsqlc.New().TriageRunsInterrupted(ctx, tx, &dbsqlc.TriageRunsInterruptedParams{TenantID: r.tenant(), AccountID: r.account.ID})
}

func due(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (int64, error) {
	return dbsqlc.New().TriageDue(ctx, tx, uuid.UUID(tenant))
}

func states(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (measure.States, error) {
	row, err := dbsqlc.New().TriageAccountStates(ctx, tx, uuid.UUID(tenant))
	if err != nil {
		return measure.States{}, err
	}
	return measure.States{OK: row.Ok, Failing: row.Failing, Late: row.Late}, nil
}

func endRun(ctx context.Context, tx pgx.Tx, p *pass, problem string) error {
	return dbsqlc.New().TriageRunEnd(ctx, tx, &dbsqlc.TriageRunEndParams{TenantID: p.tenant(), RunID: p.id, Error: problem})
}

func contacts(ctx context.Context, tx pgx.Tx, r *run) ([]signal.Contact, error) {
	const most = 1000
	rows, err := dbsqlc.New().TriageContacts(ctx, tx, &dbsqlc.TriageContactsParams{TenantID: r.tenant(), AccountID: r.account.ID, Most: most})
	return postgres.Map(rows, err, func(c dbsqlc.TriageContactsRow) signal.Contact { return signal.Contact{Name: c.Name, Addr: c.Address} })
}

// correctionsVersion changes whenever a correction is made or taken back.
type correctionsVersion struct{ made, newest int64 }

func correctionsOf(ctx context.Context, tx pgx.Tx, r *run) (correctionsVersion, error) {
	row, err := dbsqlc.New().TriageCorrectionsVersion(ctx, tx, &dbsqlc.TriageCorrectionsVersionParams{TenantID: r.tenant(), AccountID: r.account.ID})
	return correctionsVersion{row.Made, row.Newest}, err
}

// corrections returns those that can be replayed: features of another version of
// the program cannot.
func corrections(ctx context.Context, tx pgx.Tx, r *run) (made []classify.Correction, err error) {
	rows, err := dbsqlc.New().TriageCorrectionsOf(ctx, tx, &dbsqlc.TriageCorrectionsOfParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Most: classify.MaxCorrections,
	})
	for _, row := range rows {
		c := classify.Correction{Sequence: row.CorrectionNo, Head: classify.Head(row.Head), Label: row.Label}
		if c.Features.UnmarshalBinary(row.Features) == nil {
			made = append(made, c)
		}
	}
	return made, err
}

// correctedSenders returns how many corrections hold for each sender and list.
func correctedSenders(ctx context.Context, tx pgx.Tx, r *run) (map[string]int, error) {
	rows, err := dbsqlc.New().TriageCorrectedSenders(ctx, tx, &dbsqlc.TriageCorrectedSendersParams{TenantID: r.tenant(), AccountID: r.account.ID})
	counts := make(map[string]int, len(rows))
	for _, row := range rows {
		counts[row.Address] = int(row.Corrected)
	}
	return counts, err
}

// decideCorrected has messages decided again of senders of whom something was
// corrected since the last time.
func decideCorrected(ctx context.Context, tx pgx.Tx, r *run) error {
	return dbsqlc.New().TriageDecisionsCorrected(ctx, tx, &dbsqlc.TriageDecisionsCorrectedParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Most: maxCorrected,
	})
}

func positionOf(ctx context.Context, tx pgx.Tx, r *run, folder string) (position, error) {
	row, err := dbsqlc.New().TriageFolder(ctx, tx, &dbsqlc.TriageFolderParams{TenantID: r.tenant(), AccountID: r.account.ID, Folder: folder})
	if errors.Is(err, pgx.ErrNoRows) {
		return position{}, nil
	}
	return position{cursor: mailbox.Cursor(row.Cursor), older: mailbox.Cursor(row.Older), olderDone: row.OlderDone, voided: row.Voided}, err
}

func putPosition(ctx context.Context, tx pgx.Tx, r *run, f mailbox.Folder, at position) error {
	return dbsqlc.New().TriageFolderPut(ctx, tx, &dbsqlc.TriageFolderPutParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Folder: f.Name, Use: string(f.Use),
		Cursor: string(at.cursor), Older: string(at.older), OlderDone: at.olderDone,
	})
}

// void keeps the locations of a folder apart until the folder was read again, so
// that its messages do not count as brought back.
func void(ctx context.Context, tx pgx.Tx, r *run, folder string) error {
	return dbsqlc.New().TriageLocationsVoid(ctx, tx, &dbsqlc.TriageLocationsVoidParams{TenantID: r.tenant(), AccountID: r.account.ID, Folder: folder})
}

func deleteVoided(ctx context.Context, tx pgx.Tx, r *run, folder string) error {
	gone, err := dbsqlc.New().TriageLocationsVoidedDelete(ctx, tx, &dbsqlc.TriageLocationsVoidedDeleteParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Folder: folder,
	})
	if err != nil {
		return err
	}
	return left(ctx, tx, r, gone)
}

// left records which of the messages whose locations went lie nowhere any more but
// where triage has messages moved.
func left(ctx context.Context, tx pgx.Tx, r *run, gone []uuid.UUID) error {
	if len(gone) == 0 {
		return nil
	}
	p := &dbsqlc.TriageMessagesLeftParams{TenantID: r.tenant(), MessageIds: gone}
	for _, use := range movedTo() {
		p.Elsewhere = append(p.Elsewhere, string(use))
	}
	ids, err := dbsqlc.New().TriageMessagesLeft(ctx, tx, p)
	if err != nil {
		return err
	}
	return withdraw(ctx, tx, r, ids)
}

func knownLocations(ctx context.Context, tx pgx.Tx, r *run, folder string) ([]mailbox.Location, error) {
	keys, err := dbsqlc.New().TriageLocationsKnown(ctx, tx, &dbsqlc.TriageLocationsKnownParams{TenantID: r.tenant(), AccountID: r.account.ID, Folder: folder})
	return postgres.Map(keys, err, func(key string) mailbox.Location { return mailbox.Location{Folder: folder, Key: key} })
}

// tenant is that of the account, as queries take it.
func (r *run) tenant() uuid.UUID { return uuid.UUID(r.engine.tenant) }

// load reads what deciding about the chunk's messages depends on.
func (c *chunk) load(ctx context.Context, tx pgx.Tx) error {
	return errors.Join(c.loadKnown(ctx, tx), c.loadThreads(ctx, tx), c.loadSenders(ctx, tx))
}

func (c *chunk) loadKnown(ctx context.Context, tx pgx.Tx) error {
	identities := make([][]byte, len(c.mails))
	for i, m := range c.mails {
		identities[i] = m.message.Identity[:]
	}
	rows, err := dbsqlc.New().TriageMessagesKnown(ctx, tx, &dbsqlc.TriageMessagesKnownParams{TenantID: c.tenant(), AccountID: c.account.ID, Identities: identities})
	c.known = make(map[string]knownMessage, len(rows))
	for _, r := range rows {
		c.known[string(r.Identity)] = knownMessage{id: r.MessageID, left: r.Left, moved: r.Moved, judged: r.Judged}
	}
	if err != nil {
		return err
	}
	return c.loadJoins(ctx, tx)
}

// loadJoins reads the decisions about messages of which the chunk has copies that
// differ from the judged ones.
func (c *chunk) loadJoins(ctx context.Context, tx pgx.Tx) error {
	c.joins = map[string]dueMessage{}
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
	due, err := dueMessages(ctx, tx, c.run, ids)
	for _, d := range due {
		d.reason = reasonCopied
		c.joins[d.identity] = d
	}
	return err
}

func (c *chunk) loadThreads(ctx context.Context, tx pgx.Tx) error {
	p := &dbsqlc.TriageMessagesRelatedParams{TenantID: c.tenant(), AccountID: c.account.ID, Named: []string{}, HeaderIds: []string{}, Subjects: []string{}}
	for _, m := range c.mails {
		p.Named = append(p.Named, m.named...)
		if m.header != "" {
			p.HeaderIds = append(p.HeaderIds, m.header)
		}
		if subject := threadSubject(m.message.Subject); subject != "" && len(m.named) == 0 && !slices.Contains(p.Subjects, subject) {
			p.Subjects = append(p.Subjects, subject)
		}
	}
	rows, err := dbsqlc.New().TriageMessagesRelated(ctx, tx, p)
	c.threads = newThreads()
	of := map[uuid.UUID]bool{}
	for _, due := range c.again {
		of[due.thread] = true
	}
	for _, r := range rows {
		of[r.ThreadID] = true
		c.threads.put(&related{
			header: r.HeaderID, subject: r.ThreadSubject, sender: r.Sender, participants: r.Participants, thread: r.ThreadID,
			outgoing: r.Outgoing, received: r.ReceivedAt, bucket: decide.Bucket(r.Bucket),
		}, r.Refs)
	}
	if err != nil || len(of) == 0 {
		return err
	}
	return c.loadFollowUps(ctx, tx, slices.Collect(maps.Keys(of)))
}

// loadFollowUps reads what the owner waits for in threads.
func (c *chunk) loadFollowUps(ctx context.Context, tx pgx.Tx, of []uuid.UUID) error {
	rows, err := dbsqlc.New().TriageFollowUps(ctx, tx, &dbsqlc.TriageFollowUpsParams{TenantID: c.tenant(), ThreadIds: of})
	for _, r := range rows {
		if r.AskedAt.Unix() > 0 {
			c.threads.asked[r.ThreadID] = r.AskedAt
		}
		if r.AnsweredAt.Unix() > 0 {
			c.threads.written[r.ThreadID] = r.AnsweredAt
		}
	}
	return err
}

func (c *chunk) loadSenders(ctx context.Context, tx pgx.Tx) error {
	addresses := []string{}
	for _, m := range c.mails {
		addresses = append(addresses, participants(m.message)...)
		if id := list(m.message); id != "" {
			addresses = append(addresses, listAddress(id))
		}
	}
	rows, err := dbsqlc.New().TriageSenders(ctx, tx, &dbsqlc.TriageSendersParams{TenantID: c.tenant(), AccountID: c.account.ID, Addresses: addresses})
	c.senders = newSenders()
	for _, r := range rows {
		c.senders.known[r.Address] = signal.Sender{
			FirstSeen: r.FirstSeen, LastSeen: r.LastSeen, Received: int(r.Received), Sent: int(r.Sent), Replied: int(r.Replied),
			Accepted: int(r.Accepted), Corrected: int(r.Refused) + c.corrected[r.Address],
		}
	}
	return err
}
