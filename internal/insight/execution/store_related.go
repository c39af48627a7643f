package execution

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// maxRelated bounds the executions per relation.
	maxRelated = 50
	// turnDigits is the number of digits at the end of external ids that the MCP
	// server generates: the number of a repeat of the call.
	turnDigits = 12
)

// RelatedTo returns the related executions: the steps of the same workflow, the
// reversal or the reversed execution, resends, repeats of the same call, and its dry
// runs. Every query uses an index.
func RelatedTo(ctx context.Context, tx pgx.Tx, e *wire.Execution) ([]wire.Relation, error) {
	if e.Status == wire.ExecutionDryRun {
		return []wire.Relation{}, nil
	}
	q := dbsqlc.New()
	all := []wire.Relation{}
	add := func(id envelope.ActionID, r wire.Relation) {
		if r.ID = id; r.ID != e.ID {
			all = append(all, r)
		}
	}
	if e.WorkflowID != nil {
		steps, err := q.ExecutionOfBatch(ctx, tx, &dbsqlc.ExecutionOfBatchParams{TenantID: e.Tenant, WorkflowID: e.WorkflowID, Most: maxRelated})
		if err != nil {
			return nil, fmt.Errorf("batch of execution %s: %w", e.ID, err)
		}
		for _, s := range steps {
			add(s.ActionID, wire.Relation{Relation: "workflow", Tool: toolOf(s.SourceID, s.ToolName), ExternalID: s.ExternalID, ProposedAt: s.CreatedAt.UTC()})
		}
	}
	named, err := q.ExecutionPerExternalID(ctx, tx, namesOf(e))
	if err != nil {
		return nil, fmt.Errorf("names beside execution %s: %w", e.ID, err)
	}
	for _, s := range named {
		add(s.ActionID, wire.Relation{
			Relation: relationOf(e, s.ActionID, s.ExternalID), Tool: toolOf(s.SourceID, s.ToolName), ExternalID: s.ExternalID, ProposedAt: s.CreatedAt.UTC(),
		})
	}
	digest, err := q.ExecutionContentDigest(ctx, tx, &dbsqlc.ExecutionContentDigestParams{TenantID: e.Tenant, ActionID: e.ID})
	if err != nil {
		return nil, fmt.Errorf("content of execution %s: %w", e.ID, err)
	}
	dryRuns, err := q.DryRunPerDigest(ctx, tx, &dbsqlc.DryRunPerDigestParams{TenantID: e.Tenant, ContentDigest: digest, Most: maxRelated})
	if err != nil {
		return nil, fmt.Errorf("dry runs of execution %s: %w", e.ID, err)
	}
	for _, d := range dryRuns {
		add(d.ExecutionID, wire.Relation{Relation: "dry_run", Tool: toolOf(d.SourceID, d.ToolName), ProposedAt: d.At.UTC()})
	}
	return all, nil
}

// namesOf returns the query parameters for related actions, by external id or
// action id.
func namesOf(e *wire.Execution) *dbsqlc.ExecutionPerExternalIDParams {
	first, last := reversal.Names(e.ID)
	p := &dbsqlc.ExecutionPerExternalIDParams{TenantID: e.Tenant, Firsts: []string{first}, Lasts: []string{last}, Most: maxRelated}
	if reverted := reversal.Reverts(e.ExternalID); reverted != nil {
		p.ActionIds = []uuid.UUID{uuid.UUID(*reverted)}
	}
	if base, ok := settings.ResendNames(e.Automation, e.ID); ok {
		p.Firsts, p.Lasts = append(p.Firsts, base+strings.Repeat("0", turnDigits)), append(p.Lasts, base+strings.Repeat("9", turnDigits))
	}
	if r, ok := settings.RepeatOf(e.Automation, e.ExternalID); ok {
		p.ActionIds = append(p.ActionIds, uuid.UUID(r.Of))
	}
	if call, ok := callOf(e.ExternalID); ok {
		p.Firsts, p.Lasts = append(p.Firsts, call+strings.Repeat("0", turnDigits)), append(p.Lasts, call+strings.Repeat("9", turnDigits))
	}
	return p
}

// relationOf returns the relation of an action that namesOf selected.
func relationOf(e *wire.Execution, id envelope.ActionID, external string) string {
	if reverted := reversal.Reverts(external); reverted != nil && *reverted == e.ID {
		return "reversal"
	}
	if reverted := reversal.Reverts(e.ExternalID); reverted != nil && *reverted == id {
		return "reverses"
	}
	if r, ok := settings.RepeatOf(e.Automation, external); ok && r.Of == e.ID {
		return "resend"
	}
	if r, ok := settings.RepeatOf(e.Automation, e.ExternalID); ok && r.Of == id {
		return "resends"
	}
	return "repeat"
}

// callOf returns the common prefix of the external ids of a call's repeats.
func callOf(name string) (call string, ok bool) {
	if !strings.HasPrefix(name, "mcp") || len(name) <= turnDigits {
		return "", false
	}
	call, turn := name[:len(name)-turnDigits], name[len(name)-turnDigits:]
	return call, strings.Trim(turn, "0123456789") == ""
}
