package rest

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func (s *Server) getSettings(c *call) error {
	var settings limits.Tenant
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		settings, err = limits.TenantOf(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, settings)
}

func (s *Server) putSettings(c *call) error {
	var settings limits.Tenant
	if err := c.decode(&settings); err != nil {
		return err
	}
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutTenant(ctx, tx, c.by.Tenant, settings, c.by.Name)
	})
}

func (s *Server) putToolRule(c *call) error {
	var rule limits.ToolRule
	if err := c.decode(&rule); err != nil {
		return err
	}
	return s.change(c, func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutToolRule(ctx, tx, c.by.Tenant, rule, c.by.Name)
	})
}

// toolLimits is what holds for a tool of whom it writes to, what it takes to
// use it, and its retries.
type toolLimits struct {
	Recipients []string     `json:"recipients"`
	Confirmed  bool         `json:"recipients_confirmed"`
	Scopes     []string     `json:"scopes"`
	Retry      limits.Retry `json:"retry"`
}

// limitsOf is what an operator said about a tool, and a guess where nobody
// did.
func limitsOf(rule limits.ToolRule, t *catalog.Tool) toolLimits {
	l := toolLimits{Scopes: append([]string{}, rule.Scopes...), Retry: rule.Retry}
	if rule.Recipients != nil {
		l.Recipients, l.Confirmed = *rule.Recipients, true
		return l
	}
	l.Recipients = append([]string{}, preflight.GuessRecipients(t.InputSchema)...)
	return l
}

// toolRules reads what operators said about tools.
func toolRules(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (map[policy.Key]limits.ToolRule, error) {
	rules, err := limits.ToolRules(ctx, tx, tenant)
	byKey := make(map[policy.Key]limits.ToolRule, len(rules))
	for _, r := range rules {
		byKey[r.Key()] = r
	}
	return byKey, err
}

func (s *Server) getLimits(c *call) error {
	var doc limits.Document
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		doc, err = limits.Export(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, doc)
}

func (s *Server) putLimits(c *call) error {
	var doc limits.Document
	if err := c.decode(&doc); err != nil {
		return err
	}
	dry := c.query.Get("dry_run") == "true"
	changes := []limits.Change{}
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		made, err := limits.Apply(ctx, tx, c.by.Tenant, doc, c.by.Name, dry)
		changes = append(changes[:0], made...)
		return err
	})
	if err != nil {
		return err
	}
	if !dry {
		s.cfg.Wake()
	}
	return c.json(http.StatusOK, struct {
		DryRun  bool            `json:"dry_run"`
		Changes []limits.Change `json:"changes"`
	}{dry, changes})
}

// CheckLimits holds a document of limits, in JSON, to what openapi.yaml and
// the rules of each setting say, as the API does. The error is an
// *envelope.InvalidError whose pointers lead into the document.
func CheckLimits(text []byte) error {
	l, err := loadLaw()
	if err != nil {
		return err
	}
	if err := l.operations["putLimits"].checkBody(text); err != nil {
		return err
	}
	var doc limits.Document
	if err := (&call{body: text}).decode(&doc); err != nil {
		return err
	}
	return doc.Validate()
}
