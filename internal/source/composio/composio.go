// Package composio is the source of tools behind Composio's API, version 3.1,
// which calls another provider with the account that a user connected.
//
// Composio accepts no idempotency key. It returns a provider's failures,
// including rate limits, with status 200. No field distinguishes rate limits
// from other failures, and the package does not parse their text. Therefore a
// call is of class once unless its tool is tagged as read-only, and a failure of
// the provider is never retried automatically for class once.
package composio

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// DefaultURL is the address of Composio.
const DefaultURL = "https://backend.composio.dev"

// Bounds of one listing.
const (
	pageSize = 500
	maxPages = 100
	maxTools = 10_000
)

// Config configures a source of one user's tools.
type Config struct {
	// Name is the source's name in errors.
	Name string `json:"-"`
	// URL is Composio's address; empty means DefaultURL.
	URL string `json:"url"`
	// APIKey is the key of a project.
	APIKey rest.Secret `json:"-"`
	// UserID is the user of the project whose connected accounts are used.
	UserID string `json:"user_id"`
	// ConnectedAccountID is the account to use; empty means that Composio
	// chooses.
	ConnectedAccountID string `json:"connected_account_id"`
	// Toolkits are the slugs of the listed toolkits, at least one.
	Toolkits []string `json:"toolkits"`
	// Version is the version of the toolkits; empty means the latest.
	Version string `json:"version"`
	// HTTP bounds the requests.
	HTTP rest.Config `json:"-"`
}

// Source implements source.Source over one user of a Composio project.
type Source struct {
	cfg    Config
	client *rest.Client
	base   rest.Base
}

// New returns a source for the user in cfg. It checks cfg and does not connect
// yet.
func New(cfg Config) (*Source, error) {
	cfg.URL = cmp.Or(cfg.URL, DefaultURL)
	base, err := rest.ParseBase(cfg.URL)
	switch {
	case err != nil:
		return nil, fault.New(fault.Invalid, "composio source %s: url %s", cfg.Name, err)
	case cfg.APIKey.Empty() || !cfg.APIKey.FitsHeader():
		return nil, fault.New(fault.Invalid, "composio source %s: needs an api_key that can be sent in a header", cfg.Name)
	case cfg.UserID == "":
		return nil, fault.New(fault.Invalid, "composio source %s: needs a user_id", cfg.Name)
	case len(cfg.Toolkits) == 0 || slices.Contains(cfg.Toolkits, ""):
		return nil, fault.New(fault.Invalid, "composio source %s: needs the slugs of toolkits", cfg.Name)
	}
	cfg.Toolkits = slices.Clone(cfg.Toolkits)
	return &Source{cfg: cfg, client: rest.New(cfg.Name, cfg.HTTP), base: base}, nil
}

// List implements source.Source. It reads all pages of every toolkit.
func (s *Source) List(ctx context.Context) ([]source.Tool, error) {
	return s.client.List(ctx, func(ctx context.Context) ([]source.Tool, error) {
		tools := []source.Tool{}
		names := make(map[string]bool)
		for _, toolkit := range s.cfg.Toolkits {
			cursor := ""
			for n := 0; ; n++ {
				page, err := s.page(ctx, toolkit, cursor)
				if err != nil {
					return nil, err
				}
				for _, item := range page.Items {
					if names[item.Slug] {
						continue // it is in several toolkits
					}
					names[item.Slug] = true
					tool := item.tool()
					if !slug.MatchString(item.Slug) {
						tool = source.Tool{Name: item.Slug, Unusable: "its name cannot be part of an address"}
					}
					tools = append(tools, tool)
				}
				if len(tools) > maxTools || n >= maxPages {
					return nil, &source.ListError{Text: "there are more tools than can be listed"}
				}
				if page.Next == nil || *page.Next == "" {
					break
				}
				cursor = *page.Next
			}
		}
		return tools, nil
	})
}

// page is one page of a listing.
type page struct {
	Items []item  `json:"items"`
	Next  *string `json:"next_cursor"`
}

// item is a tool in Composio's format.
type item struct {
	Slug        string          `json:"slug"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input_parameters"`
	Output      json.RawMessage `json:"output_parameters"`
	Tags        []string        `json:"tags"`
}

func (s *Source) page(ctx context.Context, toolkit, cursor string) (page, error) {
	query := url.Values{"toolkit_slug": {toolkit}, "limit": {strconv.Itoa(pageSize)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if s.cfg.Version != "" {
		query.Set("toolkit_versions", s.cfg.Version)
	}
	at, _ := s.base.URL(query, "api", "v3.1", "tools")
	reply := s.client.Send(ctx, rest.Request{Method: http.MethodGet, URL: at, Header: s.header()})
	var p page
	if !reply.Succeeded() || !reply.Decode(&p) || p.Items == nil {
		return page{}, reply.ListError()
	}
	return p, nil
}

// tool converts a definition. Composio's tags are the names of MCP's hints.
func (i item) tool() source.Tool {
	t := source.Tool{
		Name: i.Slug, Title: i.Name, Description: i.Description,
		InputSchema:  rest.ObjectOr(i.Input, json.RawMessage(`{"type":"object"}`)),
		OutputSchema: rest.ObjectOr(i.Output, nil),
		Hints: source.Hints{
			ReadOnly:   slices.Contains(i.Tags, "readOnlyHint"),
			Idempotent: slices.Contains(i.Tags, "idempotentHint"),
		},
		Effect: envelope.EffectOnce,
	}
	if slices.Contains(i.Tags, "destructiveHint") {
		t.Hints.Destructive = new(true)
	}
	if slices.Contains(i.Tags, "openWorldHint") {
		t.Hints.OpenWorld = new(true)
	}
	if t.Hints.ReadOnly {
		// The tag is a claim of the source, which readers of the hints evaluate.
		t.Effect = ""
	}
	return t
}

// Execute implements source.Source.
func (s *Source) Execute(ctx context.Context, call source.Call) source.Outcome {
	return s.client.Execute(ctx, call, func(ctx context.Context) source.Observation { return s.execute(ctx, call) })
}

func (s *Source) execute(ctx context.Context, call source.Call) source.Observation {
	args, ok := rest.Object(call.Args)
	if !ok {
		return source.Refuse(source.CodeInvalidArgs, "")
	}
	if !slug.MatchString(call.Tool) {
		return source.Refuse(source.CodeUnknownTool, "")
	}
	body, err := json.Marshal(struct {
		UserID    string          `json:"user_id"`
		Account   string          `json:"connected_account_id,omitzero"`
		Version   string          `json:"version,omitzero"`
		Arguments json.RawMessage `json:"arguments"`
	}{s.cfg.UserID, s.cfg.ConnectedAccountID, s.cfg.Version, args})
	if err != nil {
		return source.Refuse(source.CodeInvalidArgs, "")
	}
	at, _ := s.base.URL(nil, "api", "v3.1", "tools", "execute", call.Tool)
	reply := s.client.Send(ctx, rest.Request{Method: http.MethodPost, URL: at, Header: s.header(), Body: body})
	o := reply.Observe()
	if !o.Answered {
		return o
	}
	var answer struct {
		Successful *bool  `json:"successful"`
		LogID      string `json:"log_id"`
	}
	if !reply.Decode(&answer) || answer.Successful == nil {
		return o.Malformed()
	}
	o.ProviderID = answer.LogID
	if !*answer.Successful {
		return o.ToolFailed()
	}
	return o
}

func (s *Source) header() http.Header {
	return http.Header{"X-Api-Key": {s.cfg.APIKey.Reveal()}}
}

// slug matches the names of Composio's tools.
var slug = regexp.MustCompile(`^[0-9A-Za-z_]{1,200}$`)

// Close implements source.Source.
func (s *Source) Close() error { return s.client.Close() }

var _ source.Source = (*Source)(nil)
