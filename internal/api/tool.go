package api

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/catalog"
	"github.com/countersign-dev/countersign/internal/limit"
	"github.com/countersign-dev/countersign/internal/policy"
)

// tool is a tool as the API shows it.
type tool struct {
	Key         string          `json:"key"`
	Source      string          `json:"source"`
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Risk        policy.ToolRisk `json:"risk"`
	Effect      envelope.Effect `json:"effect"`
	MaxAttempts int             `json:"max_attempts"`
	Mode        envelope.Mode   `json:"mode"`
	Enabled     bool            `json:"enabled"`
	Drifted     bool            `json:"drifted"`
	Digest      string          `json:"digest"`
	toolLimits
}

func toolFrom(snap *catalog.Snapshot, t *catalog.Tool, automation string) tool {
	src, _ := snap.Source(t.Key.Source) // a tool without a source is none that is enabled
	return tool{
		Key: t.Key.String(), Source: t.Key.Source, Name: t.Key.Action, Title: t.Title, Description: t.Description,
		InputSchema: t.InputSchema, Risk: t.Risk, Effect: t.Effect, MaxAttempts: t.MaxAttempts,
		Mode: snap.Decide(t, catalog.Proposed{Automation: automation, Risk: t.Risk.Envelope()}).Mode, Enabled: src.Enabled,
		Drifted: t.Drifted(), Digest: base64.StdEncoding.EncodeToString(t.Digest),
	}
}

func (s *Server) listTools(c *call) error {
	var snap *catalog.Snapshot
	var rules map[policy.Key]limit.ToolRule
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if snap, err = s.Catalog.Current(ctx, tx, c.by.Tenant); err != nil {
			return err
		}
		rules, err = toolRules(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	known := snap.Tools()
	shown := make([]tool, len(known))
	for i, t := range known {
		shown[i] = toolFrom(snap, t, c.query.Get("automation_id"))
		shown[i].toolLimits = limitsOf(rules[t.Key], t)
	}
	return items(c, shown)
}

func (s *Server) acceptTool(c *call) error {
	var body struct{ Source, Name, Digest string }
	if err := c.decode(&body); err != nil {
		return err
	}
	digest, err := base64.StdEncoding.DecodeString(body.Digest)
	if err != nil {
		return invalid("/digest", envelope.RuleFormat, "must be base64, as GET /api/v1/tools shows it")
	}
	key := policy.Key{Source: body.Source, Action: body.Name}
	c.detail = map[string]any{"accepted_digest": body.Digest}
	return s.configure(c, "tool "+key.String()+" accepted", func(ctx context.Context, tx pgx.Tx) error {
		return catalog.AcceptTool(ctx, tx, c.by.Tenant, key, digest)
	})
}

func (s *Server) configureTool(c *call) error {
	var body struct {
		Source, Name string
		Risk         policy.ToolRisk
		Effect       envelope.Effect
		MaxAttempts  int `json:"max_attempts"`
	}
	if err := c.decode(&body); err != nil {
		return err
	}
	key := policy.Key{Source: body.Source, Action: body.Name}
	c.detail = map[string]any{"risk": orNil(body.Risk), "effect": orNil(body.Effect), "max_attempts": orNil(body.MaxAttempts)}
	return s.configure(c, "tool "+key.String()+" overridden", func(ctx context.Context, tx pgx.Tx) error {
		return catalog.ConfigureTool(ctx, tx, c.by.Tenant, key, catalog.Overrides{Risk: body.Risk, Effect: body.Effect, MaxAttempts: body.MaxAttempts})
	})
}

// configure makes a change of configuration, with the event that tells of it
// in the same transaction, and answers that it was made.
func (s *Server) configure(c *call, what string, change func(ctx context.Context, tx pgx.Tx) error) error {
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		if err := change(ctx, tx); err != nil {
			return err
		}
		return c.noteChange(ctx, tx, what)
	})
	if err != nil {
		return err
	}
	return c.nothing()
}

// orNil is nil for what was not set, or was set back.
func orNil[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func (c *call) noteChange(ctx context.Context, tx pgx.Tx, what string) error {
	return audit.Write(ctx, tx, audit.Event{
		Tenant: c.by.Tenant, Kind: audit.Configured, Actor: c.by.Name, Items: []audit.Item{{Subject: what, Note: c.note, Detail: c.detail}},
	})
}
