package inspect

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/extract"
	"github.com/countersign-dev/countersign/internal/triage/span"
)

// findings returns the findings in a message, with its one-time code, which is read
// from the stored text and holds for a while.
func findings(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, m wire.TriageMessageDetail, signals []byte) ([]wire.TriageFinding, error) {
	rows, err := dbsqlc.New().TriageFindingList(ctx, tx, &dbsqlc.TriageFindingListParams{TenantID: tenant, MessageID: m.ID})
	all, err := postgres.TryMap(rows, err, func(r dbsqlc.TriageFindingListRow) (wire.TriageFinding, error) {
		var fields []extract.Field
		err := json.Unmarshal(r.Fields, &fields)
		return wire.TriageFinding{Kind: r.Kind, StartsAt: postgres.UTC(r.StartsAt), EndsAt: postgres.UTC(r.EndsAt), Cancelled: r.Cancelled, Fields: wireFields(fields)}, err
	})
	if code, ok := codeOf(m, signals); ok {
		all = append(all, code)
	}
	return append([]wire.TriageFinding{}, all...), err
}

// codeOf returns the one-time code in a received message while it holds.
func codeOf(m wire.TriageMessageDetail, signals []byte) (wire.TriageFinding, bool) {
	code, ok := oneTimeCode(m.TriageMessage, m.Body, signals)
	if !ok || code.Ends.Before(time.Now()) {
		return wire.TriageFinding{}, false
	}
	return wire.TriageFinding{Kind: string(code.Kind), StartsAt: utc(code.At), EndsAt: utc(code.Ends), Fields: wireFields(code.Fields)}, true
}

// oneTimeCode returns the one-time code in a received message. A suspicious message, and
// one flagged as phishing, has none.
func oneTimeCode(m wire.TriageMessage, body string, signals []byte) (extract.Finding, bool) {
	var found struct{ Phishing, Suspicious bool }
	if m.Outgoing || m.DecidedAt == nil || json.Unmarshal(signals, &found) != nil || found.Phishing || found.Suspicious {
		return extract.Finding{}, false
	}
	return extract.OneTimeCode(m.Sender, m.Subject, body, m.ReceivedAt)
}

// addCodes adds the ends of their one-time codes to messages, without the codes.
func addCodes(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, messages []wire.TriageMessage) error {
	at := make(map[uuid.UUID]int, len(messages))
	for i, m := range messages {
		at[m.ID] = i
	}
	rows, err := dbsqlc.New().TriageCodeTexts(ctx, tx, &dbsqlc.TriageCodeTextsParams{TenantID: tenant, MessageIds: slices.Collect(maps.Keys(at))})
	for _, r := range rows {
		m := &messages[at[r.MessageID]]
		if code, ok := oneTimeCode(*m, r.Body, r.Signals); ok {
			m.CodeEndsAt = utc(code.Ends)
		}
	}
	return err
}

func utc(t time.Time) *time.Time { return new(t.UTC()) }

func wireFields(fields []extract.Field) []wire.TriageFindingField {
	all := make([]wire.TriageFindingField, len(fields))
	for i, f := range fields {
		all[i] = wire.TriageFindingField{Name: f.Name, Value: f.Value, Part: string(f.Part)}
		if f.Span != (span.Span{}) {
			all[i].Span = &wire.TriageSpan{From: f.Span.From, To: f.Span.To}
		}
	}
	return all
}
