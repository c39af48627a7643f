// Package linear is the source of tools that read and write a Linear workspace
// over its GraphQL API.
//
// The id of a created object is derived from the call's key, so that a repeated
// call cannot create a second object: creations are of class keyed. If Linear
// refuses a creation, the package searches for that id before it reports a
// failure.
package linear

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// DefaultURL is the address of Linear's GraphQL API.
const DefaultURL = "https://api.linear.app/graphql"

// Config configures a source of one workspace. It needs one credential.
type Config struct {
	// Name is the source's name in errors.
	Name string `json:"-"`
	// URL is the API's address; empty means DefaultURL.
	URL string `json:"url"`
	// APIKey is a personal API key.
	APIKey rest.Secret `json:"-"`
	// Token is an OAuth access token.
	Token rest.Secret `json:"-"`
	// HTTP bounds the requests.
	HTTP rest.Config `json:"-"`
}

// api sends the requests of one workspace.
type api struct {
	client        *rest.Client
	at            string
	authorization rest.Secret
}

// New returns a source for the workspace in cfg. It checks cfg and does not
// connect yet.
func New(cfg Config) (*rest.Source, error) {
	cfg.URL = cmp.Or(cfg.URL, DefaultURL)
	base, err := rest.ParseBase(cfg.URL)
	if err != nil {
		return nil, fault.New(fault.Invalid, "linear source %s: url %s", cfg.Name, err)
	}
	if cfg.APIKey.Empty() == cfg.Token.Empty() {
		return nil, fault.New(fault.Invalid, "linear source %s: needs either an api_key or a token", cfg.Name)
	}
	if !cfg.APIKey.FitsHeader() || !cfg.Token.FitsHeader() {
		return nil, fault.New(fault.Invalid, "linear source %s: the credential cannot be sent in a header", cfg.Name)
	}
	a := &api{client: rest.New(cfg.Name, cfg.HTTP), authorization: cfg.APIKey}
	if cfg.APIKey.Empty() {
		a.authorization = rest.NewSecret("Bearer " + cfg.Token.Reveal())
	}
	a.at, _ = base.URL(nil)
	return rest.ParseSource(a.client, document, map[string]rest.Run{
		ToolIssueCreate:   a.create(mutateIssueCreate, queryIssue),
		ToolIssueUpdate:   a.update,
		ToolIssueGet:      a.read(queryIssue),
		ToolCommentCreate: a.create(mutateCommentCreate, queryComment),
		ToolTeamList:      a.read(queryTeams),
	})
}

// ask sends one operation.
func (a *api) ask(ctx context.Context, operation string, variables any) (answer, source.Observation) {
	body, err := json.Marshal(map[string]any{"query": operation, "variables": variables})
	if err != nil {
		return answer{}, source.Refuse(source.CodeInvalidArgs, "")
	}
	return observe(a.client.Send(ctx, rest.Request{
		Method: http.MethodPost, URL: a.at, Body: body,
		Header: http.Header{"Authorization": {a.authorization.Reveal()}},
	}))
}

// read returns a function that runs a query with the arguments as variables.
func (a *api) read(query string) rest.Run {
	return func(ctx context.Context, call source.Call) source.Observation {
		got, o := a.ask(ctx, query, call.Args)
		if !o.Answered || o.Code != "" {
			return o
		}
		if got.empty() {
			return o.Permanently(source.CodeNotFound)
		}
		return got.done(o)
	}
}

// update changes an issue, with the argument "id" separate from the others.
func (a *api) update(ctx context.Context, call source.Call) source.Observation {
	input := rest.Fields(call.Args)
	id := input["id"]
	delete(input, "id")
	got, o := a.ask(ctx, mutateIssueUpdate, map[string]any{"id": id, "input": input})
	return got.changed(o)
}

// create returns a function that runs a mutation under the id derived from the
// call's key. find is the query for the object with that id.
func (a *api) create(mutation, find string) rest.Run {
	return func(ctx context.Context, call source.Call) source.Observation {
		id := ID(call.Tool, call.Key)
		input := map[string]any{"id": id}
		for name, value := range rest.Fields(call.Args) {
			input[name] = value
		}
		got, o := a.ask(ctx, mutation, map[string]any{"input": input})
		o = got.changed(o)
		if !got.refused {
			return o
		}
		// Linear's response for a duplicate id is not documented.
		there, sought := a.ask(ctx, find, map[string]string{"id": id})
		switch {
		case sought.Answered && sought.Code == "" && !there.empty():
			return there.done(sought).AlreadyDone()
		case sought.Answered && sought.Code == "" || there.refused:
			return o
		}
		return sought.Unanswered(sought.Code)
	}
}

// ID returns the id of an object that a tool creates under a key: a UUID in the
// form of version 4, as Linear requires, although it is not random.
func ID(tool, key string) string {
	sum := sha256.Sum256([]byte("countersign\x00" + tool + "\x00" + key))
	id := uuid.UUID(sum[:16])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
