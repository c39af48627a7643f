package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Sources returns a tenant's sources in order of id, as they are stored now.
func Sources(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]Source, error) {
	rows, err := dbsqlc.New().SourceList(ctx, tx, uuid.UUID(tenant))
	return postgres.Map(rows, err, sourceFromRow)
}

func sourceFromRow(r dbsqlc.SourceListRow) Source {
	return Source{
		ID: r.SourceID, Kind: r.Kind, Config: r.Config, Secret: r.Secret, Enabled: r.Enabled,
		DefaultRisk: policy.ToolRisk(postgres.OrZero(r.DefaultRisk)), ListError: postgres.OrZero(r.ListError), ListedAt: r.ListedAt,
		DriftGuard: DriftGuard(r.DriftGuard), Quarantine: r.Quarantine, LeftOut: int(r.LeftOut),
	}
}

// PutSource makes or changes a source. Its secret must be encrypted.
func PutSource(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, src Source) error {
	p := &dbsqlc.SourceUpsertParams{
		TenantID: uuid.UUID(tenant), SourceID: src.ID, Kind: src.Kind, Config: src.Config, Secret: src.Secret, Enabled: src.Enabled,
		DriftGuard: string(cmp.Or(src.DriftGuard, GuardFull)), Quarantine: src.Quarantine, DefaultRisk: postgres.OrNull(string(src.DefaultRisk)),
	}
	if len(p.Config) == 0 {
		p.Config = json.RawMessage("{}")
	}
	return violations.Fault(dbsqlc.New().SourceUpsert(ctx, tx, p))
}

// DeleteSource removes a source and its tools. Envelopes that name them stay.
func DeleteSource(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id string) error {
	n, err := dbsqlc.New().SourceDelete(ctx, tx, &dbsqlc.SourceDeleteParams{TenantID: uuid.UUID(tenant), SourceID: id})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "no source %s", id))
}

// AskRefresh has the fleet list a source soon, whatever its last listing's
// age. It is done when the source was listed later than the time that it
// returns. A source that is not there, or switched off, is fault.NotFound.
func AskRefresh(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id string) (time.Time, error) {
	asked, err := dbsqlc.New().SourceRefreshAsk(ctx, tx, &dbsqlc.SourceRefreshAskParams{TenantID: uuid.UUID(tenant), SourceID: id})
	return asked, postgres.Found(err, fault.New(fault.NotFound, "no source %s that is switched on", id))
}

// Stale returns sources of any tenant, those first that somebody wants listed,
// then the longest not listed.
func Stale(ctx context.Context, tx pgx.Tx, maxAge float64, most int) ([]StaleSource, error) {
	rows, err := dbsqlc.New().SourceStale(ctx, tx, &dbsqlc.SourceStaleParams{MaxAgeSeconds: maxAge, Most: int64(most)})
	return postgres.Map(rows, err, func(r dbsqlc.SourceStaleRow) StaleSource {
		return StaleSource{envelope.TenantID(r.TenantID), r.SourceID}
	})
}

// StaleSource is a source whose tools should be listed again.
type StaleSource struct {
	Tenant envelope.TenantID
	ID     string
}
