package toolgateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/resttest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/source/toolgateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const toolCreate = "mcp-dav/create_contact"

// gateway behaves as the known gateway, and executes a call once per key if it
// gets one. It is behind a proxy that requires a token.
func gateway(s *resttest.Server) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer hush" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			answer(w, r)
		})
	}
	handle("GET /api/tools", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"server_id":"mcp-dav","name":"create_contact","description":"Creates."},
			{"server_id":"mcp-dav","name":"create_contact","description":"again"},
			{"server_id":"mcp-dav","name":"gone","description":"Is gone."},
			{"server_id":"..","name":"escape","description":""},
			{"server_id":"mcp-dav","description":"Has no name."},
			{"server_id":"a/b","name":"c","description":"Cannot be told from another."},
			{"server_id":"a b","name":"odd?name","description":"Is odd."}]`)
	})
	handle("GET /api/tools/{server}/{tool}", func(w http.ResponseWriter, r *http.Request) {
		switch r.PathValue("server") + "/" + r.PathValue("tool") {
		case toolCreate:
			_, _ = io.WriteString(w, `{"name":"create_contact","description":"Creates.","input_schema":{"type":"object","required":["name"]}}`)
		case "a b/odd?name":
			_, _ = io.WriteString(w, `{"name":"odd?name","description":"Is odd.","input_schema":null}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"detail":"Tool not found"}`)
		}
	})
	var mu sync.Mutex
	done := make(map[string]bool)
	handle("POST /api/tools/{server}/{tool}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var in struct{ Arguments map[string]any }
		fail := func(text string) {
			_, _ = fmt.Fprintf(w, `{"success":false,"result":null,"error":%q,"duration_ms":1.5}`, text)
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			fail("the words of the other side")
			return
		}
		name, ok := in.Arguments["name"].(string)
		switch {
		case r.PathValue("tool") != "create_contact":
			fail("Unknown tool")
		case !ok || name == "fail":
			fail("validation error")
		case name == "not ready":
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"detail":"Server manager not initialized"}`)
		default:
			if key := r.Header.Get("Idempotency-Key"); key == "" || !done[key] {
				done[key] = true
				s.Effect(r)
			}
			_, _ = fmt.Fprintf(w, `{"success":true,"result":[{"type":"text","text":%q}],"error":null,"duration_ms":12.3}`, r.Header.Get("Traceparent"))
		}
	})
	return mux
}

func open(t *testing.T, s *resttest.Server, change ...func(*toolgateway.Config)) source.Source {
	t.Helper()
	cfg := toolgateway.Config{
		Name: "home", URL: s.URL + "/", Header: map[string]rest.Secret{"authorization": rest.NewSecret("Bearer hush")},
		HTTP: resttest.Config(t),
	}
	for _, c := range change {
		c(&cfg)
	}
	src, err := toolgateway.New(cfg)
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

func create(name string) sourcetest.Invocation {
	return sourcetest.Invocation{Tool: toolCreate, Args: json.RawMessage(`{"name":"` + name + `"}`)}
}

func honouring(cfg *toolgateway.Config) { cfg.HonoursKey = true }

func TestConform(t *testing.T) {
	t.Parallel()
	const restarts = "the gateway keeps nothing of its clients"
	for name, test := range map[string]struct {
		change  []func(*toolgateway.Config)
		without map[sourcetest.Feature]string
	}{
		"as known": {nil, map[sourcetest.Feature]string{
			sourcetest.Restarts: restarts,
			sourcetest.Keys:     "the known gateway honours no key",
		}},
		"honouring keys": {[]func(*toolgateway.Config){honouring}, map[sourcetest.Feature]string{
			sourcetest.Restarts: restarts,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
				s := resttest.New(t, gateway)
				return sourcetest.Harness{
					Source: open(t, s, test.change...), Count: s.Count, Act: create("ana"), Fail: create("fail"),
					BadArgs: sourcetest.Invocation{Tool: toolCreate, Args: json.RawMessage(`{"name":7}`)},
					Hang:    create(resttest.MarkerHang), Lose: create(resttest.MarkerLose),
					Refused: []sourcetest.Invocation{create(resttest.MarkerRefused)},
					Limited: create(resttest.MarkerLimited), RetryAfter: 7 * time.Second, Without: test.without,
				}
			})
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	resttest.Faults(t, func(t *testing.T) resttest.Fixture {
		s := resttest.New(t, gateway)
		return resttest.Fixture{Server: s, Source: open(t, s), Act: create("ana"), Secret: "hush"}
	})
}

func TestListReadsEverySchema(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, gateway)
	for effect, change := range map[envelope.Effect][]func(*toolgateway.Config){envelope.EffectOnce: nil, envelope.EffectKeyed: {honouring}} {
		got, err := open(t, s, change...).List(t.Context())
		if err != nil {
			t.Fatalf("List() = %v", err)
		}

		want := []source.Tool{
			{Name: toolCreate, Title: "create_contact", Description: "Creates.", InputSchema: json.RawMessage(`{"type":"object","required":["name"]}`), Effect: effect},
			{Name: toolCreate, Unusable: "another tool has the same name"},
			{Name: "../escape", Unusable: "its name, or its server's, cannot be part of an address"},
			{Name: "mcp-dav", Unusable: "the gateway returns no name for the tool or its server"},
			{Name: "a/b/c", Unusable: "its name, or its server's, has a slash"},
			{Name: "a b/odd?name", Title: "odd?name", Description: "Is odd.", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: effect},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("List() (-want +got):\n%s", diff)
		}
	}
}

func TestListFails(t *testing.T) {
	t.Parallel()
	many := "[" + strings.Repeat(`{"server_id":"a","name":"b"},`, 1000) + `{"server_id":"a","name":"b"}]`
	for name, test := range map[string]struct {
		intercept resttest.Interceptor
		says      string
	}{
		"at another shape": {func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = io.WriteString(w, `{}`) }, "not valid"},
		"at too many":      {func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = io.WriteString(w, many) }, "more tools than can be listed"},
		"at a schema that cannot be had": {func(w http.ResponseWriter, r *http.Request, provider http.Handler) {
			if strings.Contains(r.URL.Path, "create_contact") {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			provider.ServeHTTP(w, r)
		}, "status 500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := resttest.New(t, gateway)
			s.Intercept(test.intercept)

			_, err := open(t, s).List(t.Context())

			if !errors.Is(err, fault.Busy) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("List() = %v, want fault.Busy that says %q", err, test.says)
			}
		})
	}
}

func TestExecute(t *testing.T) {
	t.Parallel()
	src := open(t, resttest.New(t, gateway))
	for name, test := range map[string]struct {
		tool, args string
		kind       source.Kind
		code       string
	}{
		"a gateway that is not ready": {toolCreate, `{"name":"not ready"}`, source.KindRetry, source.CodeUnreachable},
		"a tool that is unknown":      {"mcp-dav/nope", `{}`, source.KindRefused, source.CodeToolError},
		"a name without a server":     {"create_contact", `{}`, source.KindRefused, source.CodeUnknownTool},
		"a name of three parts":       {"a/b/c", `{}`, source.KindRefused, source.CodeUnknownTool},
		"a server of dots":            {"../create_contact", `{}`, source.KindRefused, source.CodeUnknownTool},
	} {
		got := src.Execute(t.Context(), source.Call{Key: "k", Tool: test.tool, Args: json.RawMessage(test.args), Effect: envelope.EffectOnce})

		if got.Kind != test.kind || got.Code != test.code || got.Unsure {
			t.Errorf("Execute(%s) = %s %q, want %s %q", name, got.Kind, got.Code, test.kind, test.code)
		}
	}
}

func TestTraceIsPropagated(t *testing.T) {
	t.Parallel()
	src := open(t, resttest.New(t, gateway))
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))

	got := src.Execute(ctx, source.Call{Tool: toolCreate, Args: create("ana").Args, Effect: envelope.EffectOnce})

	want := `{"content":[{"type":"text","text":"00-01000000000000000000000000000000-0200000000000000-00"}]}`
	if string(got.Result) != want {
		t.Errorf("Result = %s, want %s", got.Result, want)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	cfg := toolgateway.Config{URL: "http://127.0.0.1:1", Header: map[string]rest.Secret{"Authorization": rest.NewSecret("hush")}}
	made, err := toolgateway.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got := open(t, resttest.New(t, gateway), func(c *toolgateway.Config) { c.Header = cfg.Header }).Execute(t.Context(),
		source.Call{Tool: toolCreate, Args: create("ana").Args, Effect: envelope.EffectOnce})

	if got.Kind != source.KindRefused || got.Code != source.CodeUnauthorized {
		t.Errorf("Execute() with another's token = %s %q, want refused unauthorized", got.Kind, got.Code)
	}
	resttest.NotShown(t, "hush", cfg, &cfg, made, got)
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]toolgateway.Config{
		"a user in the address": {URL: "http://hush@x"},
		"no address":            {},
		"a header of two words": {URL: "http://x", Header: map[string]rest.Secret{"a b": rest.NewSecret("hush")}},
		"a value of two lines":  {URL: "http://x", Header: map[string]rest.Secret{"a": rest.NewSecret("hush\nhush")}},
	} {
		_, err := toolgateway.New(cfg)

		if !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("New() with %s = %v, want fault.Invalid without secrets", name, err)
		}
	}
}
