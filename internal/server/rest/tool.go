package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// tool is a tool as the API shows it.
type tool struct {
	Key              string            `json:"key"`
	Source           string            `json:"source"`
	Name             string            `json:"name"`
	FullName         string            `json:"full_name"`
	Module           string            `json:"module"`
	Entity           string            `json:"entity"`
	Action           string            `json:"action"`
	Title            string            `json:"title"`
	Description      string            `json:"description"`
	InputSchema      json.RawMessage   `json:"input_schema"`
	OutputSchema     json.RawMessage   `json:"output_schema,omitempty"`
	Risk             policy.ToolRisk   `json:"risk"`
	Effect           envelope.Effect   `json:"effect"`
	SideEffects      []string          `json:"side_effects"`
	Reversible       bool              `json:"reversible"`
	Reversal         *catalog.Reversal `json:"reversal,omitempty"`
	MaxAttempts      int               `json:"max_attempts"`
	Mode             envelope.Mode     `json:"mode"`
	RequiresApproval bool              `json:"requires_approval"`
	Enabled          bool              `json:"enabled"`
	Drifted          bool              `json:"drifted"`
	Drift            catalog.Drift     `json:"drift"`
	Quarantined      bool              `json:"quarantined"`
	Digest           string            `json:"digest"`
	toolLimits
}

// toolSource says how a source stands whose tools are listed, or would be.
type toolSource struct {
	ID      string  `json:"id"`
	Enabled bool    `json:"enabled"`
	Error   *string `json:"error"`
}

// shelf is the catalog as one caller sees it.
type shelf struct {
	snap  *settings.Settings
	by    settings.Viewer
	agent bool
	rules map[policy.Key]limits.ToolRule
}

// shelf reads the catalog as it is now.
func (s *Server) shelf(c *call) (*shelf, error) {
	sh := &shelf{
		by:    settings.Viewer{Employee: c.by.Employee, Session: c.by.Session, Tools: c.by.Tools, Automation: c.query.Get("automation_id")},
		agent: c.by.Role == identity.RoleAgent,
	}
	return sh, s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var now settings.State
		var err error
		if sh.snap, now, err = s.Catalog.Standing(ctx, tx, c.by.Tenant); err != nil {
			return err
		}
		sh.by.Now = now.Now
		sh.rules, err = toolRules(ctx, tx, c.by.Tenant)
		return err
	})
}

// tools are those that the caller may see: agents see what they may use,
// people see all of what sources offer and of those that are switched off.
func (sh *shelf) tools() []*catalog.Tool {
	if sh.agent {
		return sh.snap.Visible(sh.by)
	}
	return slices.DeleteFunc(sh.snap.Tools(), func(t *catalog.Tool) bool {
		src, ok := sh.snap.Source(t.Key.Source)
		return ok && src.ListError != ""
	})
}

// sources are those of the tools, and those that would have some if they could
// be listed. An agent hears only of those that would have some for it.
func (sh *shelf) sources() []toolSource {
	serves := make(map[string]bool)
	if sh.agent {
		for _, t := range sh.snap.Tools() {
			serves[t.Key.Source] = serves[t.Key.Source] || sh.snap.MayUse(t, sh.by)
		}
	}
	found := []toolSource{}
	for _, src := range sh.snap.Sources() {
		if sh.agent && !(src.Enabled && serves[src.ID]) {
			continue
		}
		one := toolSource{ID: src.ID, Enabled: src.Enabled}
		if src.ListError != "" {
			one.Error = &src.ListError
		}
		found = append(found, one)
	}
	return found
}

// show is a tool as the caller sees it.
func (sh *shelf) show(t *catalog.Tool) tool {
	src, _ := sh.snap.Source(t.Key.Source) // a tool without a source is none that is enabled
	mode := sh.snap.Decide(t, sh.by.Proposal(t)).Mode
	return tool{
		Key: t.Key.String(), Source: t.Key.Source, Name: t.Key.Action, FullName: t.FullName.String(),
		Module: t.FullName.Module, Entity: t.FullName.Entity, Action: t.FullName.Action, Title: t.Title, Description: t.Description,
		InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Risk: t.Risk, Effect: t.Effect, SideEffects: t.SideEffects,
		Reversible: t.Reversible(), Reversal: t.Reversal, MaxAttempts: t.MaxAttempts, Mode: mode,
		RequiresApproval: mode == envelope.ModeRequireApproval, Enabled: src.Enabled, Drifted: t.Drifted(), Drift: t.Drift,
		Quarantined: t.Quarantined, Digest: base64.StdEncoding.EncodeToString(t.Digest), toolLimits: limitsOf(sh.rules[t.Key], t),
	}
}

func (s *Server) listTools(c *call) error {
	sh, err := s.shelf(c)
	if err != nil {
		return err
	}
	source, risk := c.query.Get("source"), policy.ToolRisk(c.query.Get("risk"))
	found := slices.DeleteFunc(sh.tools(), func(t *catalog.Tool) bool {
		return source != "" && t.Key.Source != source || risk != "" && t.Risk != risk
	})
	if c.query.Has("q") {
		found = sh.snap.Search(found, c.query.Get("q"))
	}
	if limit, err := strconv.Atoi(c.query.Get("limit")); err == nil {
		found = found[:min(limit, len(found))]
	}
	shown := make([]tool, len(found))
	for i, t := range found {
		shown[i] = sh.show(t)
	}
	sources := slices.DeleteFunc(sh.sources(), func(src toolSource) bool { return source != "" && src.ID != source })
	return c.json(http.StatusOK, struct {
		Items   []tool       `json:"items"`
		Sources []toolSource `json:"sources"`
	}{shown, sources})
}

// getTool shows one tool by any of its names. What an agent may not use is not
// there for it.
func (s *Server) getTool(c *call) error {
	sh, err := s.shelf(c)
	if err != nil {
		return err
	}
	t, err := sh.snap.Resolve(envelope.Tool{Name: c.r.PathValue("tool")})
	if err == nil && sh.agent && !sh.snap.MayUse(t, sh.by) {
		err = errNoTool
	}
	if err != nil {
		return unresolved(err)
	}
	return c.json(http.StatusOK, sh.show(t))
}

// errNoTool tells of a tool that is not there, or not for the caller.
var errNoTool = fault.New(fault.NotFound, "no such tool; list the tools to see the ones there are")

// unresolved is what a name in a path came to: no tool, or too many.
func unresolved(err error) error {
	if found, ok := fieldOf(err); ok && found.Rule != envelope.RuleRequired {
		return errNoTool
	} else if ok {
		return invalid("/path/tool", "ambiguous", found.Message)
	}
	return err
}

func fieldOf(err error) (envelope.FieldError, bool) {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok || len(broken.Fields) == 0 {
		return envelope.FieldError{}, false
	}
	return broken.Fields[0], true
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
