package settings

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// PutReview sets how people look at what a pattern covers, from a risk on.
func PutReview(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, r ReviewRule, by string) error {
	if err := r.check(); err != nil {
		return err
	}
	return violations.Fault(dbsqlc.New().ReviewUpsert(ctx, tx, &dbsqlc.ReviewUpsertParams{
		TenantID: uuid.UUID(tenant), Key: r.Pattern, Risk: string(r.Risk), ApprovalsNeeded: int32(r.Approvals),
		WaitSeconds: inSeconds(r.Wait), WarnSeconds: inSeconds(r.Warn), EscalateSeconds: inSeconds(r.Escalate), UpdatedBy: by,
	}))
}

// DeleteReview removes what PutReview set.
func DeleteReview(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, pattern string, risk envelope.Risk) error {
	n, err := dbsqlc.New().ReviewDelete(ctx, tx, &dbsqlc.ReviewDeleteParams{TenantID: uuid.UUID(tenant), Key: pattern, Risk: string(risk)})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "no review is set for %s from the risk %s on", pattern, risk))
}

// Reviews returns every review rule of a tenant, in order of pattern and risk.
func Reviews(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]ReviewRule, error) {
	rows, err := dbsqlc.New().ReviewList(ctx, tx, uuid.UUID(tenant))
	return postgres.Map(rows, err, func(r dbsqlc.ReviewListRow) ReviewRule {
		return ReviewRule{
			Pattern: r.Key, Risk: envelope.Risk(r.Risk), Approvals: int(r.ApprovalsNeeded),
			Wait: ofSeconds(r.WaitSeconds), Warn: ofSeconds(r.WarnSeconds), Escalate: ofSeconds(r.EscalateSeconds),
			LastChange: LastChange{UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: r.UpdatedBy},
		}
	})
}

func inSeconds(d *envelope.Duration) *int32 {
	if d == nil {
		return nil
	}
	return new(int32(d.Seconds()))
}

func ofSeconds(n *int32) *envelope.Duration {
	if n == nil {
		return nil
	}
	return new(envelope.Duration(time.Duration(*n) * time.Second))
}
