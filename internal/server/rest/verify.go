package rest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// verifyRule is the rule of one tool as the API shows and takes it.
type verifyRule struct {
	Source string          `json:"source"`
	Name   string          `json:"name"`
	Verify *reconcile.Rule `json:"verify"`
}

func (s *Server) listVerifyRules(c *call) error {
	var settings []reconcile.Setting
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		settings, err = reconcile.List(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	shown := make([]verifyRule, len(settings))
	for i, set := range settings {
		shown[i] = verifyRule{Source: set.Key.Source, Name: set.Key.Action, Verify: &set.Rule}
	}
	return items(c, shown)
}

func (s *Server) putVerifyRule(c *call) error {
	var body verifyRule
	if err := c.decode(&body); err != nil {
		return err
	}
	key := policy.Key{Source: body.Source, Action: body.Name}
	what := "tool " + key.String() + " not verified"
	if body.Verify != nil {
		what = "tool " + key.String() + " verified by " + body.Verify.Tool
	}
	return s.configure(c, what, func(ctx context.Context, tx pgx.Tx) error {
		snap, err := s.Catalog.Current(ctx, tx, c.by.Tenant)
		if err != nil {
			return err
		}
		return below("/verify", reconcile.Put(ctx, tx, snap, key, body.Verify))
	})
}
