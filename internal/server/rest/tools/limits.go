package tools

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// PutRule handles PUT /api/v1/tools/{tool}/rule. It sets the recipients,
// scopes, retries and time limit of a tool.
func PutRule(c *request.Call, body wire.ToolRule, key policy.Key) error {
	rule := limits.ToolRule{Source: key.Source, Name: key.Action, Recipients: body.Recipients, Scopes: body.Scopes, Retry: body.Retry, Timeout: body.Timeout}
	return setTool(c, key, "", func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutToolRule(ctx, tx, c.By.Tenant, rule, c.By.Actor())
	})
}

// setLimits fills in a tool's limits, with guessed recipients where none are set.
func setLimits(shown *wire.Tool, rule limits.ToolRule, t *catalog.Tool) {
	shown.Scopes, shown.Retry, shown.Timeout = append([]string{}, rule.Scopes...), rule.Retry, rule.Timeout
	if rule.Recipients != nil {
		shown.Recipients, shown.RecipientsConfirmed = *rule.Recipients, true
		return
	}
	shown.Recipients = append([]string{}, contact.InferRecipients(t.InputSchema)...)
}

// toolRules reads the rules that are set for tools.
func toolRules(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (map[policy.Key]limits.ToolRule, error) {
	rules, err := limits.ToolRules(ctx, tx, tenant)
	byKey := make(map[policy.Key]limits.ToolRule, len(rules))
	for _, r := range rules {
		byKey[r.Key()] = r
	}
	return byKey, err
}
