package preview

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// PageRows is the number of rows that Page returns at most.
const PageRows = 500

// Place is a position in the mail of an account, newest first. The zero value is
// its beginning.
type Place struct {
	Received time.Time
	Message  uuid.UUID
}

// After returns the place behind a row.
func (r Row) After() Place { return Place{Received: r.Received, Message: r.Message} }

// Page returns the stored decisions about messages that an account received since
// a time, newest first.
func Page(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, since time.Time, before Place) ([]Row, error) {
	rows, err := dbsqlc.New().TriagePreviewList(ctx, tx, &dbsqlc.TriagePreviewListParams{
		TenantID: tenant, AccountID: account, Since: since, BeforeAt: postgres.OrNull(before.Received), BeforeID: postgres.OrNull(before.Message), Most: PageRows,
	})
	return postgres.TryMap(rows, err, func(r dbsqlc.TriagePreviewListRow) (Row, error) {
		row := Row{Message: r.MessageID, Received: r.ReceivedAt, Copies: int(r.Copies), Sender: r.Sender, SenderName: r.SenderName, Subject: r.Subject}
		return row, row.decode(r.Decision, r.Signals, r.Prediction, r.Answers, r.Facts)
	})
}
