package client

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

const (
	sourcesPath       = "/api/v1/sources"
	subscriptionsPath = "/api/v1/subscriptions"
)

// ToolFilter narrows a list of tools; its zero fields do not.
type ToolFilter struct {
	// Query is words to search for, best matches first. Drifted and Quarantined are "true" or "false".
	Query, Source, Risk, Drifted, Quarantined string
	Limit                                     int
}

// Tools lists the tools that the token may see, with the state of their
// sources.
func (c *Client) Tools(ctx context.Context, f ToolFilter) (wire.ToolList, error) {
	var all wire.ToolList
	query := given("q", f.Query, "source", f.Source, "risk", f.Risk, "drifted", f.Drifted, "quarantined", f.Quarantined)
	for {
		query.Set("limit", strconv.Itoa(min(cmp.Or(f.Limit-len(all.Items), maxPage), maxPage)))
		page, err := read[wire.ToolList](ctx, c, toolsPath, query)
		if err != nil {
			return wire.ToolList{}, err
		}
		all.Items, all.Sources = append(all.Items, page.Items...), page.Sources
		if all.NextCursor = page.NextCursor; page.NextCursor == nil || f.Limit > 0 && len(all.Items) >= f.Limit {
			return all, nil
		}
		query.Set("cursor", *page.NextCursor)
	}
}

// Tool reads a tool by source:name, its full name, or a name that only one
// source has.
func (c *Client) Tool(ctx context.Context, name string) (wire.Tool, error) {
	return read[wire.Tool](ctx, c, toolPath(name), nil)
}

// DiffTool returns the changes of a tool's definition since it was accepted.
// Tools of settings are named as source:name.
func (c *Client) DiffTool(ctx context.Context, tool string) (wire.ToolDiff, error) {
	return read[wire.ToolDiff](ctx, c, toolPath(tool)+"/diff", nil)
}

// AcceptTool accepts the definition that has a digest.
func (c *Client) AcceptTool(ctx context.Context, tool string, in wire.ToolAcceptance) error {
	return c.tell(ctx, http.MethodPost, toolPath(tool)+"/accept", nil, in)
}

// OverrideTool sets a tool's overrides; omitted ones return to the values from
// the source.
func (c *Client) OverrideTool(ctx context.Context, tool string, o wire.Overrides) error {
	return c.tell(ctx, http.MethodPut, toolPath(tool)+"/overrides", nil, o)
}

// DescribeTool sets an operator's description of a tool.
func (c *Client) DescribeTool(ctx context.Context, tool string, d wire.ToolDescription) error {
	return c.tell(ctx, http.MethodPut, toolPath(tool)+"/description", nil, d)
}

// PutToolRule sets the recipients, the required scopes and the retries of a
// tool.
func (c *Client) PutToolRule(ctx context.Context, tool string, r wire.ToolRule) error {
	return c.tell(ctx, http.MethodPut, toolPath(tool)+"/rule", nil, r)
}

// ReconcileRules lists the tools that have a reconcile rule.
func (c *Client) ReconcileRules(ctx context.Context) ([]wire.ReconcileRule, error) {
	return list[wire.ReconcileRule](ctx, c, "/api/v1/reconcile-rules", nil)
}

// PutReconcileRule sets the reconcile rule of a tool.
func (c *Client) PutReconcileRule(ctx context.Context, tool string, r wire.ReconcileRule) error {
	r.Tool, r.ETag = "", ""
	return c.tell(ctx, http.MethodPut, toolPath(tool)+"/reconcile-rule", nil, r)
}

// DeleteReconcileRule removes the reconcile rule of a tool.
func (c *Client) DeleteReconcileRule(ctx context.Context, tool string) error {
	return c.tell(ctx, http.MethodDelete, toolPath(tool)+"/reconcile-rule", nil, nil)
}

// SnapshotRules lists the tools that have snapshots around their calls.
func (c *Client) SnapshotRules(ctx context.Context) ([]wire.SnapshotRule, error) {
	return list[wire.SnapshotRule](ctx, c, "/api/v1/snapshot-rules", nil)
}

// PutSnapshotRule sets the read around the calls of a tool.
func (c *Client) PutSnapshotRule(ctx context.Context, tool string, r wire.SnapshotRule) error {
	r.Tool, r.ETag = "", ""
	return c.tell(ctx, http.MethodPut, toolPath(tool)+"/snapshot-rule", nil, r)
}

// DeleteSnapshotRule removes the read around the calls of a tool.
func (c *Client) DeleteSnapshotRule(ctx context.Context, tool string) error {
	return c.tell(ctx, http.MethodDelete, toolPath(tool)+"/snapshot-rule", nil, nil)
}

// Guide reads, as Markdown, the instructions for an agent; with a query
// only about the tools that match.
func (c *Client) Guide(ctx context.Context, query string) (string, error) {
	_, text, err := c.exchange(ctx, request{method: http.MethodGet, path: "/api/v1/guide", query: given("q", query)})
	return string(text), err
}

// Notes reads a page of the notes that agents kept, newest first. A limit of
// zero means 50; the cursor is the NextCursor of the page before.
func (c *Client) Notes(ctx context.Context, limit int, cursor string) (wire.Page[wire.AgentNote], error) {
	return read[wire.Page[wire.AgentNote]](ctx, c, "/api/v1/notes", given("limit", number(limit), "cursor", cursor))
}

// Sources lists the sources of tools.
func (c *Client) Sources(ctx context.Context) ([]wire.Source, error) {
	return list[wire.Source](ctx, c, sourcesPath, nil)
}

// PutSource makes or changes a source.
func (c *Client) PutSource(ctx context.Context, id string, src wire.SourceInput) error {
	return c.tell(ctx, http.MethodPut, sourcePath(id), nil, src)
}

// AcceptSource accepts the address of a source as it was read, with its ETag.
func (c *Client) AcceptSource(ctx context.Context, src wire.Source) error {
	_, err := c.do(ctx, request{method: http.MethodPost, path: sourcePath(src.ID) + "/accept", header: ifMatch(src.ETag)}, nil)
	return err
}

// DeleteSource removes a source and its tools.
func (c *Client) DeleteSource(ctx context.Context, id string) error {
	return c.tell(ctx, http.MethodDelete, sourcePath(id), nil, nil)
}

// RefreshSource requests a listing of a source's tools now. It is complete
// when the source's ListedAt is later than the returned time.
func (c *Client) RefreshSource(ctx context.Context, id string) (time.Time, error) {
	out, err := post[wire.Refresh](ctx, c, sourcePath(id)+"/refresh", nil)
	return out.AskedAt, err
}

// BeginSourceLogin begins a login of a source, which a person goes on with.
func (c *Client) BeginSourceLogin(ctx context.Context, id string, in wire.SourceLoginInput) (wire.BegunSourceLogin, error) {
	return post[wire.BegunSourceLogin](ctx, c, sourcePath(id)+"/login", in)
}

// FinishSourceLogin asks for the tokens of a login that a person went on with. For a
// device, call it again after WaitSeconds until it is done.
func (c *Client) FinishSourceLogin(ctx context.Context, id string, in wire.SourceLoginAnswer) (wire.FinishedSourceLogin, error) {
	return post[wire.FinishedSourceLogin](ctx, c, sourcePath(id)+"/login/finish", in)
}

// RemoveSourceLogin deletes the tokens of a source, and revokes them at its
// authorization server; calls are then made without one.
func (c *Client) RemoveSourceLogin(ctx context.Context, id string) (wire.RemovedSourceLogin, error) {
	var removed wire.RemovedSourceLogin
	_, err := c.do(ctx, request{method: http.MethodDelete, path: sourcePath(id) + "/login"}, &removed)
	return removed, err
}

func sourcePath(id string) string { return sourcesPath + "/" + url.PathEscape(id) }

// Subscriptions lists the subscriptions.
func (c *Client) Subscriptions(ctx context.Context) ([]wire.Subscription, error) {
	return list[wire.Subscription](ctx, c, subscriptionsPath, nil)
}

// PutSubscription makes or changes a subscription.
func (c *Client) PutSubscription(ctx context.Context, name string, in wire.SubscriptionInput) (wire.Subscription, error) {
	var out wire.Subscription
	_, err := c.do(ctx, request{method: http.MethodPut, path: subscriptionPath(name), in: in}, &out)
	return out, err
}

// DeleteSubscription removes a subscription.
func (c *Client) DeleteSubscription(ctx context.Context, name string) error {
	return c.tell(ctx, http.MethodDelete, subscriptionPath(name), nil, nil)
}

// TestSubscription sends a test message and returns the action that sends it,
// after its end or after wait.
func (c *Client) TestSubscription(ctx context.Context, name string, wait time.Duration) (wire.Action, error) {
	var a wire.Action
	rq := request{method: http.MethodPost, path: subscriptionPath(name) + "/test"}
	_, err := c.do(ctx, rq.waiting("wait", wait), &a)
	return a, err
}

// ResendDelivery sends the message of an ended delivery again, and returns the action
// that sends it, after its end or after wait.
func (c *Client) ResendDelivery(ctx context.Context, delivery envelope.ActionID, in wire.ResendRequest, wait time.Duration) (wire.Action, error) {
	var a wire.Action
	rq := request{method: http.MethodPost, path: actionPath(delivery) + "/resend", in: in}
	_, err := c.do(ctx, rq.waiting("wait", wait), &a)
	return a, err
}

func subscriptionPath(name string) string { return subscriptionsPath + "/" + url.PathEscape(name) }
