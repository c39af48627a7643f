package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mcp"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

// web is an MCP server over HTTP with an interceptor.
type web struct {
	*httptest.Server
	effects effectLog
	opts    *sdk.StreamableHTTPOptions
	done    chan struct{} // closed at the end of the test

	inner atomic.Pointer[http.Handler]
	// intercept may answer a request itself; method and tool are those of the
	// JSON-RPC request. Set it before the first request.
	intercept func(w http.ResponseWriter, r *http.Request, method, tool string) bool
}

func newWeb(t *testing.T, opts *sdk.StreamableHTTPOptions) *web {
	t.Helper()
	s := &web{effects: newEffectLog(t), opts: opts, done: make(chan struct{})}
	s.restart()
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		close(s.done)
		s.Server.Close()
	})
	return s
}

// restart drops all sessions.
func (s *web) restart() {
	server := s.effects.server("http", s.done)
	var h http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, s.opts)
	s.inner.Store(&h)
}

func (s *web) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var req struct {
		Method string
		Params struct{ Name string }
	}
	if r.Method == http.MethodPost {
		_ = json.Unmarshal(body, &req) // a response has neither
	}
	if s.intercept != nil && s.intercept(w, r, req.Method, req.Params.Name) {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch req.Params.Name {
	case "lose":
		(*s.inner.Load()).ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case "limited":
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		(*s.inner.Load()).ServeHTTP(w, r)
	}
}

func (s *web) config() mcp.Config {
	return mcp.Config{Transport: mcp.TransportHTTP, URL: s.URL, Guard: safehttp.Guard{Networks: safehttp.Loopback()}}
}

func TestConformHTTP(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]sdk.StreamableHTTPOptions{
		"events":    {},
		"json":      {JSONResponse: true},
		"stateless": {Stateless: true, JSONResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
				s := newWeb(t, &opts)
				args := json.RawMessage(`{"note":"n"}`)
				return sourcetest.Harness{
					Source:     open(t, s.config()),
					Act:        sourcetest.Invocation{Tool: "act", Args: args},
					Count:      s.effects.count,
					Fail:       sourcetest.Invocation{Tool: "fail", Args: args},
					Refused:    []sourcetest.Invocation{{Tool: "rpc_error", Args: args}, {Tool: "ask_elsewhere", Args: args}},
					BadArgs:    sourcetest.Invocation{Tool: "act", Args: json.RawMessage(`{"note":7}`)},
					Hang:       sourcetest.Invocation{Tool: "hang", Args: args},
					Lose:       sourcetest.Invocation{Tool: "lose", Args: args},
					Limited:    sourcetest.Invocation{Tool: "limited", Args: args},
					RetryAfter: 7 * time.Second,
					Restart:    func(*testing.T) { s.restart() },
					Without: map[sourcetest.Feature]string{
						sourcetest.Keys: "the fixture counts every call, so that one that was doubled shows",
					},
				}
			})
		})
	}
}

func TestListReadsAllPages(t *testing.T) {
	t.Parallel()
	src := open(t, newWeb(t, nil).config())

	tools, err := src.List(t.Context())
	if err != nil {
		t.Fatalf("List() = %v", err)
	}

	if len(tools) != 17 {
		t.Errorf("List() has %d tools, want 17", len(tools))
	}
	want := source.Hints{Idempotent: true, Destructive: new(false), Given: true}
	if tools[0].Name != "act" || tools[0].Title != "Act" || !cmp.Equal(tools[0].Hints, want) {
		t.Errorf("List()[0] = %+v, want act with its hints", tools[0])
	}
	if tools[0].OutputSchema == nil || tools[1].OutputSchema != nil {
		t.Errorf("output schemas of %s and %s = %s and %s", tools[0].Name, tools[1].Name, tools[0].OutputSchema, tools[1].OutputSchema)
	}
	got := src.Execute(t.Context(), callOf(t, "nope", envelope.EffectKeyed))
	expect(t, got, source.KindRefused, source.CodeUnknownTool)
}

func TestListAfterServerRestart(t *testing.T) {
	t.Parallel()
	s := newWeb(t, nil)
	src := open(t, s.config())
	if _, err := src.List(t.Context()); err != nil {
		t.Fatalf("List() = %v", err)
	}

	s.restart()
	_, err := src.List(t.Context())

	if err != nil {
		t.Errorf("List() after a restart = %v", err)
	}
}

// TestListKeepsUnusableTools checks that unusable tools are listed: the catalog
// counts and names them.
func TestListKeepsUnusableTools(t *testing.T) {
	t.Parallel()
	s := newWeb(t, &sdk.StreamableHTTPOptions{JSONResponse: true})
	s.intercept = func(w http.ResponseWriter, _ *http.Request, method, _ string) bool {
		if method != "tools/list" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		const schema = `"inputSchema":{"type":"object"}`
		// The handshake of this protocol version takes two requests.
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"",%[1]s},{"name":"a",%[1]s},{"name":"a",%[1]s},{"name":"",%[1]s}]}}`, schema)
		return true
	}

	tools, err := open(t, s.config()).List(t.Context())

	if err != nil || len(tools) != 4 {
		t.Errorf("List() = %d tools, %v, want all four", len(tools), err)
	}
}

func TestListStopsAtEndlessPages(t *testing.T) {
	t.Parallel()
	s := newWeb(t, &sdk.StreamableHTTPOptions{JSONResponse: true})
	var pages atomic.Int32
	s.intercept = func(w http.ResponseWriter, _ *http.Request, method, _ string) bool {
		if method != "tools/list" {
			return false
		}
		n := pages.Add(1)
		w.Header().Set("Content-Type", "application/json")
		// The handshake of this protocol version takes two requests.
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":{"tools":[],"nextCursor":"again"}}`, n+2)
		return true
	}
	src := open(t, s.config())

	_, err := src.List(t.Context())

	if err == nil || pages.Load() != 100 {
		t.Errorf("List() = %v after %d pages, want an error after 100", err, pages.Load())
	}
}

func TestResultIsUnchanged(t *testing.T) {
	t.Parallel()
	src := open(t, newWeb(t, nil).config())

	got := src.Execute(t.Context(), callOf(t, "content", envelope.EffectOnce))

	expect(t, got, source.KindDone, "")
	if got.ProviderID != "made-1" {
		t.Errorf("ProviderID = %q, want made-1", got.ProviderID)
	}
	if !strings.Contains(string(got.Result), "12345678901234567890") {
		t.Errorf("Result = %s, want the number as it was", got.Result)
	}
	var result struct {
		Content    []map[string]any `json:"content"`
		Structured map[string]any   `json:"structured"`
	}
	if err := json.Unmarshal(got.Result, &result); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"type": "text", "text": "a < b"},
		{"type": "image", "data": "AQI=", "mimeType": "image/png"},
		{"type": "audio", "data": "Aw==", "mimeType": "audio/wav"},
		{"type": "resource_link", "uri": "file:///x", "name": "x"},
		{"type": "resource", "resource": map[string]any{"uri": "file:///y", "text": "y"}},
	}
	if diff := cmp.Diff(want, result.Content); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestCallCarriesKeyAndTrace(t *testing.T) {
	t.Parallel()
	src := open(t, newWeb(t, nil).config())
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	}))
	call := callOf(t, "meta", envelope.EffectKeyed)
	call.Attempt = 3

	got := src.Execute(ctx, call)

	expect(t, got, source.KindDone, "")
	var result struct {
		Structured map[string]any `json:"structured"`
	}
	if err := json.Unmarshal(got.Result, &result); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		mcp.MetaIdempotencyKey: t.Name(),
		mcp.MetaAttempt:        float64(3),
		"traceparent":          "00-01000000000000000000000000000000-0200000000000000-01",
	} {
		if result.Structured[key] != want {
			t.Errorf("_meta[%q] = %v, want %v", key, result.Structured[key], want)
		}
	}
}

func TestRPCErrorIsAnAnswer(t *testing.T) {
	t.Parallel()
	src := open(t, newWeb(t, nil).config())

	got := src.Execute(t.Context(), callOf(t, "rpc_error", envelope.EffectRead))

	expect(t, got, source.KindRefused, source.CodeToolError)
	if !strings.Contains(string(got.Result), "boom") || strings.Contains(got.Message, "boom") {
		t.Errorf("Execute() = result %s, message %q, want the server's text in the result only", got.Result, got.Message)
	}
}

// TestRPCErrorWithAStatus answers JSON-RPC errors with a status 4xx, as servers
// without sessions do.
func TestRPCErrorWithAStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status      int
		kind        source.Kind
		code, error string
	}{
		"arguments":       {400, source.KindRefused, source.CodeInvalidArgs, `{"code":-32602,"message":"no such path"}`},
		"method":          {404, source.KindRefused, source.CodeRejected, `{"code":-32601,"message":"no such path"}`},
		"of the server":   {400, source.KindRefused, source.CodeToolError, `{"code":-32050,"message":"no such path"}`},
		"busy":            {400, source.KindRetry, source.CodeRateLimited, `{"code":-32050,"message":"no such path","data":{"countersign.dev/outcome":"rate_limited"}}`},
		"a status of 500": {500, source.KindRetry, source.CodeServerError, `{"code":-32603,"message":"no such path"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWeb(t, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
			s.intercept = func(w http.ResponseWriter, _ *http.Request, _, tool string) bool {
				if tool != "fail" {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":%s}`, test.error)
				return true
			}

			got := open(t, s.config()).Execute(t.Context(), callOf(t, "fail", envelope.EffectRead))

			expect(t, got, test.kind, test.code)
			if test.status < 500 && !strings.Contains(string(got.Result), "no such path") {
				t.Errorf("Execute() = result %s, want the server's text", got.Result)
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status      int
		once, keyed source.Kind
		code        string
	}{
		{302, source.KindRefused, source.KindRefused, source.CodeRejected},
		{400, source.KindRefused, source.KindRefused, source.CodeRejected},
		{401, source.KindRefused, source.KindRefused, source.CodeUnauthorized},
		{403, source.KindRefused, source.KindRefused, source.CodeUnauthorized},
		{404, source.KindRefused, source.KindRefused, source.CodeNotFound},
		{409, source.KindConflict, source.KindConflict, source.CodeConflict},
		{410, source.KindRefused, source.KindRefused, source.CodeNotFound},
		{422, source.KindRefused, source.KindRefused, source.CodeRejected},
		{429, source.KindRetry, source.KindRetry, source.CodeRateLimited},
		{500, source.KindUnknown, source.KindRetry, source.CodeServerError},
		{503, source.KindUnknown, source.KindRetry, source.CodeServerError},
	} {
		t.Run(fmt.Sprint(test.status), func(t *testing.T) {
			t.Parallel()
			s := newWeb(t, nil)
			s.intercept = func(w http.ResponseWriter, _ *http.Request, _, tool string) bool {
				if tool != "fail" {
					return false
				}
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("Retry-After", "9")
				w.WriteHeader(test.status)
				return true
			}
			src := open(t, s.config())

			once := src.Execute(t.Context(), callOf(t, "fail", envelope.EffectOnce))
			keyed := src.Execute(t.Context(), callOf(t, "fail", envelope.EffectKeyed))

			expect(t, once, test.once, test.code)
			expect(t, keyed, test.keyed, test.code)
			if once.RetryAfter != 9*time.Second {
				t.Errorf("RetryAfter = %v, want 9s", once.RetryAfter)
			}
			expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), source.KindDone, "")
		})
	}
}

func TestBadConnections(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter)
		kind   source.Kind
		code   string
	}{
		"unauthorized":    {func(w http.ResponseWriter) { w.WriteHeader(401) }, source.KindRefused, source.CodeUnauthorized},
		"forbidden":       {func(w http.ResponseWriter) { w.WriteHeader(403) }, source.KindRefused, source.CodeUnauthorized},
		"rate limited":    {func(w http.ResponseWriter) { w.WriteHeader(429) }, source.KindRetry, source.CodeRateLimited},
		"failing":         {func(w http.ResponseWriter) { w.WriteHeader(502) }, source.KindRetry, source.CodeServerError},
		"no mcp server":   {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }, source.KindRetry, source.CodeNegotiation},
		"strange version": {strangeVersion, source.KindRetry, source.CodeNegotiation},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWeb(t, nil)
			s.intercept = func(w http.ResponseWriter, _ *http.Request, _, _ string) bool {
				test.answer(w)
				return true
			}
			cfg := s.config()
			cfg.ListTimeout = 5 * time.Second
			src := open(t, cfg)

			expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), test.kind, test.code)
			if _, err := src.List(t.Context()); err == nil {
				t.Error("List() = nil, want an error")
			}
		})
	}
}

// strangeVersion answers any first request with an unknown protocol version. Ids
// count from 1, and the first is for the newer handshake.
func strangeVersion(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	for id := range 3 {
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"protocolVersion\":\"2999-01-01\",\"capabilities\":{},\"serverInfo\":{\"name\":\"x\",\"version\":\"1\"}}}\n\n", id)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := newWeb(t, nil)
	src := open(t, s.config())
	expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), source.KindDone, "")
	fresh := open(t, s.config())
	s.Server.CloseClientConnections()
	s.Server.Close()

	got := fresh.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce))

	expect(t, got, source.KindRetry, source.CodeUnreachable)
}

func TestForgottenSessionIsReplacedOnce(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusNotFound} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := newWeb(t, nil)
			var calls atomic.Int32
			var first, forgotten atomic.Value // session ids
			s.intercept = func(w http.ResponseWriter, r *http.Request, method, _ string) bool {
				id := r.Header.Get("Mcp-Session-Id")
				if method == "tools/call" {
					calls.Add(1)
					first.CompareAndSwap(nil, id)
				}
				if id == "" || id != forgotten.Load() {
					return false
				}
				w.WriteHeader(status)
				return true
			}
			src := open(t, s.config())
			expect(t, src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)), source.KindDone, "")
			forgotten.Store(first.Load())
			calls.Store(0)
			call := callOf(t, "act", envelope.EffectOnce)
			call.Key += " again"

			got := src.Execute(t.Context(), call)

			expect(t, got, source.KindDone, "")
			if calls.Load() != 2 || s.effects.count(call.Key) != 1 {
				t.Errorf("calls = %d and effects = %d, want 2 and 1", calls.Load(), s.effects.count(call.Key))
			}
		})
	}
}

func TestUnusableAnswers(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 6<<20)
	for name, test := range map[string]struct {
		media, body string
		code        string
		length      string // claimed by the header, if not empty
	}{
		"json that is none":        {"application/json", `{"jsonrpc":`, source.CodeMalformed, ""},
		"json of a request":        {"application/json", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, source.CodeMalformed, ""},
		"json without end":         {"application/json", `{"jsonrpc":"2.0","id":1,"result":"` + huge + `"}`, source.CodeOversized, ""},
		"event that is no json":    {"text/event-stream", "data: hello\n\n", source.CodeMalformed, ""},
		"event that is no event":   {"text/event-stream", "hello\n\n", source.CodeMalformed, ""},
		"event without end":        {"text/event-stream", "data: " + huge, source.CodeOversized, ""},
		"events without an answer": {"text/event-stream", ": nothing\n\n", source.CodeLost, ""},
		"a web page":               {"text/html", "<html>", source.CodeMalformed, ""},
		"json that is cut":         {"application/json", `{"jsonrpc":`, source.CodeLost, "1000"},
		"events that are cut":      {"text/event-stream", "data: {", source.CodeLost, "1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWeb(t, nil)
			entered, release := make(chan struct{}, 1), make(chan struct{})
			s.intercept = func(w http.ResponseWriter, _ *http.Request, _, tool string) bool {
				switch tool {
				case "fail":
					w.Header().Set("Content-Type", test.media)
					if test.length != "" {
						w.Header().Set("Content-Length", test.length)
					}
					_, _ = io.WriteString(w, test.body)
					return true
				case "act":
					entered <- struct{}{}
					<-release
				}
				return false
			}
			src := open(t, s.config())
			beside := make(chan source.Outcome, 1)
			go func() { beside <- src.Execute(t.Context(), callOf(t, "act", envelope.EffectOnce)) }()
			<-entered

			once := src.Execute(t.Context(), callOf(t, "fail", envelope.EffectOnce))
			keyed := src.Execute(t.Context(), callOf(t, "fail", envelope.EffectKeyed))
			close(release)

			again := source.KindRetry
			if test.code == source.CodeOversized {
				again = source.KindUnknown
			}
			expect(t, once, source.KindUnknown, test.code)
			expect(t, keyed, again, test.code)
			expect(t, <-beside, source.KindDone, "")
		})
	}
}

func TestResultLargerThanAllowed(t *testing.T) {
	t.Parallel()
	cfg := newWeb(t, nil).config()
	cfg.MaxResultBytes = 1000
	src := open(t, cfg)
	call := callOf(t, "big", envelope.EffectOnce)
	call.Args = json.RawMessage(`{"bytes":2000}`)

	got := src.Execute(t.Context(), call)

	expect(t, got, source.KindUnknown, source.CodeOversized)
	if got.Result != nil {
		t.Errorf("Result has %d bytes, want none", len(got.Result))
	}
	call.Args = json.RawMessage(`{"bytes":10}`)
	expect(t, src.Execute(t.Context(), call), source.KindDone, "")
}

func TestCallTimeout(t *testing.T) {
	t.Parallel()
	cfg := newWeb(t, nil).config()
	cfg.CallTimeout = time.Second
	src := open(t, cfg)

	expect(t, src.Execute(t.Context(), callOf(t, "hang", envelope.EffectOnce)), source.KindUnknown, source.CodeTimeout)
}

func TestListTimeout(t *testing.T) {
	t.Parallel()
	s := newWeb(t, nil)
	s.intercept = func(_ http.ResponseWriter, _ *http.Request, method, _ string) bool {
		if method == "tools/list" {
			<-s.done
		}
		return false
	}
	cfg := s.config()
	cfg.ListTimeout = time.Second
	src := open(t, cfg)

	if _, err := src.List(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("List() = %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestCloseEndsRunningCalls(t *testing.T) {
	t.Parallel()
	s := newWeb(t, nil)
	entered := make(chan struct{})
	s.intercept = func(_ http.ResponseWriter, _ *http.Request, _, tool string) bool {
		if tool == "hang" {
			close(entered)
		}
		return false
	}
	src := open(t, s.config())
	got := make(chan source.Outcome)
	go func() { got <- src.Execute(t.Context(), callOf(t, "hang", envelope.EffectOnce)) }()
	<-entered

	if err := src.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}

	expect(t, <-got, source.KindUnknown, source.CodeClosed)
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-t0ken"
	s := newWeb(t, nil)
	var authorized atomic.Int32
	s.intercept = func(w http.ResponseWriter, r *http.Request, _, tool string) bool {
		if r.Header.Get("Authorization") == "Bearer "+secret {
			authorized.Add(1)
		}
		if tool == "fail" {
			w.WriteHeader(401)
			fmt.Fprintf(w, "not %s", r.Header.Get("Authorization"))
			return true
		}
		return false
	}
	var log bytes.Buffer
	cfg := s.config()
	cfg.URL += "/mcp?token=" + secret
	cfg.Header = http.Header{"Authorization": {"Bearer " + secret}}
	cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	src := open(t, cfg)

	got := src.Execute(t.Context(), callOf(t, "fail", envelope.EffectOnce))
	s.Server.CloseClientConnections()
	s.Server.Close()
	_, err := src.List(t.Context())
	if err := src.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}

	expect(t, got, source.KindRefused, source.CodeUnauthorized)
	if authorized.Load() == 0 {
		t.Error("no request carried the header")
	}
	for what, text := range map[string]string{
		"outcome": fmt.Sprintf("%+v %s", got, got.Result), "error": fmt.Sprint(err), "log": log.String(), "name": fmt.Sprintf("%v", src),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds the secret: %s", what, text)
		}
	}
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]mcp.Config{
		"no transport":   {},
		"no url":         {Transport: mcp.TransportHTTP},
		"a relative url": {Transport: mcp.TransportHTTP, URL: "/mcp"},
		"a strange url":  {Transport: mcp.TransportHTTP, URL: "ftp://host/mcp"},
		"no command":     {Transport: mcp.TransportStdio},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if _, err := mcp.New(cfg); err == nil {
				t.Errorf("New(%+v) = nil, want an error", cfg)
			}
		})
	}
}
