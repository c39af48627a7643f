package followup

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Query selects the follow-ups of an account.
type Query struct {
	Tenant  envelope.TenantID
	Account uuid.UUID
	// Name is the account's name, and Own are its owner's addresses.
	Name string
	Own  []string
	Zone *time.Location
	Now  time.Time
	// ArchivingCloses closes a follow-up whose message left the inbox.
	ArchivingCloses bool
	// Closed includes those that a person closed or put off, unless they are answered.
	Closed bool
}

// List returns the follow-ups of an account by due date, those without one last.
func List(ctx context.Context, tx pgx.Tx, q Query) ([]wire.TriageFollowUp, error) {
	rows, err := dbsqlc.New().TriageFollowUpList(ctx, tx, &dbsqlc.TriageFollowUpListParams{
		TenantID: q.Tenant, AccountID: q.Account, Since: q.Now.Add(-Age), At: q.Now, Closed: q.Closed, ArchivingCloses: q.ArchivingCloses, Most: maxListed,
	})
	all, err := postgres.Map(rows, err, func(r dbsqlc.TriageFollowUpListRow) wire.TriageFollowUp {
		f := wire.TriageFollowUp{
			MessageID: r.MessageID, ThreadID: r.ThreadID, Account: q.Name, OwedBy: r.OwedBy, Because: r.Because, With: r.Sender, WithName: r.SenderName,
			Subject: r.Subject, Since: r.ReceivedAt.UTC(), LaterUntil: postgres.UTC(r.LaterUntil), DoneAt: postgres.UTC(r.DoneAt),
		}
		if r.Outgoing {
			f.With, f.WithName = with(r.Participants, q.Own), ""
		}
		var sent time.Time
		if r.SentAt != nil && r.SentOffset != nil {
			sent = r.SentAt.In(time.FixedZone("", int(*r.SentOffset)))
		}
		Dated(&f, r.Body, sent, r.ReceivedAt, q.Zone)
		return f
	})
	sortByDue(all)
	return all, err
}

// Change closes the follow-up that rests on a message, opens it again, or puts it off.
func Change(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, message uuid.UUID, c wire.TriageFollowUpChange, by envelope.Actor, now time.Time) error {
	if (c.Done == nil) == (c.LaterUntil == nil) {
		return fault.New(fault.Invalid, "a change of a follow-up is either done or later_until")
	}
	if c.LaterUntil != nil && (!c.LaterUntil.After(now) || c.LaterUntil.Sub(now) > 366*24*time.Hour) {
		return fault.New(fault.Invalid, "later_until must be in the next 366 days")
	}
	n, err := dbsqlc.New().TriageFollowUpPut(ctx, tx, &dbsqlc.TriageFollowUpPutParams{
		TenantID: tenant, MessageID: message, Done: c.Done != nil && *c.Done, LaterUntil: c.LaterUntil, SetBy: string(by),
	})
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "no message %s", message)
	}
	return err
}
