package approval

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func inboxApprovals(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after envelope.ActionID, most int) ([]InboxItem, error) {
	rows, err := dbsqlc.New().InboxApprovals(ctx, tx, &dbsqlc.InboxApprovalsParams{TenantID: uuid.UUID(tenant), After: uuid.UUID(after), Most: int64(most)})
	if err != nil {
		return nil, err
	}
	items := make([]InboxItem, len(rows))
	for i, r := range rows {
		items[i] = InboxItem{
			Kind: InboxApproval, Action: envelope.ActionID(r.ActionID), Tool: policy.Key{Source: r.SourceID, Action: r.ToolName},
			Args: r.Args, Risk: envelope.Risk(r.Risk), Session: text(r.SessionID), Automation: text(r.AutomationID), Employee: employee(r.EmployeeID),
			Since: r.CreatedAt, ExpiresAt: r.ExpiresAt, Needed: int(r.Needed), Given: int(r.Given), ApprovedBy: r.Voters, EditedBy: text(r.EditedBy),
			Escalated: r.EscalatedAt != nil, Policy: r.ModeSource, Note: text(r.DecisionNote),
			ETag: etag(r.Args, r.ToolDigest, r.DecisionID, int(r.Round)), toolDigest: r.ToolDigest,
		}
	}
	return items, nil
}

func inboxUnknown(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after envelope.ActionID, most int) ([]InboxItem, error) {
	rows, err := dbsqlc.New().InboxUnknown(ctx, tx, &dbsqlc.InboxUnknownParams{TenantID: uuid.UUID(tenant), After: uuid.UUID(after), Most: int64(most)})
	if err != nil {
		return nil, err
	}
	items := make([]InboxItem, len(rows))
	for i, r := range rows {
		items[i] = InboxItem{
			Kind: InboxUnknown, Action: envelope.ActionID(r.ActionID), Tool: policy.Key{Source: r.SourceID, Action: r.ToolName},
			Args: r.Args, Risk: envelope.Risk(r.Risk), Session: text(r.SessionID), Automation: text(r.AutomationID), Employee: employee(r.EmployeeID),
			Since: r.LostAt, Code: text(r.Code), Message: text(r.Message),
		}
	}
	return items, nil
}

func inboxCompensations(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after envelope.ActionID, most int) ([]InboxItem, error) {
	rows, err := dbsqlc.New().WorkflowInbox(ctx, tx, &dbsqlc.WorkflowInboxParams{TenantID: uuid.UUID(tenant), After: uuid.UUID(after), Most: int64(most)})
	if err != nil {
		return nil, err
	}
	items := make([]InboxItem, len(rows))
	for i, r := range rows {
		items[i] = InboxItem{
			Kind: InboxCompensation, Action: envelope.ActionID(r.ActionID), Tool: policy.Key{Source: r.SourceID, Action: r.ToolName},
			Args: r.Args, Risk: envelope.Risk(r.Risk), Session: text(r.SessionID), Automation: text(r.AutomationID), Employee: employee(r.EmployeeID),
			Since: r.UpdatedAt, Code: text(r.Code), Message: text(r.Message), Workflow: r.WorkflowID,
		}
	}
	return items, nil
}

func employee(id *uuid.UUID) envelope.EmployeeID {
	if id == nil {
		return envelope.EmployeeID{}
	}
	return envelope.EmployeeID(*id)
}
