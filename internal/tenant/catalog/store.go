package catalog

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// State is what a claim needs to know of a tenant before anything else.
type State struct {
	// Version is that of its catalog, policy and limits.
	Version int64
	// Ailing says that a source of it may have to be left alone.
	Ailing bool
	// Now is the database's clock, as of the transaction's start.
	Now time.Time
}

// States returns the current state of each tenant that exists.
func States(ctx context.Context, tx pgx.Tx, tenants []envelope.TenantID) (map[envelope.TenantID]State, error) {
	ids := make([]uuid.UUID, len(tenants))
	for i, t := range tenants {
		ids[i] = uuid.UUID(t)
	}
	rows, err := dbsqlc.New().TenantVersions(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	states := make(map[envelope.TenantID]State, len(rows))
	for _, r := range rows {
		states[envelope.TenantID(r.TenantID)] = State{r.ConfigVersion, r.Ailing, r.Now}
	}
	return states, nil
}

// load reads a tenant's whole catalog. The version is read first: if
// something changes in between, the snapshot is newer than it says, and is
// only read again too often.
func load(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, language func() (*policy.Language, error)) (*Snapshot, error) {
	q, id := dbsqlc.New(), uuid.UUID(tenant)
	versions, err := q.TenantVersions(ctx, tx, []uuid.UUID{id})
	if err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, fault.New(fault.NotFound, "no tenant %s", tenant)
	}
	limits, err := limits.Load(ctx, tx, tenant)
	if err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	reviews, err := Reviews(ctx, tx, tenant)
	if err != nil {
		return nil, fmt.Errorf("reviews: %w", err)
	}
	snap := &Snapshot{
		Tenant: tenant, Version: versions[0].ConfigVersion, Limits: limits,
		sources: make(map[string]Source), tools: make(map[policy.Key]*Tool), byName: make(map[string][]*Tool), byFullName: make(map[string][]*Tool),
		automations: make(map[string]policy.Rules), decider: policy.NewDecider(), reviews: compileReviews(reviews),
	}
	sources, err := q.SourceList(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	for _, r := range sources {
		snap.sources[r.SourceID] = sourceFromRow(r)
	}
	tools, err := q.ToolList(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	for _, r := range tools {
		t, err := toolFromRow(r, snap.sources[r.SourceID])
		if err != nil {
			return nil, err
		}
		if snap.sources[r.SourceID].Kind == KindWebhook {
			t.patient(r.MaxAttempts != 0)
		}
		snap.tools[t.Key] = t
		snap.byName[r.Name] = append(snap.byName[r.Name], t)
		snap.byFullName[t.FullName.String()] = append(snap.byFullName[t.FullName.String()], t)
	}
	snap.index = sync.OnceValue(func() *index { return newIndex(snap.byName) })
	if snap.shots, err = Shots(ctx, tx, tenant); err != nil {
		return nil, err
	}
	if err := snap.loadPolicy(ctx, tx, language); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if err := snap.loadSubscriptions(ctx, tx); err != nil {
		return nil, fmt.Errorf("subscriptions: %w", err)
	}
	return snap, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
