package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// SnapshotRules returns what is set for a tenant's tools, those among them that their
// sources do not list at present.
func SnapshotRules(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (map[policy.Key]SnapshotRule, error) {
	rows, err := dbsqlc.New().SnapshotRuleList(ctx, tx, uuid.UUID(tenant))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	reads := make(map[policy.Key]SnapshotRule, len(rows))
	for _, r := range rows {
		key := policy.Key{Source: r.SourceID, Action: r.ToolName}
		var read SnapshotRule
		if err := json.Unmarshal(r.Rule, &read); err != nil {
			return nil, fmt.Errorf("snapshot rule of %s: %w", key, err)
		}
		reads[key] = read
	}
	return reads, nil
}

// PutSnapshotRule sets the read that belongs to a tool, or removes it if that is
// nil. It does not check it: package action/snapshot does.
func PutSnapshotRule(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, key policy.Key, read *SnapshotRule) error {
	q := dbsqlc.New()
	if read == nil {
		n, err := q.SnapshotRuleDelete(ctx, tx, &dbsqlc.SnapshotRuleDeleteParams{TenantID: uuid.UUID(tenant), SourceID: key.Source, ToolName: key.Action})
		return postgres.Affected(n, err, fault.New(fault.NotFound, "no snapshots are set for %s", key))
	}
	rule, err := json.Marshal(read)
	if err != nil {
		return fmt.Errorf("encode snapshot rule of %s: %w", key, err)
	}
	return violations.Fault(q.SnapshotRulePut(ctx, tx, &dbsqlc.SnapshotRulePutParams{TenantID: uuid.UUID(tenant), SourceID: key.Source, ToolName: key.Action, Rule: rule}))
}
