// Package sentry is the source of tools that read and triage the issues of a
// Sentry organisation. Its only write sets fields of an issue to values, so it
// is idempotent; only the period of ignoring an issue starts again.
package sentry

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// The tools.
const (
	// ToolIssueUpdate sets fields of an issue.
	ToolIssueUpdate = "sentry.issue.update"
	// ToolIssueGet reads an issue.
	ToolIssueGet = "sentry.issue.get"
	// ToolIssueList reads a page of issues.
	ToolIssueList = "sentry.issue.list"
)

// document defines the tools.
//
//go:embed tools.json
var document []byte

// DefaultURL is the address of Sentry for organisations without a region.
const DefaultURL = "https://sentry.io"

// Config configures a source of one organisation.
type Config struct {
	// Name is the source's name in errors.
	Name string `json:"-"`
	// URL is Sentry's address, which differs for some regions and self-hosted
	// installations; empty means DefaultURL.
	URL string `json:"url"`
	// Organization is the organisation's slug.
	Organization string `json:"organization"`
	// Token is an auth token with the scope event:read, and event:write for
	// writes.
	Token rest.Secret `json:"-"`
	// HTTP bounds the requests.
	HTTP rest.Config `json:"-"`
}

// api sends the requests of one organisation.
type api struct {
	client       *rest.Client
	base         rest.Base
	organization string
	token        rest.Secret
}

// New returns a source for the organisation in cfg. It checks cfg and does not
// connect yet.
func New(cfg Config) (*rest.Source, error) {
	cfg.URL = cmp.Or(cfg.URL, DefaultURL)
	base, err := rest.ParseBase(cfg.URL)
	if err != nil {
		return nil, fault.New(fault.Invalid, "sentry source %s: url %s", cfg.Name, err)
	}
	if _, ok := base.URL(nil, cfg.Organization, ""); !ok {
		return nil, fault.New(fault.Invalid, "sentry source %s: needs the organization's slug", cfg.Name)
	}
	if cfg.Token.Empty() || !cfg.Token.FitsHeader() {
		return nil, fault.New(fault.Invalid, "sentry source %s: needs a token that can be sent in a header", cfg.Name)
	}
	a := &api{client: rest.New(cfg.Name, cfg.HTTP), base: base, organization: cfg.Organization, token: cfg.Token}
	return rest.ParseSource(a.client, document, map[string]rest.Run{
		ToolIssueUpdate: a.update, ToolIssueGet: rest.WithArgs(a.get), ToolIssueList: rest.WithArgs(a.list),
	})
}

// send sends a request below the organisation's issues.
func (a *api) send(ctx context.Context, method string, query url.Values, body []byte, segments ...string) (rest.Reply, source.Observation) {
	at, ok := a.base.URL(query, append([]string{"api", "0", "organizations", a.organization, "issues"}, segments...)...)
	if !ok {
		return rest.Reply{}, source.Refuse(source.CodeInvalidArgs, "")
	}
	reply := a.client.Send(ctx, rest.Request{
		Method: method, URL: at, Body: body, Header: http.Header{"Authorization": {"Bearer " + a.token.Reveal()}},
	})
	o := reply.Observe()
	if o.Code == source.CodeRateLimited && o.RetryAfter == 0 {
		o.RetryAfter = rateLimitWait(reply.Header, time.Now())
	}
	return reply, o
}

// one sends a request about one issue and returns the issue.
func (a *api) one(ctx context.Context, method, id string, body []byte) source.Observation {
	reply, o := a.send(ctx, method, nil, body, id, "")
	if !o.Answered {
		return o
	}
	var issue struct{ ID string }
	if !reply.Decode(&issue) || issue.ID == "" {
		return o.Malformed()
	}
	o.ProviderID = issue.ID
	return o
}

// getArgs are the arguments of sentry.issue.get.
type getArgs struct {
	IssueID string `json:"issue_id"`
}

func (a *api) get(ctx context.Context, _ source.Call, args getArgs) source.Observation {
	return a.one(ctx, http.MethodGet, args.IssueID, nil)
}

func (a *api) update(ctx context.Context, call source.Call) source.Observation {
	fields := rest.Fields(call.Args)
	var id string
	if json.Unmarshal(fields["issue_id"], &id) != nil {
		return source.Refuse(source.CodeInvalidArgs, "")
	}
	delete(fields, "issue_id")
	body, err := json.Marshal(fields)
	if err != nil {
		return source.Refuse(source.CodeInvalidArgs, "")
	}
	return a.one(ctx, http.MethodPut, id, body)
}

// listArgs are the arguments of sentry.issue.list.
type listArgs struct {
	// Query is sent even if it is empty: without one, Sentry returns only
	// unresolved issues.
	Query                     *string
	Environment, Sort, Cursor string
	StatsPeriod               string `json:"statsPeriod"`
	Project                   []json.Number
	Limit                     json.Number
}

// list returns a page of issues, and the cursor of the next page, which Sentry
// sends in a header.
func (a *api) list(ctx context.Context, _ source.Call, args listArgs) source.Observation {
	query := url.Values{}
	for name, value := range map[string]string{
		"environment": args.Environment, "sort": args.Sort, "cursor": args.Cursor,
		"statsPeriod": args.StatsPeriod, "limit": args.Limit.String(),
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if args.Query != nil {
		query.Set("query", *args.Query)
	}
	for _, project := range args.Project {
		query.Add("project", project.String())
	}
	reply, o := a.send(ctx, http.MethodGet, query, nil, "")
	if !o.Answered {
		return o
	}
	page := struct {
		Issues []json.RawMessage `json:"issues"`
		Next   string            `json:"next_cursor,omitzero"`
	}{Next: next(reply.Header)}
	if !reply.Decode(&page.Issues) || page.Issues == nil {
		return o.Malformed()
	}
	result, err := json.Marshal(page)
	if err != nil {
		return o.Malformed()
	}
	o.Result = result
	return o
}

// next returns the cursor of the next page, if there is one. The header Link
// also has a cursor for an empty next page, marked as such.
func next(header http.Header) string {
	for link := range strings.SplitSeq(header.Get("Link"), ",") {
		params := map[string]string{}
		for part := range strings.SplitSeq(link, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			params[name] = strings.Trim(value, `"`)
		}
		if params["rel"] == "next" && params["results"] == "true" {
			return params["cursor"]
		}
	}
	return ""
}

// rateLimitWait returns the time until Sentry's rate limit resets; its header
// has the end in seconds of Unix time.
func rateLimitWait(header http.Header, now time.Time) time.Duration {
	at, err := strconv.ParseInt(header.Get("X-Sentry-Rate-Limit-Reset"), 10, 64)
	if err != nil {
		return 0
	}
	return min(max(time.Unix(at, 0).Sub(now), 0), source.MaxRetryAfter)
}
