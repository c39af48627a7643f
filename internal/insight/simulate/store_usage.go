package simulate

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Usage counts the actions since a time by the rules about arguments that
// applied to them and by the grants that allowed them, from the stored
// decisions. It examines the latest most actions.
func Usage(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, since time.Time, most int) (wire.PolicyUsage, error) {
	u := wire.PolicyUsage{Rules: []wire.Usage{}, Grants: []wire.Usage{}}
	rows, err := dbsqlc.New().PolicyUsage(ctx, tx, &dbsqlc.PolicyUsageParams{
		TenantID: tenant, Floor: idAt(since.Add(-idSkew)), Since: since, Most: int64(most),
	})
	for _, r := range rows {
		used := wire.Usage{ID: r.ID, Count: int(r.Actions), LastAt: r.LastAt.UTC()}
		switch r.Layer {
		case policy.LayerArguments:
			u.Rules = append(u.Rules, used)
		case policy.LayerGrant:
			u.Grants = append(u.Grants, used)
		default:
			u.Examined, u.Since, u.Complete = used.Count, since.UTC(), used.Count < most
			if !u.Complete {
				u.Since = used.LastAt
			}
		}
	}
	return u, err
}
