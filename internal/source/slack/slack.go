// Package slack is the source of tools that write to a Slack workspace: over the
// Web API with a token, and over an incoming webhook.
//
// Slack accepts no idempotency key, so sending a message is of class once: if
// the answer is lost, it is unknown whether the message was sent. A source that
// marks its messages stores the call's key in the metadata of each, and
// slack.message.list finds it by that.
package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// DefaultURL is the address of Slack's Web API.
const DefaultURL = "https://slack.com/api"

// EventType is the type of a marked message's metadata; its payload holds the
// call's key as "idempotency_key".
const EventType = "countersign_action"

// Config configures a source of one workspace. It needs a token, a webhook, or
// both; tools without credentials are omitted.
type Config struct {
	// Name is the source's name in errors.
	Name string `json:"-"`
	// URL is the Web API's address; empty means DefaultURL.
	URL string `json:"url"`
	// Token is a bot or user token.
	Token rest.Secret `json:"-"`
	// Webhook is the address of an incoming webhook, which is itself a secret.
	Webhook rest.Secret `json:"-"`
	// MarkMessages stores the call's key in the metadata of messages that
	// slack.message.send sends. Every app in the channel can read it.
	MarkMessages bool `json:"mark_messages"`
	// HTTP bounds the requests.
	HTTP rest.Config `json:"-"`
}

// api sends the requests of one workspace.
type api struct {
	client  *rest.Client
	base    rest.Base
	token   rest.Secret
	webhook rest.Secret
	mark    bool
}

// New returns a source for the workspace in cfg. It checks cfg and does not
// connect yet.
func New(cfg Config) (*rest.Source, error) {
	cfg.URL = cmp.Or(cfg.URL, DefaultURL)
	base, err := rest.ParseBase(cfg.URL)
	if err != nil {
		return nil, fault.New(fault.Invalid, "slack source %s: url %s", cfg.Name, err)
	}
	if !cfg.Token.FitsHeader() {
		return nil, fault.New(fault.Invalid, "slack source %s: the token cannot be sent in a header", cfg.Name)
	}
	if cfg.Token.Empty() && cfg.Webhook.Empty() {
		return nil, fault.New(fault.Invalid, "slack source %s: needs a token or a webhook_url", cfg.Name)
	}
	if !cfg.Webhook.Empty() {
		if _, err := rest.ParseBase(cfg.Webhook.Reveal()); err != nil {
			return nil, fault.New(fault.Invalid, "slack source %s: webhook_url %s", cfg.Name, err)
		}
	}
	a := &api{
		client: rest.New(cfg.Name, cfg.HTTP), base: base,
		token: cfg.Token, webhook: cfg.Webhook, mark: cfg.MarkMessages,
	}
	return rest.ParseSource(a.client, document, a.run())
}

// write returns a function that calls a method of the Web API with a JSON body.
// conflicts are the errors that mean that the effect exists already.
func (a *api) write(method string, conflicts ...string) rest.Run {
	return func(ctx context.Context, call source.Call) source.Observation {
		at, _ := a.base.URL(nil, method)
		reply := a.client.Send(ctx, rest.Request{Method: http.MethodPost, URL: at, Header: a.header(), Body: call.Args})
		return observe(reply, conflicts)
	}
}

// send sends a message, marked if configured.
func (a *api) send(ctx context.Context, call source.Call) source.Observation {
	if a.mark {
		fields := rest.Fields(call.Args)
		metadata, err := json.Marshal(map[string]any{
			"event_type": EventType, "event_payload": map[string]string{"idempotency_key": call.Key},
		})
		if err != nil {
			return source.Refuse(source.CodeInvalidArgs, "")
		}
		fields["metadata"] = metadata
		if call.Args, err = json.Marshal(fields); err != nil {
			return source.Refuse(source.CodeInvalidArgs, "")
		}
	}
	return a.write("chat.postMessage")(ctx, call)
}

// listArgs are the arguments of slack.message.list.
type listArgs struct {
	Channel, Latest, Oldest, Cursor string
	Inclusive                       bool
	Limit                           json.Number
}

// list reads messages of a channel.
func (a *api) list(ctx context.Context, _ source.Call, args listArgs) source.Observation {
	query := url.Values{"channel": {args.Channel}, "include_all_metadata": {"true"}}
	for name, value := range map[string]string{
		"latest": args.Latest, "oldest": args.Oldest, "cursor": args.Cursor, "limit": args.Limit.String(),
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if args.Inclusive {
		query.Set("inclusive", "true")
	}
	at, _ := a.base.URL(query, "conversations.history")
	return observe(a.client.Send(ctx, rest.Request{Method: http.MethodGet, URL: at, Header: a.header()}), nil)
}

// post sends a message to the incoming webhook, which answers "ok" in plain
// text.
func (a *api) post(ctx context.Context, call source.Call) source.Observation {
	reply := a.client.Send(ctx, rest.Request{Method: http.MethodPost, URL: a.webhook.Reveal(), Body: call.Args})
	o := reply.Observe()
	if !o.Answered {
		return o
	}
	if string(reply.Body) != "ok" {
		return o.Malformed()
	}
	o.Result = json.RawMessage(`{"ok":true}`)
	return o
}

func (a *api) header() http.Header {
	return http.Header{"Authorization": {"Bearer " + a.token.Reveal()}}
}
