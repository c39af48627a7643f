package settings

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// State is the part of a tenant's settings that a claim reads first.
type State struct {
	// Version is the version of its catalog, policy and limits.
	Version int64
	// BreakerOpen is set if a circuit breaker of the tenant is not closed.
	BreakerOpen bool
	// Now is the database's clock at the start of the transaction.
	Now time.Time
}

// States returns the current state of each existing tenant.
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
		states[r.TenantID] = State{r.ConfigVersion, r.BreakerOpen, r.Now}
	}
	return states, nil
}

// load reads a tenant's settings. The version is read first: after a concurrent
// change the settings are newer than their version, which only causes another
// read.
func load(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, language func() (*policy.Language, error)) (*Settings, error) {
	versions, err := dbsqlc.New().TenantVersions(ctx, tx, []uuid.UUID{uuid.UUID(tenant)})
	if err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, fault.New(fault.NotFound, "no tenant %s", tenant)
	}
	s := &Settings{Tenant: tenant, Version: versions[0].ConfigVersion, automations: make(map[string]policy.Rules), decider: policy.NewDecider()}
	if s.Limits, err = limits.Load(ctx, tx, tenant); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	if s.Catalog, err = catalog.Load(ctx, tx, tenant); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	if err := s.loadPolicy(ctx, tx, language); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if err := s.loadSubscriptions(ctx, tx); err != nil {
		return nil, fmt.Errorf("subscriptions: %w", err)
	}
	return s, nil
}

// loadSubscriptions allows every subscription the tools with which it delivers,
// and nothing else. Configuring one is the permission, so that it ends with the
// subscription and needs no separate rule.
func (s *Settings) loadSubscriptions(ctx context.Context, tx pgx.Tx) error {
	rows, err := dbsqlc.New().SubscriptionAutomations(ctx, tx, s.Tenant)
	if err != nil {
		return err
	}
	deny := policy.Rule{Key: "*", Mode: string(envelope.ModeDeny)}
	for _, r := range rows {
		if !r.Enabled {
			continue
		}
		src, _ := s.Source(r.SourceID)
		version := strconv.FormatInt(r.Version, 10)
		rules := []policy.Rule{deny}
		for _, tool := range DeliveryTools(src.Kind) {
			rules = append(rules, policy.Rule{Key: r.SourceID + ":" + tool, Mode: string(envelope.ModeAllow), Version: version})
		}
		s.automations[SubscriptionAutomation(r.SubscriptionID)] = policy.Compile(rules)
	}
	s.automations[subscriptionPrefix] = policy.Compile([]policy.Rule{deny})
	return nil
}

// PutReview sets the review rule of a pattern, from a risk upwards.
func PutReview(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, r ReviewRule, by envelope.Actor) error {
	if err := r.check(); err != nil {
		return err
	}
	return violations.Fault(dbsqlc.New().ReviewUpsert(ctx, tx, &dbsqlc.ReviewUpsertParams{
		TenantID: tenant, Key: r.Pattern, Risk: string(r.Risk), ApprovalsNeeded: int32(r.Approvals),
		WaitSeconds: inSeconds(r.Wait), WarnSeconds: inSeconds(r.Warn), EscalateSeconds: inSeconds(r.Escalate), Edits: postgres.OrNull(r.Edits), UpdatedBy: string(by),
	}))
}

// FillReviewWait sets the wait of actions that a pattern covers, unless a rule
// of that pattern and the lowest risk sets it.
func FillReviewWait(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, pattern string, wait time.Duration, by envelope.Actor) error {
	if err := (ReviewRule{Pattern: pattern, Risk: envelope.RiskLow, Approvals: 1, Wait: new(envelope.Duration(wait))}).check(); err != nil {
		return err
	}
	return violations.Fault(dbsqlc.New().ReviewFillWait(ctx, tx, &dbsqlc.ReviewFillWaitParams{
		TenantID: tenant, Key: pattern, WaitSeconds: new(int32(wait / time.Second)), UpdatedBy: string(by),
	}))
}

// DeleteReview removes the review rule of a pattern and a risk.
func DeleteReview(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, pattern string, risk envelope.Risk) error {
	n, err := dbsqlc.New().ReviewDelete(ctx, tx, &dbsqlc.ReviewDeleteParams{TenantID: tenant, Key: pattern, Risk: string(risk)})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "no review is set for %s from the risk %s on", pattern, risk))
}

// Reviews returns every review rule of a tenant, ordered by pattern and risk.
func Reviews(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]ReviewRule, error) {
	rows, err := dbsqlc.New().ReviewList(ctx, tx, tenant)
	return postgres.Map(rows, err, func(r dbsqlc.ReviewListRow) ReviewRule {
		return ReviewRule{
			Pattern: r.Key, Risk: envelope.Risk(r.Risk), Approvals: int(r.ApprovalsNeeded),
			Wait: ofSeconds(r.WaitSeconds), Warn: ofSeconds(r.WarnSeconds), Escalate: ofSeconds(r.EscalateSeconds), Edits: postgres.OrZero(r.Edits),
			LastChange: LastChange{UpdatedAt: r.UpdatedAt.UTC(), UpdatedBy: envelope.Actor(r.UpdatedBy)},
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

// violations are the faults for constraints that a caller's input can violate.
var violations = postgres.Violations{
	"tenants_danger_mode_check":      fault.New(fault.Invalid, "the mode of danger must be deny or require_approval"),
	"policy_modes_tenant_id_fkey":    fault.New(fault.NotFound, "no such tenant"),
	"policy_rules_tenant_id_fkey":    fault.New(fault.NotFound, "no such tenant"),
	"policy_rules_rule_id_check":     fault.New(fault.Invalid, "a rule's id must be 1 to 100 of a-z, 0-9, dot, - and _, and start with a letter or a digit"),
	"session_modes_tenant_id_fkey":   fault.New(fault.NotFound, "no such tenant"),
	"preferences_tenant_id_fkey":     fault.New(fault.NotFound, "no such tenant"),
	"grants_tenant_id_fkey":          fault.New(fault.NotFound, "no such tenant"),
	"grants_pins_check":              fault.New(fault.Invalid, "a grant's pins must be JSON Pointers with values"),
	"grants_expires_at_check":        fault.New(fault.Invalid, "a grant must last 1 second to 90 days"),
	"reviews_tenant_id_fkey":         fault.New(fault.NotFound, "no such tenant"),
	"reviews_risk_check":             fault.New(fault.Invalid, "risk must be low, medium or high"),
	"reviews_approvals_needed_check": fault.New(fault.Invalid, "the number of approvals must be 1 to 5"),
	"reviews_edits_check":            fault.New(fault.Invalid, "edits must be another, or omitted"),
	"reviews_wait_seconds_check":     fault.New(fault.Invalid, "the times of a review must be at most 30 days"),
	"reviews_warn_seconds_check":     fault.New(fault.Invalid, "the times of a review must be at most 30 days"),
	"reviews_escalate_seconds_check": fault.New(fault.Invalid, "the times of a review must be at most 30 days"),
}
