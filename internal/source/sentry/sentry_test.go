package sentry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/resttest"
	"github.com/countersign-dev/countersign/internal/source/sentry"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "sntrys_hush"

// organisation behaves as in Sentry's documentation.
func organisation(s *resttest.Server) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+token {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"detail":"Invalid token"}`)
				return
			}
			answer(w, r)
		})
	}
	const issues = "/api/0/organizations/acme/issues/"
	handle("GET "+issues+"{$}", func(w http.ResponseWriter, r *http.Request) {
		results := strconv.FormatBool(r.URL.Query().Get("cursor") == "")
		w.Header().Set("Link", `<https://x/?&cursor=0:0:1>; rel="previous"; results="false"; cursor="0:0:1", `+
			`<https://x/?&cursor=0:100:0>; rel="next"; results="`+results+`"; cursor="0:100:0"`)
		_, _ = fmt.Fprintf(w, `[{"id":"1","title":%q}]`, r.URL.RawQuery) // the client may be gone
	})
	handle("GET "+issues+"{id}/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"id":%q}`, r.PathValue("id"))
	})
	handle("PUT "+issues+"{id}/", func(w http.ResponseWriter, r *http.Request) {
		var fields map[string]any
		err := json.NewDecoder(r.Body).Decode(&fields)
		switch {
		case err != nil, fields["issue_id"] != nil:
			w.WriteHeader(http.StatusBadRequest)
		case r.PathValue("id") == "404":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"detail":"The requested resource does not exist"}`)
		default:
			s.Effect(r)
			_, _ = fmt.Fprintf(w, `{"id":%q,"status":%q}`, r.PathValue("id"), fields["status"])
		}
	})
	return mux
}

func open(t *testing.T, s *resttest.Server, change ...func(*sentry.Config)) source.Source {
	t.Helper()
	cfg := sentry.Config{
		Name: "errors", URL: s.URL, Organization: "acme", Token: rest.NewSecret(token),
		HTTP: resttest.Config(t),
	}
	for _, c := range change {
		c(&cfg)
	}
	src, err := sentry.New(cfg)
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

func resolve(id string) sourcetest.Invocation {
	return sourcetest.Invocation{Tool: sentry.ToolIssueUpdate, Args: json.RawMessage(`{"issue_id":"` + id + `","status":"resolved"}`)}
}

func TestConform(t *testing.T) {
	t.Parallel()
	sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
		s := resttest.New(t, organisation)
		return sourcetest.Harness{
			Source: open(t, s), Count: s.Count, Act: resolve("7"),
			BadArgs: sourcetest.Invocation{Tool: sentry.ToolIssueUpdate, Args: json.RawMessage(`{"issue_id":"7","status":"gone"}`)},
			Hang:    resolve(resttest.MarkerHang), Lose: resolve(resttest.MarkerLose),
			Refused: []sourcetest.Invocation{resolve(resttest.MarkerRefused)},
			Limited: resolve(resttest.MarkerLimited), RetryAfter: 7 * time.Second,
			Without: map[sourcetest.Feature]string{
				sourcetest.Keys:       "Sentry takes no idempotency key; its update is idempotent by nature",
				sourcetest.ToolErrors: "Sentry fails with a status",
				sourcetest.Restarts:   "Sentry keeps nothing of its clients",
			},
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	resttest.Faults(t, func(t *testing.T) resttest.Fixture {
		s := resttest.New(t, organisation)
		return resttest.Fixture{Server: s, Source: open(t, s), Act: resolve("7"), Secret: "hush"}
	})
}

func TestEveryToolWorks(t *testing.T) {
	t.Parallel()
	src := open(t, resttest.New(t, organisation))
	for _, test := range []struct{ tool, args, want, id string }{
		{sentry.ToolIssueUpdate, `{"issue_id":"7","status":"ignored","statusDetails":{"ignoreDuration":60}}`, `{"id":"7","status":"ignored"}`, "7"},
		{sentry.ToolIssueGet, `{"issue_id":"7"}`, `{"id":"7"}`, "7"},
		{sentry.ToolIssueList, `{"query":"","project":[1,2],"limit":5}`, `{"issues":[{"id":"1","title":"limit=5&project=1&project=2&query="}],"next_cursor":"0:100:0"}`, ""},
		{sentry.ToolIssueList, `{"cursor":"0:100:0"}`, `{"issues":[{"id":"1","title":"cursor=0%3A100%3A0"}]}`, ""},
	} {
		got := src.Execute(t.Context(), source.Call{Tool: test.tool, Args: json.RawMessage(test.args), Effect: envelope.EffectIdempotent})

		result := strings.ReplaceAll(string(got.Result), `\u0026`, "&")
		if got.Kind != source.KindDone || result != test.want || got.ProviderID != test.id {
			t.Errorf("Execute(%s) = %s %q %s with id %q, want done %s with id %q", test.tool, got.Kind, got.Code, result, got.ProviderID, test.want, test.id)
		}
	}
}

func TestRateLimitReset(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reset    string
		min, max time.Duration
	}{
		"in a minute":  {strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10), 30 * time.Second, time.Minute},
		"gone by":      {"12", 0, 0},
		"misspelt":     {"soon", 0, 0},
		"far too late": {"99999999999", source.MaxRetryAfter, source.MaxRetryAfter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := resttest.New(t, organisation)
			s.Intercept(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.Header().Set("X-Sentry-Rate-Limit-Reset", test.reset)
				w.WriteHeader(http.StatusTooManyRequests)
			})

			got := open(t, s).Execute(t.Context(), source.Call{Tool: sentry.ToolIssueUpdate, Args: resolve("7").Args, Effect: envelope.EffectIdempotent})

			if got.Kind != source.KindRetry || got.Unsure || got.RetryAfter < test.min || got.RetryAfter > test.max {
				t.Errorf("Execute() = %s after %v, want retry after %v to %v", got.Kind, got.RetryAfter, test.min, test.max)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, organisation)
	src := open(t, s)
	for args, code := range map[string]string{
		`{"issue_id":"404","status":"resolved"}`:           source.CodeNotFound,
		`{"issue_id":"../../projects","status":"ignored"}`: source.CodeInvalidArgs,
		`{"issue_id":"7"}`:                                 source.CodeInvalidArgs,
	} {
		got := src.Execute(t.Context(), source.Call{Tool: sentry.ToolIssueUpdate, Args: json.RawMessage(args), Effect: envelope.EffectIdempotent})

		if got.Kind != source.KindRefused || got.Code != code {
			t.Errorf("Execute(%s) = %s %q, want refused %q", args, got.Kind, got.Code, code)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, organisation)
	src := open(t, s, func(cfg *sentry.Config) { cfg.Token = rest.NewSecret("sntrys_other_hush") })

	got := src.Execute(t.Context(), source.Call{Tool: sentry.ToolIssueUpdate, Args: resolve("7").Args, Effect: envelope.EffectIdempotent})

	if got.Kind != source.KindRefused || got.Code != source.CodeUnauthorized {
		t.Errorf("Execute() with another's token = %s %q, want refused unauthorized", got.Kind, got.Code)
	}
	cfg := sentry.Config{Organization: "acme", Token: rest.NewSecret(token)}
	made, err := sentry.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	resttest.NotShown(t, "hush", cfg, &cfg, made, *made, src, got)
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]sentry.Config{
		"no token":                {Organization: "acme"},
		"no organisation":         {Token: rest.NewSecret("hush")},
		"a token of two lines":    {Organization: "acme", Token: rest.NewSecret("hush\nhush")},
		"an organisation of dots": {Organization: "..", Token: rest.NewSecret("hush")},
		"an address that is none": {URL: "sentry.io", Organization: "acme", Token: rest.NewSecret("hush")},
	} {
		_, err := sentry.New(cfg)

		if !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("New() with %s = %v, want fault.Invalid without the secret", name, err)
		}
	}
}
