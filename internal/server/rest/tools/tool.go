// Package tools handles requests about the catalog: tools, their settings and
// rules, and the sources that they come from.
package tools

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
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// tool is a tool as the API shows it.
type tool struct {
	Key              string            `json:"tool"`
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

// toolSource is the state of a source whose tools are listed, or would be.
type toolSource struct {
	ID      string  `json:"source_id"`
	Enabled bool    `json:"enabled"`
	Error   *string `json:"error"`
}

// listing is the catalog as one caller sees it.
type listing struct {
	snap  *settings.Settings
	by    settings.Viewer
	agent bool
	rules map[policy.Key]limits.ToolRule
}

// newListing reads the current catalog.
func newListing(c *request.Call) (*listing, error) {
	l := &listing{
		by:    settings.Viewer{Employee: c.By.Employee, Session: c.By.Session, Tools: c.By.Tools, Automation: c.Query.Get("automation_id")},
		agent: c.By.Role == identity.RoleAgent,
	}
	return l, c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var now settings.State
		var err error
		if l.snap, now, err = c.Catalog.CurrentAndState(ctx, tx, c.By.Tenant); err != nil {
			return err
		}
		l.by.Now = now.Now
		l.rules, err = toolRules(ctx, tx, c.By.Tenant)
		return err
	})
}

// tools returns the tools that the caller may see: agents see what they may
// use, people also what is switched off.
func (l *listing) tools() []*catalog.Tool {
	if l.agent {
		return l.snap.Visible(l.by)
	}
	return slices.DeleteFunc(l.snap.Tools(), func(t *catalog.Tool) bool {
		src, ok := l.snap.Source(t.Key.Source)
		return ok && src.ListError != ""
	})
}

// sources returns the sources of the tools, and those that could not be listed.
// Agents see only the sources that have tools for them.
func (l *listing) sources() []toolSource {
	serves := make(map[string]bool)
	if l.agent {
		for _, t := range l.snap.Tools() {
			serves[t.Key.Source] = serves[t.Key.Source] || l.snap.MayUse(t, l.by)
		}
	}
	found := []toolSource{}
	for _, src := range l.snap.Sources() {
		if l.agent && !(src.Enabled && serves[src.ID]) {
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

// show returns a tool as the caller sees it.
func (l *listing) show(t *catalog.Tool) tool {
	src, _ := l.snap.Source(t.Key.Source) // a tool without a source is none that is enabled
	mode := l.snap.Decide(t, l.by.Proposal(t)).Mode
	return tool{
		Key: t.Key.String(), Source: t.Key.Source, Name: t.Key.Action, FullName: t.FullName.String(),
		Module: t.FullName.Module, Entity: t.FullName.Entity, Action: t.FullName.Action, Title: t.Title, Description: t.Description,
		InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Risk: t.Risk, Effect: t.Effect, SideEffects: t.SideEffects,
		Reversible: t.Reversible(), Reversal: t.Reversal, MaxAttempts: t.MaxAttempts, Mode: mode,
		RequiresApproval: mode == envelope.ModeRequireApproval, Enabled: src.Enabled, Drifted: t.Drifted(), Drift: t.Drift,
		Quarantined: t.Quarantined, Digest: base64.StdEncoding.EncodeToString(t.Digest), toolLimits: limitsOf(l.rules[t.Key], t),
	}
}

// GET /api/v1/tools lists the tools that the caller may see.
func List(c *request.Call) error {
	l, err := newListing(c)
	if err != nil {
		return err
	}
	source, risk := c.Query.Get("source"), policy.ToolRisk(c.Query.Get("risk"))
	found := slices.DeleteFunc(l.tools(), func(t *catalog.Tool) bool {
		return source != "" && t.Key.Source != source || risk != "" && t.Risk != risk
	})
	if c.Query.Has("q") {
		found = l.snap.Search(found, c.Query.Get("q"))
	}
	if limit, err := strconv.Atoi(c.Query.Get("limit")); err == nil {
		found = found[:min(limit, len(found))]
	}
	shown := make([]tool, len(found))
	for i, t := range found {
		shown[i] = l.show(t)
	}
	sources := slices.DeleteFunc(l.sources(), func(src toolSource) bool { return source != "" && src.ID != source })
	return c.JSON(http.StatusOK, struct {
		Items   []tool       `json:"items"`
		Sources []toolSource `json:"sources"`
	}{shown, sources})
}

// GET /api/v1/tools/{tool} shows a tool by any of its names. A tool that an
// agent may not use does not exist for it.
func Get(c *request.Call) error {
	l, err := newListing(c)
	if err != nil {
		return err
	}
	t, err := l.snap.Resolve(envelope.Tool{Name: c.R.PathValue("tool")})
	if err == nil && l.agent && !l.snap.MayUse(t, l.by) {
		err = errNoTool
	}
	if err != nil {
		return resolveError(err)
	}
	return c.JSON(http.StatusOK, l.show(t))
}

// errNoTool says that a tool does not exist, or not for the caller.
var errNoTool = fault.New(fault.NotFound, "no such tool; list the tools to see the ones there are")

// resolveError returns the error for a name in a path that stands for no tool,
// or for several.
func resolveError(err error) error {
	if found, ok := fieldOf(err); ok && found.Rule != envelope.RuleRequired {
		return errNoTool
	} else if ok {
		return request.Invalid("/path/tool", "ambiguous", found.Message)
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

// POST /api/v1/tools/accept accepts a tool's definition.
func Accept(c *request.Call) error {
	var body struct{ Source, Name, Digest string }
	if err := c.Decode(&body); err != nil {
		return err
	}
	digest, err := base64.StdEncoding.DecodeString(body.Digest)
	if err != nil {
		return request.Invalid("/digest", envelope.RuleFormat, "must be base64, as GET /api/v1/tools shows it")
	}
	key := policy.Key{Source: body.Source, Action: body.Name}
	c.Detail = map[string]any{"accepted_digest": body.Digest}
	return c.Configure("tool "+key.String()+" accepted", func(ctx context.Context, tx pgx.Tx) error {
		return catalog.AcceptTool(ctx, tx, c.By.Tenant, key, digest)
	})
}

// PUT /api/v1/tools/overrides sets the risk, effect and attempts of a tool.
func Override(c *request.Call) error {
	var body struct {
		Source, Name string
		Risk         policy.ToolRisk
		Effect       envelope.Effect
		MaxAttempts  int `json:"max_attempts"`
	}
	if err := c.Decode(&body); err != nil {
		return err
	}
	key := policy.Key{Source: body.Source, Action: body.Name}
	c.Detail = map[string]any{"risk": request.NilIfZero(body.Risk), "effect": request.NilIfZero(body.Effect), "max_attempts": request.NilIfZero(body.MaxAttempts)}
	return c.Configure("tool "+key.String()+" overridden", func(ctx context.Context, tx pgx.Tx) error {
		return catalog.ConfigureTool(ctx, tx, c.By.Tenant, key, catalog.Overrides{Risk: body.Risk, Effect: body.Effect, MaxAttempts: body.MaxAttempts})
	})
}
