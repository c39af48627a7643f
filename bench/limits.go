package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// bucketCount is over how many buckets the envelopes are spread.
const bucketCount = 10

func bucketName(n int) string {
	return fmt.Sprintf("bucket.%d", (n%bucketCount+bucketCount)%bucketCount)
}

// setLimits switches every check on that an envelope can meet, so that none is
// left out of what is measured: quiet hours (three days from now), a list of
// those who must not be contacted, trust and scopes. None of them holds the
// envelopes back.
func setLimits(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
	for n := range bucketCount {
		if err := limits.PutBucket(ctx, tx, tenant, limits.Bucket{Name: bucketName(n)}, "bench"); err != nil {
			return err
		}
	}
	day := strings.ToLower(time.Now().UTC().AddDate(0, 0, 3).Weekday().String()[:3])
	quiet := limits.QuietHours{Scope: limits.QuietTenant, Hours: quiethours.Hours{
		Timezone: "Europe/Berlin", Windows: []quiethours.Window{{Days: []string{day}, From: "11:00", Until: "13:00"}},
	}}
	if err := limits.PutQuietHours(ctx, tx, tenant, quiet, "bench"); err != nil {
		return err
	}
	everyone := limits.Employee{Trust: policy.TrustHigh, Scopes: []string{"*"}}
	if err := limits.PutEmployee(ctx, tx, tenant, everyone, "bench"); err != nil {
		return err
	}
	_, err := contact.PutEntries(ctx, tx, tenant, []contact.Entry{{Value: "nobody@example.org", Reason: "asked"}}, "bench")
	return err
}

// setPolicy has policy look at the arguments of every envelope, and at what
// users switched off. Neither holds the envelopes back.
func setPolicy(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) error {
	snap, err := settings.NewCache().Current(ctx, tx, tenant)
	if err != nil {
		return err
	}
	rule := settings.Rule{ID: "large", Pattern: "*", Expression: "has(args.n) && args.n < 0 || has(args.note) && size(args.note) > 1000", Mode: string(envelope.ModeDeny), Enabled: true}
	if err := settings.PutRule(ctx, tx, snap, rule, "bench"); err != nil {
		return err
	}
	return settings.PutPreference(ctx, tx, tenant, settings.Preference{Pattern: "*:switched.off"}, "bench")
}
