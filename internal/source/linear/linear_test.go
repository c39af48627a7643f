package linear_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/linear"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/resttest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const apiKey = "lin_api_hush"

// workspace behaves as in Linear's documentation, where there is any: one
// endpoint, errors with extensions, ids chosen by the client.
type workspace struct {
	server *resttest.Server
	// taken is the answer to a creation with an existing id.
	taken string

	mu    sync.Mutex
	there map[string]bool
}

type operation struct {
	Query     string
	Variables struct {
		ID    string
		Input map[string]any
	}
}

func graphqlError(code, kind string) string {
	return fmt.Sprintf(`{"data":null,"errors":[{"message":"the words of the other side","extensions":{"code":%q,"type":%q}}]}`, code, kind)
}

func (l *workspace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var op operation
	if err := json.NewDecoder(r.Body).Decode(&op); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, graphqlError("GRAPHQL_PARSE_FAILED", "graphql error"))
		return
	}
	if auth := r.Header.Get("Authorization"); auth != apiKey && auth != "Bearer oauth-hush" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, graphqlError("AUTHENTICATION_ERROR", "authentication error"))
		return
	}
	status, text := l.answer(r, op)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // the client may be gone
}

func (l *workspace) answer(r *http.Request, op operation) (int, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := op.Variables
	// A team or an issue E-x makes a mutation fail with x.
	for _, name := range []string{"teamId", "issueId"} {
		if word, fails := strings.CutPrefix(fmt.Sprint(v.Input[name]), "E-"); fails {
			return http.StatusOK, graphqlError("", word)
		}
	}
	id := fmt.Sprint(v.Input["id"])
	switch {
	case strings.Contains(op.Query, "issueCreate"), strings.Contains(op.Query, "commentCreate"):
		if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 4 {
			return http.StatusOK, graphqlError("INVALID_INPUT", "invalid input")
		}
		if l.there[id] {
			return http.StatusOK, l.taken
		}
		l.there[id] = true
		l.server.Effect(r)
		if strings.Contains(op.Query, "commentCreate") {
			return http.StatusOK, fmt.Sprintf(`{"data":{"commentCreate":{"success":true,"comment":{"id":%q,"url":"u"}}}}`, id)
		}
		return http.StatusOK, fmt.Sprintf(`{"data":{"issueCreate":{"success":true,"issue":{"id":%q,"identifier":"ENG-1","url":"u"}}}}`, id)
	case strings.Contains(op.Query, "issueUpdate"):
		l.server.Effect(r)
		return http.StatusOK, fmt.Sprintf(`{"data":{"issueUpdate":{"success":%t,"issue":{"id":%q}}}}`, v.ID != "stuck", v.ID)
	case strings.Contains(op.Query, "teams("):
		return http.StatusOK, `{"data":{"teams":{"nodes":[{"id":"t1","key":"ENG","name":"Engineering"}],"pageInfo":{"hasNextPage":false}}}}`
	case strings.Contains(op.Query, "comment("):
		if l.there[v.ID] {
			return http.StatusOK, fmt.Sprintf(`{"data":{"comment":{"id":%q,"url":"u"}}}`, v.ID)
		}
	case l.there[v.ID] || v.ID == "ENG-1":
		return http.StatusOK, fmt.Sprintf(`{"data":{"issue":{"id":%q,"identifier":"ENG-1"}}}`, v.ID)
	}
	return http.StatusOK, graphqlError("INVALID_INPUT", "invalid input")
}

func serve(t *testing.T, taken string) *resttest.Server {
	t.Helper()
	return resttest.New(t, func(s *resttest.Server) http.Handler {
		return &workspace{server: s, taken: taken, there: make(map[string]bool)}
	})
}

func open(t *testing.T, s *resttest.Server, change ...func(*linear.Config)) source.Source {
	t.Helper()
	cfg := linear.Config{
		Name: "work", URL: s.URL + "/graphql", APIKey: rest.NewSecret(apiKey),
		HTTP: resttest.Config(t),
	}
	for _, c := range change {
		c(&cfg)
	}
	src, err := linear.New(cfg)
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return resttest.Keyed(src)
}

func issue(team string) sourcetest.Invocation {
	return sourcetest.Invocation{Tool: linear.ToolIssueCreate, Args: json.RawMessage(`{"teamId":"` + team + `","title":"Broken"}`)}
}

func comment(issue string) sourcetest.Invocation {
	return sourcetest.Invocation{Tool: linear.ToolCommentCreate, Args: json.RawMessage(`{"issueId":"` + issue + `","body":"Why?"}`)}
}

func TestConform(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]func(string) sourcetest.Invocation{"issues": issue, "comments": comment} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
				s := serve(t, graphqlError("INVALID_INPUT", "invalid input"))
				return sourcetest.Harness{
					Source: open(t, s), Count: s.Count, Act: in("x"), Fail: in("E-a word of tomorrow"),
					BadArgs: sourcetest.Invocation{Tool: linear.ToolIssueCreate, Args: json.RawMessage(`{"teamId":"x","title":"Broken","id":"mine"}`)},
					Hang:    in(resttest.MarkerHang), Lose: in(resttest.MarkerLose),
					Refused: []sourcetest.Invocation{in(resttest.MarkerRefused)},
					Limited: in(resttest.MarkerLimited), RetryAfter: 7 * time.Second,
					Without: map[sourcetest.Feature]string{
						sourcetest.Restarts: "Linear keeps nothing of its clients",
					},
				}
			})
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	resttest.Faults(t, func(t *testing.T) resttest.Fixture {
		s := serve(t, "")
		return resttest.Fixture{Server: s, Source: open(t, s), Act: issue("x"), Secret: "hush"}
	})
}

func TestRepeatedCreationIsAConflict(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]string{
		"invalid input":      graphqlError("INVALID_INPUT", "invalid input"),
		"a word of tomorrow": graphqlError("TOMORROW", "tomorrow"),
		"no success":         `{"data":{"issueCreate":{"success":false,"issue":null}}}`,
		"no extensions":      `{"errors":[{"message":"no"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, in := range []sourcetest.Invocation{issue("x"), comment("x")} {
				s := serve(t, taken)
				src := open(t, s)
				call := source.Call{Key: "k", Tool: in.Tool, Args: in.Args, Effect: envelope.EffectKeyed, Attempt: 1}

				first := src.Execute(t.Context(), call)
				call.Attempt = 2
				second := src.Execute(t.Context(), call)

				id := linear.ID(in.Tool, "k")
				if first.Kind != source.KindDone || first.ProviderID != id {
					t.Errorf("Execute(%s) = %s %q with id %q, want done with %q", in.Tool, first.Kind, first.Code, first.ProviderID, id)
				}
				if second.Kind != source.KindConflict || second.ProviderID != id || second.Code != source.CodeConflict {
					t.Errorf("Execute(%s) again = %s %q with id %q, want conflict with %q", in.Tool, second.Kind, second.Code, second.ProviderID, id)
				}
				if n := s.Count("k"); n != 1 {
					t.Errorf("effects = %d, want 1", n)
				}
			}
		})
	}
}

func TestUnverifiedRefusalIsUnknown(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.Intercept(func(w http.ResponseWriter, r *http.Request, provider http.Handler) {
		var op operation
		raw, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(raw, &op) != nil {
			panic(http.ErrAbortHandler)
		}
		if strings.Contains(op.Query, "issueCreate") {
			_, _ = io.WriteString(w, graphqlError("INVALID_INPUT", "invalid input"))
			return
		}
		panic(http.ErrAbortHandler)
	})
	src := open(t, s)

	got := src.Execute(t.Context(), source.Call{Key: "k", Tool: linear.ToolIssueCreate, Args: issue("x").Args, Effect: envelope.EffectKeyed})

	if got.Kind != source.KindRetry || !got.Unsure || got.Code != source.CodeLost {
		t.Errorf("Execute() = %s %q, unsure: %t, want to retry, unsure", got.Kind, got.Code, got.Unsure)
	}
}

func TestErrorsAreClassifiedByType(t *testing.T) {
	t.Parallel()
	src := open(t, serve(t, ""))
	for word, want := range map[string]struct {
		once, keyed source.Kind
		code        string
	}{
		"invalid input":          {source.KindRefused, source.KindRefused, source.CodeInvalidArgs},
		"user error":             {source.KindRefused, source.KindRefused, source.CodeInvalidArgs},
		"forbidden":              {source.KindRefused, source.KindRefused, source.CodeUnauthorized},
		"feature not accessible": {source.KindRefused, source.KindRefused, source.CodeUnauthorized},
		"ratelimited":            {source.KindRetry, source.KindRetry, source.CodeRateLimited},
		"internal error":         {source.KindUnknown, source.KindRetry, source.CodeServerError},
		"usage limit exceeded":   {source.KindRefused, source.KindRefused, source.CodeToolError},
	} {
		for effect, kind := range map[envelope.Effect]source.Kind{envelope.EffectOnce: want.once, envelope.EffectKeyed: want.keyed} {
			got := src.Execute(t.Context(), source.Call{Key: "k", Tool: linear.ToolIssueCreate, Args: issue("E-" + word).Args, Effect: effect})

			if got.Kind != kind || got.Code != want.code {
				t.Errorf("Execute() with %s, %s = %s %q, want %s %q", word, effect, got.Kind, got.Code, kind, want.code)
			}
			resttest.NotShown(t, "the words of the other side", got.Message)
		}
	}
}

func TestRateLimitHasStatus400(t *testing.T) {
	t.Parallel()
	reset := func(in time.Duration) string { return strconv.FormatInt(time.Now().Add(in).UnixMilli(), 10) }
	for name, test := range map[string]struct {
		header   map[string]string
		min, max time.Duration
	}{
		"requests": {map[string]string{
			"X-RateLimit-Requests-Remaining": "0", "X-RateLimit-Requests-Reset": reset(time.Hour),
		}, 50 * time.Minute, time.Hour},
		"the exhausted one of two": {map[string]string{
			"X-RateLimit-Requests-Remaining": "5", "X-RateLimit-Requests-Reset": reset(5 * time.Hour),
			"X-RateLimit-Complexity-Remaining": "0", "X-RateLimit-Complexity-Reset": reset(time.Hour),
		}, 50 * time.Minute, time.Hour},
		"retry-after":      {map[string]string{"Retry-After": "9"}, 9 * time.Second, 9 * time.Second},
		"nothing said":     {nil, 0, 0},
		"a reset gone by":  {map[string]string{"X-RateLimit-Requests-Remaining": "0", "X-RateLimit-Requests-Reset": "12"}, 0, 0},
		"a reset too far":  {map[string]string{"X-RateLimit-Requests-Remaining": "0", "X-RateLimit-Requests-Reset": reset(9999 * time.Hour)}, source.MaxRetryAfter, source.MaxRetryAfter},
		"a reset misspelt": {map[string]string{"X-RateLimit-Requests-Remaining": "0", "X-RateLimit-Requests-Reset": "soon"}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "")
			s.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				for k, v := range test.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, graphqlError("RATELIMITED", "ratelimited"))
			})
			src := open(t, s)

			got := src.Execute(t.Context(), source.Call{Key: "k", Tool: linear.ToolIssueCreate, Args: issue("x").Args, Effect: envelope.EffectOnce})

			if got.Kind != source.KindRetry || got.Code != source.CodeRateLimited || got.Unsure {
				t.Errorf("Execute() = %s %q, want retry rate_limited", got.Kind, got.Code)
			}
			if got.RetryAfter < test.min || got.RetryAfter > test.max {
				t.Errorf("RetryAfter = %v, want %v to %v", got.RetryAfter, test.min, test.max)
			}
		})
	}
}

func TestEveryToolWorks(t *testing.T) {
	t.Parallel()
	src := open(t, serve(t, ""), func(cfg *linear.Config) { cfg.APIKey, cfg.Token = rest.Secret{}, rest.NewSecret("oauth-hush") })
	for _, test := range []struct{ tool, args, want string }{
		{linear.ToolIssueUpdate, `{"id":"ENG-1","priority":2}`, `{"id":"ENG-1"}`},
		{linear.ToolIssueGet, `{"id":"ENG-1"}`, `{"id":"ENG-1","identifier":"ENG-1"}`},
		{linear.ToolTeamList, ``, `{"nodes":[{"id":"t1","key":"ENG","name":"Engineering"}],"pageInfo":{"hasNextPage":false}}`},
	} {
		got := src.Execute(t.Context(), source.Call{Tool: test.tool, Args: json.RawMessage(test.args), Effect: envelope.EffectIdempotent})

		if got.Kind != source.KindDone || string(got.Result) != test.want {
			t.Errorf("Execute(%s) = %s %q %s, want done %s", test.tool, got.Kind, got.Code, got.Result, test.want)
		}
	}
	for _, test := range []struct {
		tool, args, code string
		kind             source.Kind
	}{
		{linear.ToolIssueGet, `{"id":"ENG-404"}`, source.CodeInvalidArgs, source.KindRefused},
		{linear.ToolIssueUpdate, `{"id":"stuck","priority":2}`, source.CodeToolError, source.KindRefused},
		{linear.ToolIssueUpdate, `{"id":"ENG-1"}`, source.CodeInvalidArgs, source.KindRefused},
	} {
		got := src.Execute(t.Context(), source.Call{Tool: test.tool, Args: json.RawMessage(test.args), Effect: envelope.EffectOnce})

		if got.Kind != test.kind || got.Code != test.code {
			t.Errorf("Execute(%s, %s) = %s %q, want %s %q", test.tool, test.args, got.Kind, got.Code, test.kind, test.code)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	src := open(t, s, func(cfg *linear.Config) { cfg.APIKey = rest.NewSecret("lin_api_other_hush") })

	got := src.Execute(t.Context(), source.Call{Tool: linear.ToolIssueCreate, Args: issue("x").Args, Effect: envelope.EffectOnce})

	if got.Kind != source.KindRefused || got.Code != source.CodeUnauthorized {
		t.Errorf("Execute() with another's key = %s %q, want refused unauthorized", got.Kind, got.Code)
	}
	cfg := linear.Config{APIKey: rest.NewSecret(apiKey)}
	made, err := linear.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	resttest.NotShown(t, "hush", cfg, &cfg, made, *made, src, got)
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]linear.Config{
		"no credential":             {},
		"two credentials":           {APIKey: rest.NewSecret("hush"), Token: rest.NewSecret("hush")},
		"a key of two lines":        {APIKey: rest.NewSecret("hush\nhush")},
		"an address without a host": {URL: "/graphql", APIKey: rest.NewSecret("hush")},
	} {
		_, err := linear.New(cfg)

		if !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("New() with %s = %v, want fault.Invalid without the secret", name, err)
		}
	}
}

func TestIDIsDerivedFromToolAndKey(t *testing.T) {
	t.Parallel()
	id := linear.ID(linear.ToolIssueCreate, "k")

	if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 4 || parsed.Variant() != uuid.RFC4122 {
		t.Errorf("ID() = %s, want a UUID of version 4", id)
	}
	if id != linear.ID(linear.ToolIssueCreate, "k") || id == linear.ID(linear.ToolIssueCreate, "l") || id == linear.ID(linear.ToolCommentCreate, "k") {
		t.Error("ID() is not one for each tool and key")
	}
}
