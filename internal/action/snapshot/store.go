package snapshot

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// maxSnapshots bounds the snapshots that are shown of one action.
const maxSnapshots = 100

// Insert stores a snapshot of a call.
func Insert(ctx context.Context, tx pgx.Tx, call outbox.Lease, s Snapshot) error {
	err := dbsqlc.New().SnapshotInsert(ctx, tx, &dbsqlc.SnapshotInsertParams{
		TenantID: uuid.UUID(call.Tenant), ActionID: uuid.UUID(call.Action), Attempt: int32(s.Attempt), // attempts are bounded by the retry rule
		Stage: string(s.Stage), ToolName: s.Tool, Code: s.Code, Result: s.Result,
	})
	if err != nil {
		return fmt.Errorf("snapshot of %s: %w", call.Action, err)
	}
	return nil
}

// List returns what was seen around an action's calls, oldest first.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID) ([]Snapshot, error) {
	rows, err := dbsqlc.New().SnapshotList(ctx, tx, &dbsqlc.SnapshotListParams{TenantID: uuid.UUID(tenant), ActionID: uuid.UUID(action), Most: maxSnapshots})
	if err != nil {
		return nil, fmt.Errorf("snapshots of %s: %w", action, err)
	}
	return postgres.Map(rows, nil, func(r dbsqlc.SnapshotListRow) Snapshot {
		return Snapshot{
			Attempt: int(r.Attempt), Stage: Stage(r.Stage), At: r.At.UTC(), Tool: r.ToolName, Code: r.Code, Result: json.RawMessage(r.Result),
		}
	})
}
