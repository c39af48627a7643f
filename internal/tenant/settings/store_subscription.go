package settings

import (
	"context"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// loadSubscriptions lets every subscription use the tools that it delivers
// with, and nothing else. Setting one up is the permission, so that it ends
// with the subscription and needs no rule that somebody could forget.
func (s *Settings) loadSubscriptions(ctx context.Context, tx pgx.Tx) error {
	rows, err := dbsqlc.New().SubscriptionAutomations(ctx, tx, uuid.UUID(s.Tenant))
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
