package composio_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/composio"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/resttest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	apiKey   = "ak_hush"
	toolSend = "GMAIL_SEND_EMAIL"
)

// backend behaves as in Composio's documentation: failures of a provider have
// status 200, failures of Composio itself have others.
func backend(s *resttest.Server) http.Handler {
	mux := http.NewServeMux()
	refuse := func(w http.ResponseWriter, status int, message string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%q,"code":1234,"status":%d,"request_id":"r1"}}`, message, status)
	}
	handle := func(pattern string, answer http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Api-Key") != apiKey {
				refuse(w, http.StatusUnauthorized, "Invalid API key")
				return
			}
			answer(w, r)
		})
	}
	handle("GET /api/v3.1/tools", func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); q.Get("toolkit_slug") + " " + q.Get("cursor") {
		case "gmail ":
			_, _ = io.WriteString(w, `{"items":[{"slug":"GMAIL_SEND_EMAIL","name":"Send","description":"Sends.","tags":["openWorldHint","important"],
				"input_parameters":{"type":"object","properties":{"to":{"type":"string"}}},"output_parameters":{"type":"object"}},
				{"slug":"../escape","name":"no"}],"next_cursor":"c2","total_pages":2,"current_page":1,"total_items":3}`)
		case "gmail c2":
			_, _ = io.WriteString(w, `{"items":[{"slug":"GMAIL_FETCH","name":"Fetch","tags":["readOnlyHint","idempotentHint"],"input_parameters":null},
				{"slug":"GMAIL_SEND_EMAIL","name":"again"}],"next_cursor":null}`)
		case "slack ":
			_, _ = io.WriteString(w, `{"items":[{"slug":"SLACK_DELETE","name":"Delete","tags":["destructiveHint"]}],"next_cursor":""}`)
		default:
			_, _ = io.WriteString(w, `{"items":[],"next_cursor":"again"}`)
		}
	})
	handle("POST /api/v3.1/tools/execute/{slug}", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			UserID    string `json:"user_id"`
			Account   string `json:"connected_account_id"`
			Version   string
			Arguments map[string]any
		}
		to := ""
		if err := json.NewDecoder(r.Body).Decode(&in); err == nil {
			to, _ = in.Arguments["to"].(string)
		}
		switch {
		case r.PathValue("slug") != toolSend:
			refuse(w, http.StatusNotFound, "Tool not found")
		case to == "" || in.UserID != "u1":
			refuse(w, http.StatusBadRequest, "the words of the other side")
		case to == "nobody":
			_, _ = io.WriteString(w, `{"data":{},"error":"429 Too Many Requests","successful":false,"log_id":"log_2"}`)
		default:
			s.Effect(r)
			_, _ = fmt.Fprintf(w, `{"data":{"account":%q,"version":%q},"error":null,"successful":true,"log_id":"log_1"}`, in.Account, in.Version)
		}
	})
	return mux
}

func open(t *testing.T, s *resttest.Server, change ...func(*composio.Config)) source.Source {
	t.Helper()
	cfg := composio.Config{
		Name: "apps", URL: s.URL, APIKey: rest.NewSecret(apiKey), UserID: "u1", Toolkits: []string{"gmail", "slack"},
		HTTP: resttest.Config(t),
	}
	for _, c := range change {
		c(&cfg)
	}
	src, err := composio.New(cfg)
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

func send(to string) sourcetest.Invocation {
	return sourcetest.Invocation{Tool: toolSend, Args: json.RawMessage(`{"to":"` + to + `"}`)}
}

func TestConform(t *testing.T) {
	t.Parallel()
	sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
		s := resttest.New(t, backend)
		return sourcetest.Harness{
			Source: open(t, s), Count: s.Count, Act: send("ana"), Fail: send("nobody"),
			BadArgs: sourcetest.Invocation{Tool: toolSend, Args: json.RawMessage(`{"to":7}`)},
			Hang:    send(resttest.MarkerHang), Lose: send(resttest.MarkerLose),
			Refused: []sourcetest.Invocation{send(resttest.MarkerRefused)},
			Limited: send(resttest.MarkerLimited), RetryAfter: 7 * time.Second,
			Without: map[sourcetest.Feature]string{
				sourcetest.Keys:     "Composio takes no idempotency key",
				sourcetest.Restarts: "Composio keeps nothing of its clients",
			},
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	resttest.Faults(t, func(t *testing.T) resttest.Fixture {
		s := resttest.New(t, backend)
		return resttest.Fixture{Server: s, Source: open(t, s), Act: send("ana"), Secret: "hush"}
	})
}

func TestListReadsAllPagesOfAllToolkits(t *testing.T) {
	t.Parallel()
	got, err := open(t, resttest.New(t, backend)).List(t.Context())
	if err != nil {
		t.Fatalf("List() = %v", err)
	}

	want := []source.Tool{
		{
			Name: toolSend, Title: "Send", Description: "Sends.", Hints: source.Hints{OpenWorld: new(true)}, Effect: envelope.EffectOnce,
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}}}`),
			OutputSchema: json.RawMessage(`{"type":"object"}`),
		},
		{Name: "../escape", Unusable: "its name cannot be part of an address"},
		{Name: "GMAIL_FETCH", Title: "Fetch", Hints: source.Hints{ReadOnly: true, Idempotent: true}, InputSchema: json.RawMessage(`{"type":"object"}`)},
		{
			Name: "SLACK_DELETE", Title: "Delete", Hints: source.Hints{Destructive: new(true)}, Effect: envelope.EffectOnce,
			InputSchema: json.RawMessage(`{"type":"object"}`),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("List() (-want +got):\n%s", diff)
	}
}

func TestListFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change    func(*composio.Config)
		intercept resttest.Interceptor
		says      string
	}{
		"with another's key":   {change: func(cfg *composio.Config) { cfg.APIKey = rest.NewSecret("hush-other") }, says: "status 401"},
		"at pages without end": {change: func(cfg *composio.Config) { cfg.Toolkits = []string{"endless"} }, says: "more tools than can be listed"},
		"at an answer of another shape": {
			intercept: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = io.WriteString(w, `{"tools":[]}`) },
			says:      "not valid",
		},
		"at an answer that is too large": {
			intercept: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				_, _ = io.WriteString(w, strings.Repeat("x", resttest.MaxBodyBytes+1))
			},
			says: "larger than allowed",
		},
		"at a cut": {
			intercept: func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) },
			says:      "was lost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := resttest.New(t, backend)
			if test.intercept != nil {
				s.Intercept(test.intercept)
			}
			var change []func(*composio.Config)
			if test.change != nil {
				change = append(change, test.change)
			}

			_, err := open(t, s, change...).List(t.Context())

			if !errors.Is(err, fault.Busy) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "hush") {
				t.Errorf("List() = %v, want fault.Busy that says %q", err, test.says)
			}
		})
	}
}

func TestExecuteNamesAccountAndVersion(t *testing.T) {
	t.Parallel()
	src := open(t, resttest.New(t, backend), func(cfg *composio.Config) { cfg.ConnectedAccountID, cfg.Version = "ca_1", "20250905_00" })

	got := src.Execute(t.Context(), source.Call{Tool: toolSend, Args: send("ana").Args, Effect: envelope.EffectOnce})

	if got.Kind != source.KindDone || got.ProviderID != "log_1" || !strings.Contains(string(got.Result), `{"account":"ca_1","version":"20250905_00"}`) {
		t.Errorf("Execute() = %s %q %s, want done with the account and the version", got.Kind, got.Code, got.Result)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	src := open(t, resttest.New(t, backend), func(cfg *composio.Config) { cfg.APIKey = rest.NewSecret("ak_other_hush") })

	got := src.Execute(t.Context(), source.Call{Tool: toolSend, Args: send("ana").Args, Effect: envelope.EffectOnce})

	if got.Kind != source.KindRefused || got.Code != source.CodeUnauthorized {
		t.Errorf("Execute() with another's key = %s %q, want refused unauthorized", got.Kind, got.Code)
	}
	cfg := composio.Config{APIKey: rest.NewSecret(apiKey), UserID: "u1", Toolkits: []string{"gmail"}}
	made, err := composio.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	resttest.NotShown(t, "hush", cfg, &cfg, made, src, got)
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	key := rest.NewSecret("hush")
	for name, cfg := range map[string]composio.Config{
		"no key":      {UserID: "u", Toolkits: []string{"gmail"}},
		"two lines":   {APIKey: rest.NewSecret("hush\nhush"), UserID: "u", Toolkits: []string{"gmail"}},
		"no user":     {APIKey: key, Toolkits: []string{"gmail"}},
		"no toolkits": {APIKey: key, UserID: "u"},
		"a query":     {APIKey: key, UserID: "u", Toolkits: []string{"gmail"}, URL: "https://x/?key=hush"},
	} {
		_, err := composio.New(cfg)

		if !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("New() with %s = %v, want fault.Invalid without the secret", name, err)
		}
	}
}
