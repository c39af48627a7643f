// Package toolgateway is the source of tools behind a gateway that exposes MCP
// servers over REST: GET /api/tools and POST /api/tools/{server}/{tool}.
//
// Such a gateway omits MCP's information about a tool's behaviour and failures:
// a failed tool cannot be distinguished from a successful one, unless the
// gateway itself could not call it. The package does not parse the text to find
// out. The name of a tool is "server/tool".
package toolgateway

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// Bounds of one listing. Every tool needs a separate request for its schema.
const (
	maxTools = 1000
	atOnce   = 8
)

// Config configures a source of one gateway.
type Config struct {
	// Name is the source's name in errors.
	Name string `json:"-"`
	// URL is the gateway's address, http or https.
	URL string `json:"url"`
	// Header is sent with every request. It is for a proxy in front of a gateway
	// without credentials of its own.
	Header map[string]rest.Secret `json:"-"`
	// HonoursKey reports whether the gateway, unlike known ones, executes a call
	// once for each value of the header Idempotency-Key. Its tools are then of
	// class keyed.
	HonoursKey bool `json:"honours_key"`
	// HTTP bounds the requests.
	HTTP rest.Config `json:"-"`
}

// Source implements source.Source over one gateway.
type Source struct {
	cfg    Config
	client *rest.Client
	base   rest.Base
}

// New returns a source for the gateway in cfg. It checks cfg and does not
// connect yet.
func New(cfg Config) (*Source, error) {
	base, err := rest.ParseBase(cfg.URL)
	if err != nil {
		return nil, fault.New(fault.Invalid, "tool gateway source %s: url %s", cfg.Name, err)
	}
	for name, value := range cfg.Header {
		if !httpguts.ValidHeaderFieldName(name) || !value.FitsHeader() {
			return nil, fault.New(fault.Invalid, "tool gateway source %s: a header cannot be sent", cfg.Name)
		}
	}
	cfg.Header = maps.Clone(cfg.Header)
	return &Source{cfg: cfg, client: rest.New(cfg.Name, cfg.HTTP), base: base}, nil
}

// entry is a tool in the gateway's list.
type entry struct {
	Server      string `json:"server_id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// List implements source.Source. A tool that disappears before its schema is
// read is omitted; one with an invalid name is unusable.
func (s *Source) List(ctx context.Context) ([]source.Tool, error) {
	return s.client.List(ctx, func(ctx context.Context) ([]source.Tool, error) {
		at, _ := s.base.URL(nil, "api", "tools")
		reply := s.client.Send(ctx, rest.Request{Method: http.MethodGet, URL: at, Header: s.header(ctx)})
		var entries []entry
		if !reply.Succeeded() || !reply.Decode(&entries) || entries == nil {
			return nil, reply.ListError()
		}
		if len(entries) > maxTools {
			return nil, &source.ListError{Text: "there are more tools than can be listed"}
		}
		tools := make([]source.Tool, len(entries))
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(atOnce)
		names := make(map[string]bool, len(entries))
		for i, e := range entries {
			tools[i] = listed(e, names)
			if tools[i].Unusable != "" {
				continue
			}
			g.Go(func() error {
				var err error
				tools[i], err = s.look(ctx, e)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		return slices.DeleteFunc(tools, func(t source.Tool) bool { return t.Name == "" && t.Unusable == "" }), nil
	})
}

// listed returns the tool of an entry, without its schemas, and marks its name
// as taken.
func listed(e entry, taken map[string]bool) source.Tool {
	name := e.Server + "/" + e.Name
	_, _, ok := split(name)
	switch {
	case e.Server == "" || e.Name == "":
		return source.Tool{Name: e.Server + e.Name, Unusable: "the gateway returns no name for the tool or its server"}
	case !ok:
		return source.Tool{Name: name, Unusable: "its name, or its server's, has a slash"}
	case taken[name]:
		return source.Tool{Name: name, Unusable: "another tool has the same name"}
	}
	taken[name] = true
	return source.Tool{Name: name}
}

// look reads one tool's definition; the zero Tool if it no longer exists.
func (s *Source) look(ctx context.Context, e entry) (source.Tool, error) {
	at, ok := s.base.URL(nil, "api", "tools", e.Server, e.Name)
	if !ok {
		return source.Tool{Name: e.Server + "/" + e.Name, Unusable: "its name, or its server's, cannot be part of an address"}, nil
	}
	reply := s.client.Send(ctx, rest.Request{Method: http.MethodGet, URL: at, Header: s.header(ctx)})
	var seen struct {
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	if reply.Status == http.StatusNotFound {
		return source.Tool{}, nil
	}
	if err := reply.DecodePage(&seen); err != nil {
		return source.Tool{}, err
	}
	tool := source.Tool{
		Name: e.Server + "/" + e.Name, Title: e.Name, Description: seen.Description,
		InputSchema: rest.ObjectOr(seen.InputSchema, json.RawMessage(`{"type":"object"}`)),
		Effect:      envelope.EffectOnce,
	}
	if s.cfg.HonoursKey {
		tool.Effect = envelope.EffectKeyed
	}
	return tool, nil
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
	server, tool, ok := split(call.Tool)
	if !ok {
		return source.Refuse(source.CodeUnknownTool, "")
	}
	at, ok := s.base.URL(nil, "api", "tools", server, tool)
	if !ok {
		return source.Refuse(source.CodeUnknownTool, "")
	}
	// Without the wrapper, a tool with a parameter named "arguments" would get
	// only its value.
	body, err := json.Marshal(map[string]json.RawMessage{"arguments": args})
	if err != nil {
		return source.Refuse(source.CodeInvalidArgs, "")
	}
	header := s.header(ctx)
	if s.cfg.HonoursKey {
		// The header must not be sent to a gateway that does not honour it, since
		// net/http may repeat a request that has it.
		header.Set("Idempotency-Key", call.Key)
	}
	return observe(s.client.Send(ctx, rest.Request{Method: http.MethodPost, URL: at, Header: header, Body: body}))
}

// observe converts the answer to a call. Its status is 200 whether or not the
// gateway could call the tool.
func observe(reply rest.Reply) source.Observation {
	o := reply.Observe()
	if reply.Status == http.StatusServiceUnavailable {
		// The gateway's own response that it is not ready; proxies in front of
		// it have other forms.
		var refusal struct{ Detail *string }
		if reply.Decode(&refusal) && refusal.Detail != nil {
			return o.NotExecuted(source.CodeUnreachable)
		}
	}
	if !o.Answered {
		return o
	}
	var answer struct {
		Success *bool           `json:"success"`
		Result  json.RawMessage `json:"result"`
	}
	switch {
	case !reply.Decode(&answer) || answer.Success == nil:
		return o.Malformed()
	case !*answer.Success:
		return o.ToolFailed()
	}
	result, err := json.Marshal(map[string]json.RawMessage{"content": answer.Result})
	if err != nil {
		return o.Malformed()
	}
	o.Result = result
	return o
}

// split splits a tool's name.
func split(name string) (server, tool string, ok bool) {
	server, tool, ok = strings.Cut(name, "/")
	return server, tool, ok && server != "" && tool != "" && !strings.Contains(tool, "/")
}

func (s *Source) header(ctx context.Context) http.Header {
	h := make(http.Header, len(s.cfg.Header)+1)
	for name, value := range s.cfg.Header {
		h.Set(name, value.Reveal())
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	return h
}

// Close implements source.Source.
func (s *Source) Close() error { return s.client.Close() }

var _ source.Source = (*Source)(nil)
