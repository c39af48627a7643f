package execution

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

const (
	// maxRelated bounds the executions of each relation.
	maxRelated = 50
	// turnDigits is how many digits end the names of calls that an agent made
	// without naming them: they count its repeats.
	turnDigits = 12
	// reverse ends the name of an action that undoes the one whose name stands
	// before it.
	reverse = ":reverse"
)

// RelatedTo returns what an execution belongs with: the steps of its batch,
// what undoes it or is undone by it, the same call made other times, and its
// dry runs. Each look is at an index.
func RelatedTo(ctx context.Context, tx pgx.Tx, e *Execution) ([]Related, error) {
	if e.Status == StatusDryRun {
		return nil, nil
	}
	q, tenant := dbsqlc.New(), uuid.UUID(e.Tenant)
	var all []Related
	add := func(id uuid.UUID, r Related) {
		if r.ID = envelope.ActionID(id); r.ID != e.ID {
			all = append(all, r)
		}
	}
	if e.Workflow != nil {
		steps, err := q.ExecutionOfBatch(ctx, tx, &dbsqlc.ExecutionOfBatchParams{TenantID: tenant, WorkflowID: e.Workflow, Most: maxRelated})
		if err != nil {
			return nil, fmt.Errorf("batch of execution %s: %w", e.ID, err)
		}
		for _, s := range steps {
			add(s.ActionID, Related{Relation: RelationWorkflow, Tool: policy.Key{Source: s.SourceID, Action: s.ToolName}, ExternalID: s.ExternalID, ProposedAt: s.CreatedAt.UTC()})
		}
	}
	if e.ExternalID != "" {
		named, err := q.ExecutionPerExternalID(ctx, tx, namesOf(tenant, e.ExternalID))
		if err != nil {
			return nil, fmt.Errorf("names beside execution %s: %w", e.ID, err)
		}
		for _, s := range named {
			add(s.ActionID, Related{
				Relation: relationOf(e.ExternalID, s.ExternalID), Tool: policy.Key{Source: s.SourceID, Action: s.ToolName}, ExternalID: s.ExternalID, ProposedAt: s.CreatedAt.UTC(),
			})
		}
	}
	digest, err := q.ExecutionContentDigest(ctx, tx, &dbsqlc.ExecutionContentDigestParams{TenantID: tenant, ActionID: uuid.UUID(e.ID)})
	if err != nil {
		return nil, fmt.Errorf("content of execution %s: %w", e.ID, err)
	}
	dryRuns, err := q.DryRunPerDigest(ctx, tx, &dbsqlc.DryRunPerDigestParams{TenantID: tenant, ContentDigest: digest, Most: maxRelated})
	if err != nil {
		return nil, fmt.Errorf("dry runs of execution %s: %w", e.ID, err)
	}
	for _, d := range dryRuns {
		add(d.ExecutionID, Related{Relation: RelationDryRun, Tool: policy.Key{Source: d.SourceID, Action: d.ToolName}, ProposedAt: d.At.UTC()})
	}
	return all, nil
}

// namesOf are the names that tell of a relation with a name.
func namesOf(tenant uuid.UUID, name string) *dbsqlc.ExecutionPerExternalIDParams {
	p := &dbsqlc.ExecutionPerExternalIDParams{TenantID: tenant, ExternalIds: []string{name + reverse}, Most: maxRelated}
	if undone, ok := strings.CutSuffix(name, reverse); ok {
		p.ExternalIds = []string{undone}
	}
	if call, ok := callOf(name); ok {
		p.First, p.Last = call+strings.Repeat("0", turnDigits), call+strings.Repeat("9", turnDigits)
	}
	return p
}

// relationOf is how an action of another name belongs to one of a name.
func relationOf(name, other string) Relation {
	switch {
	case other == name+reverse:
		return RelationReversal
	case name == other+reverse:
		return RelationReverses
	}
	return RelationRepeat
}

// callOf is what the names of one call's repeats have in common.
func callOf(name string) (call string, ok bool) {
	if !strings.HasPrefix(name, "mcp") || len(name) <= turnDigits {
		return "", false
	}
	call, turn := name[:len(name)-turnDigits], name[len(name)-turnDigits:]
	return call, strings.Trim(turn, "0123456789") == ""
}
