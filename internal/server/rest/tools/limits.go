package tools

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// PUT /api/v1/tools/{tool}/rule sets the recipients, scopes, retries and time
// limit of a tool.
func PutRule(c *request.Call, body toolRule, key policy.Key) error {
	rule := limits.ToolRule{Source: key.Source, Name: key.Action, Recipients: body.Recipients, Scopes: body.Scopes, Retry: body.Retry, Timeout: body.Timeout}
	return setTool(c, key, "", func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutToolRule(ctx, tx, c.By.Tenant, rule, c.By.Actor())
	})
}

// toolRule is the body of a tool's rule.
type toolRule struct {
	Recipients *[]string       `json:"recipients"`
	Scopes     []string        `json:"scopes"`
	Retry      limits.Retry    `json:"retry"`
	Timeout    limits.Duration `json:"timeout"`
}

// toolLimits are the recipients, scopes and retries of a tool.
type toolLimits struct {
	Recipients []string        `json:"recipients"`
	Confirmed  bool            `json:"recipients_confirmed"`
	Scopes     []string        `json:"scopes"`
	Retry      limits.Retry    `json:"retry"`
	Timeout    limits.Duration `json:"timeout,omitzero"`
}

// limitsOf returns a tool's limits as operators set them, with guessed
// recipients where nobody did.
func limitsOf(rule limits.ToolRule, t *catalog.Tool) toolLimits {
	l := toolLimits{Scopes: append([]string{}, rule.Scopes...), Retry: rule.Retry, Timeout: rule.Timeout}
	if rule.Recipients != nil {
		l.Recipients, l.Confirmed = *rule.Recipients, true
		return l
	}
	l.Recipients = append([]string{}, contact.InferRecipients(t.InputSchema)...)
	return l
}

// toolRules reads the rules that operators set for tools.
func toolRules(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (map[policy.Key]limits.ToolRule, error) {
	rules, err := limits.ToolRules(ctx, tx, tenant)
	byKey := make(map[policy.Key]limits.ToolRule, len(rules))
	for _, r := range rules {
		byKey[r.Key()] = r
	}
	return byKey, err
}
