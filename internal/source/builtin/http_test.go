package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/builtin"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/resttest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host answers below /v1 with the status in the path, and counts writes as
// effects. It executes a request once for each Idempotency-Key.
func host(s *resttest.Server) http.Handler {
	mux := http.NewServeMux()
	var mu sync.Mutex
	done := make(map[string]bool)
	mux.HandleFunc("/v1/{status}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if key := r.Header.Get("Idempotency-Key"); r.Method != http.MethodGet && (key == "" || !done[key]) {
			done[key] = true
			s.Effect(r)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		var status int
		if _, err := fmt.Sscan(r.PathValue("status"), &status); err != nil {
			status = http.StatusOK
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.Header().Set("X-Other", "not shown")
		w.WriteHeader(status)
		if status < 200 || status == http.StatusNoContent || status == http.StatusNotModified {
			return
		}
		_, _ = fmt.Fprintf(w, `{"method":%q,"authorization":%q,"type":%q,"key":%q,"body":%q}`,
			r.Method, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.Header.Get("Idempotency-Key"), body)
	})
	mux.HandleFunc("/v1/as", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		_, _ = io.WriteString(w, r.URL.Query().Get("body"))
	})
	mux.HandleFunc("/v1/big", func(w http.ResponseWriter, r *http.Request) {
		s.Effect(r)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `"`+strings.Repeat("ä", 100_000)+`"`)
	})
	return mux
}

// allow returns a configuration for requests to a local server.
func allow(s *resttest.Server, change ...func(*builtin.Allowed)) builtin.HTTPConfig {
	a := builtin.Allowed{Prefix: s.URL + "/v1"}
	for _, c := range change {
		c(&a)
	}
	return builtin.HTTPConfig{
		Allow:        []builtin.Allowed{a},
		Networks:     []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Header:       map[string]rest.Secret{"authorization": rest.NewSecret("Bearer long-hush")},
		MaxBodyBytes: 1000,
	}
}

func openWeb(t *testing.T, cfg builtin.HTTPConfig) source.Source {
	t.Helper()
	src, err := builtin.With(builtin.Config{HTTP: &cfg})
	if err != nil {
		t.Fatalf("With() = %v", err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return keyed{src}
}

// keyed sends the keys of calls to the server in a header, which any agent could
// also set.
type keyed struct{ source.Source }

func (k keyed) Execute(ctx context.Context, call source.Call) source.Outcome {
	var args map[string]any
	if strings.HasPrefix(call.Tool, "countersign.http.") && json.Unmarshal(call.Args, &args) == nil {
		headers, ok := args["headers"].(map[string]any)
		if !ok {
			headers = map[string]any{}
		}
		headers[resttest.HeaderKey] = call.Key
		args["headers"] = headers
		if raw, err := json.Marshal(args); err == nil {
			call.Args = raw
		}
	}
	return k.Source.Execute(ctx, call)
}

func ask(tool, method, url string) sourcetest.Invocation {
	return sourcetest.Invocation{Tool: tool, Args: json.RawMessage(fmt.Sprintf(`{"method":%q,"url":%q}`, method, url))}
}

func post(url string) sourcetest.Invocation {
	return ask(builtin.ToolHTTPRequest, http.MethodPost, url)
}

func TestConformHTTP(t *testing.T) {
	t.Parallel()
	for name, honours := range map[string]bool{"honouring keys": true, "not honouring keys": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
				s := resttest.New(t, host)
				without := map[sourcetest.Feature]string{
					sourcetest.ToolErrors: "a host fails with a status",
					sourcetest.Restarts:   "a host keeps nothing of its clients",
				}
				if !honours {
					without[sourcetest.Keys] = "the configuration does not say that the host honours keys"
				}
				return sourcetest.Harness{
					Source: openWeb(t, allow(s, func(a *builtin.Allowed) { a.HonoursKey = honours })), Count: s.Count,
					Act: post(s.URL + "/v1/200"), BadArgs: ask(builtin.ToolHTTPRequest, "BREW", s.URL+"/v1/200"),
					Hang: post(s.URL + "/v1/" + resttest.MarkerHang), Lose: post(s.URL + "/v1/x?" + resttest.MarkerLose),
					Refused: []sourcetest.Invocation{post(s.URL + "/v1/" + resttest.MarkerRefused)},
					Limited: post(s.URL + "/v1/" + resttest.MarkerLimited), RetryAfter: 7 * time.Second, Without: without,
				}
			})
		})
	}
}

func TestHTTPOutcomes(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, host)
	src := openWeb(t, allow(s))
	honouring := openWeb(t, allow(s, func(a *builtin.Allowed) { a.HonoursKey = true }))
	const get, request = builtin.ToolHTTPGet, builtin.ToolHTTPRequest
	for _, test := range []struct {
		src          source.Source
		tool, method string
		path         string
		effect       envelope.Effect
		kind         source.Kind
		code         string
	}{
		{src, request, "POST", "/v1/201", envelope.EffectOnce, source.KindDone, ""},
		{src, request, "DELETE", "/v1/204", envelope.EffectOnce, source.KindDone, ""},
		{src, request, "PUT", "/v1/500", envelope.EffectOnce, source.KindUnknown, source.CodeServerError},
		{honouring, request, "PUT", "/v1/500", envelope.EffectKeyed, source.KindRetry, source.CodeServerError},
		{src, request, "PATCH", "/v1/404", envelope.EffectOnce, source.KindRefused, source.CodeNotFound},
		{src, request, "POST", "/v1/401", envelope.EffectOnce, source.KindRefused, source.CodeUnauthorized},
		{src, request, "POST", "/v1/422", envelope.EffectOnce, source.KindRefused, source.CodeRejected},
		{src, request, "POST", "/v1/409", envelope.EffectOnce, source.KindRefused, source.CodeRejected},
		{honouring, request, "POST", "/v1/409", envelope.EffectKeyed, source.KindRetry, source.CodeConflict},
		{src, request, "POST", "/v1/429", envelope.EffectOnce, source.KindRetry, source.CodeRateLimited},
		{src, request, "POST", "/v1/302", envelope.EffectOnce, source.KindUnknown, source.CodeRedirected},
		{src, request, "POST", "/v1/303?to=/v1/200", envelope.EffectOnce, source.KindDone, ""},
		{src, request, "POST", "/v1/300", envelope.EffectOnce, source.KindRefused, source.CodeRedirected},
		{src, request, "POST", "/v1/307", envelope.EffectOnce, source.KindRefused, source.CodeRedirected},
		{src, get, "GET", "/v1/200", envelope.EffectRead, source.KindDone, ""},
		{src, get, "HEAD", "/v1/200", envelope.EffectRead, source.KindDone, ""},
		{src, get, "GET", "/v1/304", envelope.EffectRead, source.KindDone, ""},
		{src, get, "GET", "/v1/503", envelope.EffectRead, source.KindRetry, source.CodeServerError},
		{src, get, "GET", "/v1/302?to=/v1/200", envelope.EffectRead, source.KindDone, ""},
		{src, get, "GET", "/v1/302?to=/v1/302%3Fto=/v1/301", envelope.EffectRead, source.KindRefused, source.CodeRedirected},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			t.Parallel()
			in := ask(test.tool, test.method, s.URL+test.path)

			got := test.src.Execute(t.Context(), source.Call{Key: t.Name(), Tool: in.Tool, Args: in.Args, Effect: test.effect})

			if got.Kind != test.kind || got.Code != test.code {
				t.Errorf("Execute() = %s %q (%s), want %s %q", got.Kind, got.Code, got.Message, test.kind, test.code)
			}
			if !json.Valid(got.Result) {
				t.Errorf("Result = %s, want JSON", got.Result)
			}
			resttest.NotShown(t, "127.0.0.1", got.Message)
		})
	}
}

func TestHTTPSendsTheHeadersOfTheDestination(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, host)
	bare := allow(s)
	dressed := allow(s, func(a *builtin.Allowed) { a.Credentials, a.HonoursKey = true, true })
	for name, test := range map[string]struct {
		cfg        builtin.HTTPConfig
		args, want string
	}{
		"nothing":     {bare, `{}`, `{"method":"POST","authorization":"","type":"","key":"","body":""}`},
		"JSON":        {bare, `{"json":{"n":12345678901234567890}}`, `{"method":"POST","authorization":"","type":"application/json","key":"","body":"{\"n\":12345678901234567890}"}`},
		"text":        {bare, `{"body":"a=b","headers":{"content-type":"application/x-www-form-urlencoded"}}`, `{"method":"POST","authorization":"","type":"application/x-www-form-urlencoded","key":"","body":"a=b"}`},
		"credentials": {dressed, `{"body":"x"}`, `{"method":"POST","authorization":"[REDACTED]","type":"text/plain; charset=utf-8","key":"k","body":"x"}`},
		"a token":     {dressed, `{"body":"long-hush"}`, `{"method":"POST","authorization":"[REDACTED]","type":"text/plain; charset=utf-8","key":"k","body":"[REDACTED]"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var args map[string]json.RawMessage
			if err := json.Unmarshal([]byte(test.args), &args); err != nil {
				t.Fatal(err)
			}
			args["url"], args["method"] = json.RawMessage(`"`+s.URL+`/v1/200"`), json.RawMessage(`"POST"`)
			raw, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			src, err := builtin.With(builtin.Config{HTTP: &test.cfg})
			if err != nil {
				t.Fatal(err)
			}

			got := src.Execute(t.Context(), source.Call{Key: "k", Tool: builtin.ToolHTTPRequest, Args: raw, Effect: envelope.EffectOnce})

			var result struct{ JSON json.RawMessage }
			if err := json.Unmarshal(got.Result, &result); err != nil || string(result.JSON) != test.want {
				t.Errorf("the host saw %s, want %s", result.JSON, test.want)
			}
			if strings.Contains(string(got.Result), "not shown") {
				t.Errorf("Result = %s, want it without other headers", got.Result)
			}
			if err := src.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
}

func TestHTTPRejectsReservedHeaders(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, host)
	cfg := allow(s)
	cfg.Header = map[string]rest.Secret{"x-api-key": rest.NewSecret("hush")}
	src := openWeb(t, cfg)
	for _, header := range []string{
		"authorization", "Cookie", "HOST", "Content-Length", "transfer-encoding", "Idempotency-Key", "X-API-Key", "Proxy-Authorization", "a b", "",
	} {
		args, err := json.Marshal(map[string]any{"url": s.URL + "/v1/200", "method": "POST", "headers": map[string]string{header: "x"}})
		if err != nil {
			t.Fatal(err)
		}

		got := src.Execute(t.Context(), source.Call{Key: "k", Tool: builtin.ToolHTTPRequest, Args: args, Effect: envelope.EffectOnce})

		if got.Kind != source.KindRefused || got.Code != source.CodeInvalidArgs || s.Count("k") != 0 {
			t.Errorf("Execute() with header %q = %s %q, want refused invalid_args", header, got.Kind, got.Code)
		}
	}
}

func TestHTTPConnectsOnlyToAllowedAddresses(t *testing.T) {
	t.Parallel()
	s, other := resttest.New(t, host), resttest.New(t, host)
	var asked atomic.Bool
	other.Intercept(func(http.ResponseWriter, *http.Request, http.Handler) { asked.Store(true) })
	src := openWeb(t, allow(s, func(a *builtin.Allowed) { a.Methods = []string{"GET", "POST"} }))
	for name, in := range map[string]sourcetest.Invocation{
		"another host":       post(other.URL + "/v1/200"),
		"another path":       post(s.URL + "/v2/200"),
		"a path alike":       post(s.URL + "/v1x/200"),
		"dots":               post(s.URL + "/v1/../v2"),
		"dots in disguise":   post(s.URL + "/v1/%2e%2e/v2"),
		"dots twice removed": post(s.URL + "/v1/%252e%252e/v2"),
		"dots and semicolon": post(s.URL + "/v1/..;/v2"),
		"an escaped slash":   post(s.URL + "/v1%2f200"),
		"a backslash":        post(s.URL + `/v1/%5c..%5cv2`),
		"a user":             post(strings.Replace(s.URL, "//", "//127.0.0.1:1@", 1) + "/v1/200"),
		"another scheme":     post(strings.Replace(s.URL, "http:", "https:", 1) + "/v1/200"),
		"a file":             ask(builtin.ToolHTTPGet, "GET", "file:///etc/passwd"),
		"no host":            ask(builtin.ToolHTTPGet, "GET", "/v1/200"),
		"another method":     ask(builtin.ToolHTTPRequest, "DELETE", s.URL+"/v1/200"),
		"redirect of a read": ask(builtin.ToolHTTPGet, "GET", s.URL+"/v1/302?to="+other.URL+"/v1/200"),
		"redirect of a post": post(s.URL + "/v1/307?to=" + other.URL + "/v1/200"),
		"redirect to a path": ask(builtin.ToolHTTPGet, "GET", s.URL+"/v1/302?to=/v2/200"),
	} {
		got := src.Execute(t.Context(), source.Call{Key: name, Tool: in.Tool, Args: in.Args, Effect: envelope.EffectOnce})

		if got.Kind != source.KindRefused || got.Code != source.CodeRejected && got.Code != source.CodeRedirected {
			t.Errorf("Execute(%s) = %s %q (%s), want refused", name, got.Kind, got.Code, got.Message)
		}
	}
	if asked.Load() {
		t.Error("another host was asked")
	}
}

func TestHTTPFollowsRedirectsToAllowedAddresses(t *testing.T) {
	t.Parallel()
	s, other := resttest.New(t, host), resttest.New(t, host)
	cfg := allow(s, func(a *builtin.Allowed) { a.Credentials = true })
	cfg.Allow = append(cfg.Allow, builtin.Allowed{Prefix: other.URL + "/v1/200"})
	src := openWeb(t, cfg)
	in := post(s.URL + "/v1/308?to=" + other.URL + "/v1/200")

	got := src.Execute(t.Context(), source.Call{Key: "k", Tool: in.Tool, Args: in.Args, Effect: envelope.EffectOnce})

	if got.Kind != source.KindDone || !strings.Contains(string(got.Result), `"method":"POST","authorization":""`) {
		t.Errorf("Execute() = %s %q %s, want a POST without the other place's credentials", got.Kind, got.Code, got.Result)
	}
	if n := other.Count("k"); n != 1 {
		t.Errorf("effects at the second host = %d, want 1", n)
	}
}

func TestHTTPDialsNoPrivateAddress(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, host)
	for _, name := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"} {
		at := strings.Replace(s.URL, "127.0.0.1", name, 1) + "/v1"
		cfg := builtin.HTTPConfig{Allow: []builtin.Allowed{{Prefix: at}}}
		src := openWeb(t, cfg)
		in := post(at + "/200")

		got := src.Execute(t.Context(), source.Call{Key: "k", Tool: in.Tool, Args: in.Args, Effect: envelope.EffectOnce})

		if got.Kind != source.KindRefused || got.Code != source.CodeRejected || s.Count("k") != 0 {
			t.Errorf("Execute() to %s = %s %q (%s), want refused", name, got.Kind, got.Code, got.Message)
		}
	}
}

func TestHTTPReturnsTheBody(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, host)
	src := openWeb(t, allow(s))
	for query, want := range map[string]string{
		"type=application/problem%2Bjson&body=%7B%22a%22:1%7D": `{"status":200,"headers":{"content-type":"application/problem+json"},"json":{"a":1}}`,
		"type=application/json&body=%7B":                       `{"status":200,"headers":{"content-type":"application/json"},"text":"{"}`,
		"type=text/plain&body=a":                               `{"status":200,"headers":{"content-type":"text/plain"},"text":"a"}`,
		"type=image/png&body=%ff":                              `{"status":200,"headers":{"content-type":"image/png"},"base64":"/w=="}`,
		"type=text/plain":                                      `{"status":200,"headers":{"content-type":"text/plain"}}`,
	} {
		in := ask(builtin.ToolHTTPGet, "GET", s.URL+"/v1/as?"+query)

		got := src.Execute(t.Context(), source.Call{Tool: in.Tool, Args: in.Args, Effect: envelope.EffectRead})

		if got.Kind != source.KindDone || string(got.Result) != want {
			t.Errorf("Execute(%s) = %s %s, want %s", query, got.Kind, got.Result, want)
		}
	}
}

func TestHTTPCutsALargeBody(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, host)
	src := openWeb(t, allow(s))
	in := post(s.URL + "/v1/big")

	got := src.Execute(t.Context(), source.Call{Key: "k", Tool: in.Tool, Args: in.Args, Effect: envelope.EffectOnce})

	var result struct {
		Text      string
		Truncated bool
	}
	if err := json.Unmarshal(got.Result, &result); err != nil {
		t.Fatalf("Result = %s: %v", got.Result, err)
	}
	if got.Kind != source.KindDone || !result.Truncated || result.Text != `"`+strings.Repeat("ä", 499) {
		t.Errorf("Execute() = %s with %d bytes, truncated: %t, want done with the beginning", got.Kind, len(result.Text), result.Truncated)
	}
}

func TestHTTPTimeout(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, host)
	cfg := allow(s)
	cfg.CallTimeout = 2 * time.Second // enough for the request to be sent
	in := post(s.URL + "/v1/" + resttest.MarkerHang)

	got := openWeb(t, cfg).Execute(t.Context(), source.Call{Key: "k", Tool: in.Tool, Args: in.Args, Effect: envelope.EffectOnce})

	if got.Kind != source.KindUnknown || got.Code != source.CodeTimeout {
		t.Errorf("Execute() = %s %q, want unknown timeout", got.Kind, got.Code)
	}
}

func TestListOfHTTP(t *testing.T) {
	t.Parallel()
	read, write := []string{"GET"}, []string{"POST"}
	for name, test := range map[string]struct {
		allow []builtin.Allowed
		want  map[string]envelope.Effect
	}{
		"all":          {[]builtin.Allowed{{Prefix: "https://a"}}, map[string]envelope.Effect{builtin.ToolHTTPGet: envelope.EffectRead, builtin.ToolHTTPRequest: envelope.EffectOnce}},
		"reads":        {[]builtin.Allowed{{Prefix: "https://a", Methods: read}}, map[string]envelope.Effect{builtin.ToolHTTPGet: envelope.EffectRead}},
		"keyed writes": {[]builtin.Allowed{{Prefix: "https://a", Methods: read}, {Prefix: "https://b", Methods: write, HonoursKey: true}}, map[string]envelope.Effect{builtin.ToolHTTPGet: envelope.EffectRead, builtin.ToolHTTPRequest: envelope.EffectKeyed}},
		"mixed writes": {[]builtin.Allowed{{Prefix: "https://a", Methods: write}, {Prefix: "https://b", Methods: write, HonoursKey: true}}, map[string]envelope.Effect{builtin.ToolHTTPRequest: envelope.EffectOnce}},
	} {
		tools, err := openWeb(t, builtin.HTTPConfig{Allow: test.allow}).List(t.Context())
		if err != nil {
			t.Fatalf("List() = %v", err)
		}
		got := make(map[string]envelope.Effect)
		for _, tool := range tools {
			if strings.HasPrefix(tool.Name, "countersign.http.") {
				got[tool.Name] = tool.Effect
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("List() with %s = %v, want %v", name, got, test.want)
		}
	}
}

func TestWithRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]builtin.HTTPConfig{
		"nothing allowed":       {},
		"a user in a prefix":    {Allow: []builtin.Allowed{{Prefix: "https://hush@a/"}}},
		"a prefix of ftp":       {Allow: []builtin.Allowed{{Prefix: "ftp://a/"}}},
		"dots in a prefix":      {Allow: []builtin.Allowed{{Prefix: "https://a/b/../c"}}},
		"a query in a prefix":   {Allow: []builtin.Allowed{{Prefix: "https://a/?hush"}}},
		"a method of one's own": {Allow: []builtin.Allowed{{Prefix: "https://a/", Methods: []string{"get"}}}},
		"a header of two words": {Allow: []builtin.Allowed{{Prefix: "https://a/"}}, Header: map[string]rest.Secret{"a b": rest.NewSecret("hush")}},
		"a value of two lines":  {Allow: []builtin.Allowed{{Prefix: "https://a/"}}, Header: map[string]rest.Secret{"A": rest.NewSecret("hush\nhush")}},
		"a network with bits":   {Allow: []builtin.Allowed{{Prefix: "https://a/"}}, Networks: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/8")}},
		"a network of nothing":  {Allow: []builtin.Allowed{{Prefix: "https://a/"}}, Networks: []netip.Prefix{{}}},
	} {
		_, err := builtin.With(builtin.Config{HTTP: &cfg})

		if !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("With() %s = %v, want fault.Invalid without secrets", name, err)
		}
	}
	cfg := builtin.Config{HTTP: &builtin.HTTPConfig{
		Allow:  []builtin.Allowed{{Prefix: "https://a/", Credentials: true}},
		Header: map[string]rest.Secret{"Authorization": rest.NewSecret("hush")},
	}}
	src, err := builtin.With(cfg)
	if err != nil {
		t.Fatal(err)
	}
	resttest.NotShown(t, "hush", cfg, *cfg.HTTP, src)
}
