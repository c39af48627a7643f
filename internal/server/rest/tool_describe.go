package rest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// toolDescription is what an operator says a tool is and does.
type toolDescription struct {
	Source, Name           string
	Module, Entity, Action string
	SideEffects            *[]string         `json:"side_effects"`
	Reversal               *catalog.Reversal `json:"reversal"`
}

func (s *Server) describeTool(c *call) error {
	var in toolDescription
	if err := c.decode(&in); err != nil {
		return err
	}
	key := policy.Key{Source: in.Source, Action: in.Name}
	d := catalog.Description{
		Name: catalog.FullName{Module: in.Module, Entity: in.Entity, Action: in.Action}, SideEffects: in.SideEffects, Reversal: in.Reversal,
	}
	c.detail = map[string]any{"module": orNil(in.Module), "entity": orNil(in.Entity), "action": orNil(in.Action), "side_effects": in.SideEffects}
	if in.Reversal != nil {
		c.detail["reversal"] = in.Reversal.Tool.String()
	}
	return s.configure(c, "tool "+key.String()+" described", func(ctx context.Context, tx pgx.Tx) error {
		if err := s.checkReversal(ctx, tx, c, key, in.Reversal); err != nil {
			return err
		}
		return catalog.DescribeTool(ctx, tx, c.by.Tenant, key, d)
	})
}

// checkReversal refuses a reversal by a tool that is not there, or by the tool
// itself.
func (s *Server) checkReversal(ctx context.Context, tx pgx.Tx, c *call, of policy.Key, r *catalog.Reversal) error {
	if r == nil {
		return nil
	}
	if r.Tool == of {
		return invalid("/reversal/tool", "other", "must be another tool than the one that it undoes")
	}
	snap, err := s.Catalog.Current(ctx, tx, c.by.Tenant)
	if err != nil {
		return err
	}
	if _, ok := snap.Tool(r.Tool); !ok {
		return invalid("/reversal/tool", envelope.RuleEnum, "must be a tool that there is, as source:name; list the tools to see them")
	}
	return nil
}
