package intake

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// maxOccurrence bounds the occurrences of one call.
const maxOccurrence = 999_999_999_999

// occurrenceText returns an occurrence in twelve digits, so that external ids
// sort by it.
func occurrenceText(n int64) string { return fmt.Sprintf("%012d", n) }

// lastTurns returns the last action of each Base.
type lastTurns func() ([]dbsqlc.ActionLastTurnRow, error)

// lastTurnsAhead sends the query for lastTurns along with the next one; nil if no
// submission has a Base.
func lastTurnsAhead(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, all []*submission) lastTurns {
	p := &dbsqlc.ActionLastTurnParams{TenantID: tenant, First: occurrenceText(0), Last: occurrenceText(maxOccurrence)}
	for _, s := range all {
		if s.by.Base != "" {
			p.Bases = append(p.Bases, s.by.Base)
		}
	}
	if len(p.Bases) == 0 {
		return nil
	}
	later := postgres.Ahead(tx)
	read := func() ([]dbsqlc.ActionLastTurnRow, error) { return dbsqlc.New().ActionLastTurn(ctx, later, p) }
	_, _ = read() // postgres.ErrLater
	return read
}

// nameOccurrences sets the external ids of the submissions that have a Base,
// and reports whether an id changed. The same call of the same agent has the
// same id until its action ends, so that repeats become that action on any
// replica; the unique index on external ids decides among concurrent calls.
// After the end the next occurrence begins. An action with an unknown outcome
// has not ended: a repeat could double its effect.
func nameOccurrences(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, all []*submission, last lastTurns) (changed bool, err error) {
	if last == nil {
		return false, nil
	}
	rows, err := last()
	if err != nil {
		return false, err
	}
	latest, err := latestOccurrences(ctx, tx, tenant, rows)
	if err != nil {
		return false, err
	}
	for _, s := range all {
		if s.by.Base == "" {
			continue
		}
		external, err := nextOccurrence(s.by.Base, latest[s.by.Base])
		if err != nil {
			return false, err
		}
		p := s.proposals[0]
		changed = changed || p.ExternalID != external
		p.ExternalID = external
	}
	return changed, nil
}

// occurrence is an action of a base, with its status.
type occurrence struct {
	externalID string
	status     envelope.Status
}

// latestOccurrences returns the occurrences in rows by base, with their statuses.
func latestOccurrences(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, rows []dbsqlc.ActionLastTurnRow) (map[string]occurrence, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = uuid.UUID(r.ActionID)
	}
	found, err := dbsqlc.New().EnvelopeStatusPerID(ctx, tx, &dbsqlc.EnvelopeStatusPerIDParams{TenantID: tenant, ActionIds: ids})
	if err != nil {
		return nil, err
	}
	statuses := make(map[envelope.ActionID]envelope.Status, len(found))
	for _, f := range found {
		statuses[f.ActionID] = envelope.Status(f.Status)
	}
	last := make(map[string]occurrence, len(rows))
	for _, r := range rows {
		last[r.Base] = occurrence{r.ExternalID, statuses[r.ActionID]}
	}
	return last, nil
}

// nextOccurrence returns the external id of the occurrence after last, the latest
// one of its base; last has no external id if there is none.
func nextOccurrence(base string, last occurrence) (string, error) {
	switch {
	case last.externalID == "":
		return base + occurrenceText(1), nil
	case last.status != "" && !envelope.Terminal(last.status):
		return last.externalID, nil
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(last.externalID, base), 10, 64)
	if err != nil || n >= maxOccurrence {
		return "", fault.New(fault.Conflict, "the call is identical to another one; give it its own external_id")
	}
	return base + occurrenceText(n+1), nil
}
