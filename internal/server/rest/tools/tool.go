// Package tools handles requests about the catalog: tools, their settings and
// rules, and the sources that they come from.
package tools

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// listing is the catalog as one caller sees it.
type listing struct {
	snap  *settings.Settings
	by    settings.Viewer
	agent bool
	rules map[policy.Key]limits.ToolRule
}

// newListing reads the current catalog.
func newListing(c *request.Call) (*listing, error) {
	return request.Read(c, func(ctx context.Context, tx pgx.Tx) (*listing, error) { return readListing(ctx, tx, c) })
}

func readListing(ctx context.Context, tx pgx.Tx, c *request.Call) (*listing, error) {
	snap, state, err := c.Catalog.CurrentAndState(ctx, tx, c.By.Tenant)
	if err != nil {
		return nil, err
	}
	l := &listing{snap: snap, by: c.Viewer(state), agent: c.By.Role == identity.RoleAgent}
	l.rules, err = toolRules(ctx, tx, c.By.Tenant)
	return l, err
}

// sources returns the sources of the tools, and those that could not be listed.
// Agents see only the sources that have tools for them.
func (l *listing) sources() []wire.ToolSource {
	serves := make(map[string]bool)
	if l.agent {
		for _, t := range l.snap.Tools() {
			serves[t.Key.Source] = serves[t.Key.Source] || l.snap.MayUse(t, l.by)
		}
	}
	found := []wire.ToolSource{}
	for _, src := range l.snap.Sources() {
		if l.agent && !(src.Enabled && serves[src.ID]) || !policy.CoversSource(l.by.Tools, src.ID) {
			continue
		}
		one := wire.ToolSource{ID: src.ID, Enabled: src.Enabled}
		if src.ListError != "" {
			one.Error = &src.ListError
		}
		if one.Error != nil && l.agent {
			one.Error = new("it could not be listed") // the rest is for the people who configured it
		}
		found = append(found, one)
	}
	return found
}

// show returns a tool as the caller sees it.
func (l *listing) show(t *catalog.Tool) (wire.Tool, error) {
	src, _ := l.snap.Source(t.Key.Source) // a tool without a source counts as disabled
	mode := l.snap.Decide(t, l.by.Proposal(t)).Mode
	shown := wire.Tool{
		Tool: t.Key.String(), FullName: t.FullName.String(),
		Module: t.FullName.Module, Entity: t.FullName.Entity, Action: t.FullName.Action, Title: t.Title, Description: t.Description,
		InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Risk: string(t.Risk), Effect: t.Effect, SideEffects: t.SideEffects,
		Reversible: t.Reversible(), MaxAttempts: t.MaxAttempts, Mode: mode,
		RequiresApproval: mode == envelope.ModeRequireApproval, Enabled: src.Enabled, Drifted: t.Drifted(), Drift: string(t.Drift),
		Quarantined: t.Quarantined, Digest: base64.StdEncoding.EncodeToString(t.Digest),
	}
	if shown.Headline = t.Described.Headline; shown.Headline == "" {
		shown.Headline = t.SuggestedHeadline()
	}
	shown.HeadlineConfirmed = t.Described.Headline != ""
	shown.Reversal = shownReversal(t.Reversal)
	shown.Configured = wire.ToolConfigured{
		Overrides: wire.Overrides{Risk: string(t.Overrides.Risk), Effect: t.Overrides.Effect, MaxAttempts: t.Overrides.MaxAttempts},
		ToolDescription: wire.ToolDescription{
			Module: t.Described.Name.Module, Entity: t.Described.Name.Entity, Action: t.Described.Name.Action,
			SideEffects: t.Described.SideEffects, Reversal: shownReversal(t.Described.Reversal), Headline: t.Described.Headline,
		},
	}
	setLimits(&shown, l.rules[t.Key], t)
	var err error
	shown.ETag, err = request.ETagOf([]any{
		shown.FullName, shown.Risk, shown.Effect, shown.MaxAttempts, shown.SideEffects, shown.Reversal, shown.Headline, shown.HeadlineConfirmed, shown.Recipients, shown.RecipientsConfirmed,
		shown.Scopes, shown.Retry, shown.Timeout, shown.Drift, shown.Quarantined, shown.Digest, shown.Configured,
	})
	return shown, err
}

func shownReversal(r *catalog.Reversal) *wire.Reversal {
	if r == nil {
		return nil
	}
	return &wire.Reversal{Tool: r.Tool.String(), Args: r.Args}
}

// List handles GET /api/v1/tools. It lists the tools that the caller may see.
func List(c *request.Call) error {
	l, err := newListing(c)
	if err != nil {
		return err
	}
	source, risk := c.Query.Get("source"), policy.ToolRisk(c.Query.Get("risk"))
	found := slices.DeleteFunc(l.snap.Listed(l.by), func(t *catalog.Tool) bool {
		return source != "" && t.Key.Source != source || risk != "" && t.Risk != risk ||
			differs(c.Query.Get("drifted"), t.Drifted()) || differs(c.Query.Get("quarantined"), t.Quarantined)
	})
	if c.Query.Has("q") {
		found = l.snap.Search(found, c.Query.Get("q"))
	}
	// The order is that of the search, or of the names.
	page, err := request.PlacedPage(c, "tools", found)
	if err != nil {
		return err
	}
	answer := wire.ToolList{NextCursor: page.NextCursor, Items: make([]wire.Tool, len(page.Items))}
	for i, t := range page.Items {
		if answer.Items[i], err = l.show(t); err != nil {
			return err
		}
	}
	answer.Sources = slices.DeleteFunc(l.sources(), func(src wire.ToolSource) bool { return source != "" && src.ID != source })
	return c.JSON(http.StatusOK, answer)
}

// differs reports whether a condition, "true" or "false", is given and a fact
// differs from it.
func differs(condition string, fact bool) bool {
	return condition != "" && (condition == "true") != fact
}

// Get handles GET /api/v1/tools/{tool}. It shows a tool by any of its names. A
// tool that an agent may not use, or that a token is not for, does not exist
// for it.
func Get(c *request.Call) error {
	l, err := newListing(c)
	if err != nil {
		return err
	}
	t, err := l.snap.Resolve(envelope.Tool{Name: c.R.PathValue("tool")}, l.by.Tools)
	if err == nil && l.agent && !l.snap.MayUse(t, l.by) {
		err = catalog.ErrNoTool
	}
	if err != nil {
		return c.Suggest(request.NounTool, c.R.PathValue("tool"), resolveError(err))
	}
	return showTool(c, l, t)
}

// showTool answers with a tool, and the entity tag of its settings.
func showTool(c *request.Call, l *listing, t *catalog.Tool) error {
	shown, err := l.show(t)
	if err != nil {
		return err
	}
	c.SetETag(shown.ETag)
	return c.JSON(http.StatusOK, shown)
}

// setTool changes a setting of the tool in the path, if the tool's settings
// match If-Match, and returns the tool. With subject "" the change records its
// own event.
func setTool(c *request.Call, key policy.Key, subject string, change func(ctx context.Context, tx pgx.Tx) error) error {
	err := c.InConfigurationTx(func(ctx context.Context, tx pgx.Tx) error {
		before, err := readTool(ctx, tx, c, key)
		if err != nil {
			return err
		}
		err = c.CheckMatch(func() (string, error) { return before.ETag, nil })
		if err == nil {
			err = change(ctx, tx)
		}
		if err == nil && subject != "" {
			err = c.RecordChange(ctx, tx, subject)
		}
		return err
	})
	if err != nil {
		return err
	}
	c.Wake() // actions that waited may be due now
	after, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (wire.Tool, error) { return readTool(ctx, tx, c, key) })
	if err != nil {
		return err
	}
	c.SetETag(after.ETag)
	return c.JSON(http.StatusOK, after)
}

// readTool reads a tool.
func readTool(ctx context.Context, tx pgx.Tx, c *request.Call, key policy.Key) (wire.Tool, error) {
	l, err := readListing(ctx, tx, c)
	if err != nil {
		return wire.Tool{}, err
	}
	t, ok := l.snap.Tool(key)
	if !ok {
		return wire.Tool{}, catalog.ErrNoTool
	}
	return l.show(t)
}

// resolveError returns the error for a name in a path that matches no tool, or
// several.
func resolveError(err error) error {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	switch {
	case !ok || len(broken.Fields) == 0:
		return err
	case broken.Fields[0].Rule != envelope.RuleRequired:
		return catalog.ErrNoTool
	}
	return request.Invalid("/path/tool", "ambiguous", broken.Fields[0].Message)
}

// Accept handles POST /api/v1/tools/{tool}/accept. It accepts a tool's
// definition.
func Accept(c *request.Call, body wire.ToolAcceptance, key policy.Key) error {
	digest, err := base64.StdEncoding.DecodeString(body.Digest)
	if err != nil {
		return request.Invalid("/digest", envelope.RuleFormat, "must be base64, as GET /api/v1/tools returns it")
	}
	c.Detail = map[string]any{"accepted_digest": body.Digest}
	return setTool(c, key, "tool "+key.String()+" accepted", func(ctx context.Context, tx pgx.Tx) error {
		return catalog.AcceptTool(ctx, tx, c.By.Tenant, key, digest)
	})
}

// Override handles PUT /api/v1/tools/{tool}/overrides. It sets the risk, effect
// and attempts of a tool.
func Override(c *request.Call, body wire.Overrides, key policy.Key) error {
	c.Detail = map[string]any{"risk": request.NilIfZero(body.Risk), "effect": request.NilIfZero(body.Effect), "max_attempts": request.NilIfZero(body.MaxAttempts)}
	return setTool(c, key, "tool "+key.String()+" overridden", func(ctx context.Context, tx pgx.Tx) error {
		set := catalog.Overrides{Risk: policy.ToolRisk(body.Risk), Effect: body.Effect, MaxAttempts: body.MaxAttempts}
		return catalog.ConfigureTool(ctx, tx, c.By.Tenant, key, set)
	})
}
