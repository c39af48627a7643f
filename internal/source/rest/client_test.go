package rest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers every request with a handler, until the test ends.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func open(t *testing.T, cfg rest.Config) *rest.Client {
	t.Helper()
	cfg.Guard.Networks = safehttp.Loopback()
	c := rest.New("test", cfg)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return c
}

func TestSend(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, r.Method+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("X-A")+" "+string(body))
	})
	c := open(t, rest.Config{MaxBodyBytes: 60})
	for name, test := range map[string]struct {
		request    rest.Request
		body, code string
	}{
		"a body is JSON":                   {rest.Request{Method: "POST", Body: []byte(`{}`), Header: http.Header{"x-a": {"1"}}}, "POST application/json; charset=utf-8 1 {}", ""},
		"a body is what the header says":   {rest.Request{Method: "PUT", Body: []byte("a"), Header: http.Header{"Content-Type": {"text/plain"}}}, "PUT text/plain  a", ""},
		"no body has no type":              {rest.Request{Method: "GET"}, "GET   ", ""},
		"an answer at the bound is whole":  {rest.Request{Method: "PUT", Body: []byte(strings.Repeat("x", 60-len("PUT text/plain  "))), Header: http.Header{"Content-Type": {"text/plain"}}}, "PUT text/plain  " + strings.Repeat("x", 44), ""},
		"an answer above the bound is not": {rest.Request{Method: "PUT", Body: []byte(strings.Repeat("x", 45)), Header: http.Header{"Content-Type": {"text/plain"}}}, "PUT text/plain  " + strings.Repeat("x", 44), source.CodeOversized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.request.URL = s.URL

			got := c.Send(t.Context(), test.request)

			if string(got.Body) != test.body || got.Code != test.code {
				t.Errorf("Send() = %q %q, want %q %q", got.Body, got.Code, test.body, test.code)
			}
			if !got.Written || got.Status != http.StatusAccepted || got.RetryAfter != 3*time.Second {
				t.Errorf("Send() saw %+v, want written, 202 and 3 s", got.Observation)
			}
		})
	}
}

func TestSendInvalidRequest(t *testing.T) {
	t.Parallel()
	c := open(t, rest.Config{})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		url  string
		code string
	}{
		"nobody listens":       {t.Context(), "http://127.0.0.1:1", source.CodeUnreachable},
		"the address is none":  {t.Context(), "http://[", source.CodeInvalidArgs},
		"the caller gave up":   {cancelled, "http://127.0.0.1:1", source.CodeCancelled},
		"the time is over":     {late, "http://127.0.0.1:1", source.CodeTimeout},
		"a scheme nobody does": {t.Context(), "gopher://127.0.0.1", source.CodeUnreachable},
	} {
		got := c.Send(test.ctx, rest.Request{Method: http.MethodPost, URL: test.url, Body: []byte("{}")})

		if test.url == "gopher://127.0.0.1" {
			// The transport does not report that it wrote nothing.
			test.code = source.CodeLost
		}
		if got.Code != test.code || got.Status != 0 {
			t.Errorf("Send() when %s = %q with status %d, want %q", name, got.Code, got.Status, test.code)
		}
	}
}

func TestExecuteIsBoundedInTime(t *testing.T) {
	t.Parallel()
	c := open(t, rest.Config{CallTimeout: 200 * time.Millisecond})

	got := c.Execute(t.Context(), source.Call{Effect: envelope.EffectOnce}, func(ctx context.Context) source.Observation {
		<-ctx.Done()
		return source.Observation{Written: true, Code: source.EndedCode(ctx)}
	})

	if got.Kind != source.KindUnknown || got.Code != source.CodeTimeout || got.Message != "test: the time limit was reached after the call was sent" {
		t.Errorf("Execute() = %s %q %q, want unknown timeout", got.Kind, got.Code, got.Message)
	}
}

func TestListErrors(t *testing.T) {
	t.Parallel()
	c := open(t, rest.Config{ListTimeout: time.Millisecond})
	for name, test := range map[string]struct {
		list func(context.Context) ([]source.Tool, error)
		want string
	}{
		"in its own words":  {func(context.Context) ([]source.Tool, error) { return nil, &source.ListError{Text: "no"} }, "list tools of test: no"},
		"not in another's":  {func(context.Context) ([]source.Tool, error) { return nil, errors.New("hush") }, "list tools of test"},
		"though it is late": {func(ctx context.Context) ([]source.Tool, error) { <-ctx.Done(); return nil, nil }, "list tools of test"},
	} {
		_, err := c.List(t.Context(), test.list)

		f, ok := errors.AsType[*fault.Error](err)
		if !errors.Is(err, fault.Busy) || !ok || f.Text != test.want {
			t.Errorf("List() %s = %v, want fault.Busy %q", name, err, test.want)
		}
	}
}

func TestFindingMessages(t *testing.T) {
	t.Parallel()
	c := open(t, rest.Config{})
	seen := make(map[string]string)
	for _, code := range []string{
		source.CodeCancelled, source.CodeClosed, source.CodeConflict, source.CodeInvalidArgs, source.CodeLost,
		source.CodeMalformed, source.CodeNotFound, source.CodeOversized, source.CodeRateLimited, source.CodeRedirected,
		source.CodeRejected, source.CodeServerError, source.CodeTimeout, source.CodeToolError, source.CodeUnauthorized,
		source.CodeUnknownTool, source.CodeUnreachable,
	} {
		got := c.Execute(t.Context(), source.Call{}, func(context.Context) source.Observation { return source.Observation{Code: code} })

		if other, twice := seen[got.Message]; twice || !strings.HasPrefix(got.Message, "test: ") {
			t.Errorf("message of %s = %q, as that of %q, want one of its own", code, got.Message, other)
		}
		seen[got.Message] = code
	}
}
