package approval

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func inboxApprovals(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after envelope.ActionID, most int) ([]InboxItem, error) {
	rows, err := dbsqlc.New().InboxApprovals(ctx, tx, &dbsqlc.InboxApprovalsParams{TenantID: uuid.UUID(tenant), After: uuid.UUID(after), Most: int64(most)})
	return postgres.Map(rows, err, func(r dbsqlc.InboxApprovalsRow) InboxItem {
		return InboxItem{
			Kind: InboxApproval, Action: envelope.ActionID(r.ActionID), Tool: policy.Key{Source: r.SourceID, Action: r.ToolName},
			Args: r.Args, Risk: envelope.Risk(r.Risk), Session: postgres.OrZero(r.SessionID), Automation: postgres.OrZero(r.AutomationID), Employee: envelope.EmployeeID(postgres.OrZero(r.EmployeeID)),
			Since: r.CreatedAt, ExpiresAt: r.ExpiresAt, Needed: int(r.Needed), Given: int(r.Given), ApprovedBy: r.Voters, EditedBy: postgres.OrZero(r.EditedBy),
			Escalated: r.EscalatedAt != nil, Policy: r.ModeSource, Note: postgres.OrZero(r.DecisionNote),
			ETag: etag(r.Args, r.ToolDigest, r.DecisionID, int(r.Round)), toolDigest: r.ToolDigest,
		}
	})
}

func inboxUnknown(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after envelope.ActionID, most int) ([]InboxItem, error) {
	rows, err := dbsqlc.New().InboxUnknown(ctx, tx, &dbsqlc.InboxUnknownParams{TenantID: uuid.UUID(tenant), After: uuid.UUID(after), Most: int64(most)})
	return postgres.Map(rows, err, func(r dbsqlc.InboxUnknownRow) InboxItem {
		return InboxItem{
			Kind: InboxUnknown, Action: envelope.ActionID(r.ActionID), Tool: policy.Key{Source: r.SourceID, Action: r.ToolName},
			Args: r.Args, Risk: envelope.Risk(r.Risk), Session: postgres.OrZero(r.SessionID), Automation: postgres.OrZero(r.AutomationID), Employee: envelope.EmployeeID(postgres.OrZero(r.EmployeeID)),
			Since: r.LostAt, Code: postgres.OrZero(r.Code), Message: postgres.OrZero(r.Message),
		}
	})
}

func inboxCompensations(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after envelope.ActionID, most int) ([]InboxItem, error) {
	rows, err := dbsqlc.New().WorkflowInbox(ctx, tx, &dbsqlc.WorkflowInboxParams{TenantID: uuid.UUID(tenant), After: uuid.UUID(after), Most: int64(most)})
	return postgres.Map(rows, err, func(r dbsqlc.WorkflowInboxRow) InboxItem {
		return InboxItem{
			Kind: InboxCompensation, Action: envelope.ActionID(r.ActionID), Tool: policy.Key{Source: r.SourceID, Action: r.ToolName},
			Args: r.Args, Risk: envelope.Risk(r.Risk), Session: postgres.OrZero(r.SessionID), Automation: postgres.OrZero(r.AutomationID), Employee: envelope.EmployeeID(postgres.OrZero(r.EmployeeID)),
			Since: r.UpdatedAt, Code: postgres.OrZero(r.Code), Message: postgres.OrZero(r.Message), Workflow: r.WorkflowID,
		}
	})
}
