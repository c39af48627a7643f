// Package resttest tests adapters that use HTTP. It owns a local server in front
// of a fake provider, the counting of effects by key, and simulated failures of
// networks and providers.
package resttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

// Markers for special behaviour of the server, anywhere in a request's address
// or body.
const (
	// MarkerHang makes the server not answer until the test ends.
	MarkerHang = "resttest-hang"
	// MarkerLose makes the server act and then cut the connection.
	MarkerLose = "resttest-lose"
	// MarkerLimited makes the server answer 429 with RetryAfter, without acting.
	MarkerLimited = "resttest-limited"
	// MarkerRefused makes the server answer 422, without acting.
	MarkerRefused = "resttest-refused"
)

// RetryAfter is the server's Retry-After for MarkerLimited, in seconds.
const RetryAfter = "7"

// HeaderKey is the header for the key of a call from Keyed to the server.
// Adapters do not send it by themselves.
const HeaderKey = "X-Resttest-Key"

// Interceptor handles requests between the server's clients and its provider.
type Interceptor func(w http.ResponseWriter, r *http.Request, provider http.Handler)

// Server is a local server in front of a provider.
type Server struct {
	*httptest.Server
	provider    http.Handler
	interceptor atomic.Pointer[Interceptor]
	done        chan struct{}
	once        sync.Once

	mu      sync.Mutex
	effects map[string]int
}

// New returns a running server that ends with the test.
func New(t *testing.T, provider func(*Server) http.Handler) *Server {
	t.Helper()
	s := &Server{done: make(chan struct{}), effects: make(map[string]int)}
	s.provider = provider(s)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Stop)
	return s
}

// Stop ends the server; later connections fail.
func (s *Server) Stop() {
	s.once.Do(func() {
		close(s.done)
		s.Server.Close()
	})
}

// Intercept sets the interceptor.
func (s *Server) Intercept(i Interceptor) { s.interceptor.Store(&i) }

// Effect records that a request took effect.
func (s *Server) Effect(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effects[r.Header.Get(HeaderKey)]++
}

// Count returns the number of effects of the calls with a key.
func (s *Server) Count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.effects[key]
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	has := func(marker string) bool {
		return strings.Contains(r.RequestURI, marker) || bytes.Contains(body, []byte(marker))
	}
	intercept := s.interceptor.Load()
	switch {
	case has(MarkerHang):
		<-s.done
	case has(MarkerLose):
		s.provider.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case has(MarkerLimited):
		w.Header().Set("Retry-After", RetryAfter)
		w.WriteHeader(http.StatusTooManyRequests)
	case has(MarkerRefused):
		w.WriteHeader(http.StatusUnprocessableEntity)
	case intercept != nil:
		(*intercept)(w, r, s.provider)
	default:
		s.provider.ServeHTTP(w, r)
	}
}

// keyInContext is the context key for the key of a call between Keyed and the
// transport of Config.
type keyInContext struct{}

// Keyed returns a source whose calls send their keys to the server. Its requests
// must use Config.
func Keyed(src source.Source) source.Source { return keyed{src} }

type keyed struct{ source.Source }

// Execute implements source.Source.
func (k keyed) Execute(ctx context.Context, call source.Call) source.Outcome {
	return k.Source.Execute(context.WithValue(ctx, keyInContext{}, call.Key), call)
}

// Config returns a configuration whose transport sends the keys of calls to
// local servers, and whose answers are bounded by MaxBodyBytes.
func Config(t *testing.T) rest.Config {
	t.Helper()
	base := safehttp.Guard{Networks: safehttp.Loopback()}.Transport()
	t.Cleanup(base.CloseIdleConnections)
	return rest.Config{Transport: transport{base}, MaxBodyBytes: MaxBodyBytes}
}

type transport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if key, ok := r.Context().Value(keyInContext{}).(string); ok {
		r = r.Clone(r.Context())
		r.Header.Set(HeaderKey, key)
	}
	return t.base.RoundTrip(r)
}

// MaxBodyBytes is the bound on answers that Faults expects.
const MaxBodyBytes = 64 << 10

// serverText is a provider's text in an error.
const serverText = "the words of the other side"

// Fixture is a fresh source, its server, and a call with an effect.
type Fixture struct {
	Server *Server
	// Source reads at most MaxBodyBytes, and is Keyed.
	Source source.Source
	// Act has one effect.
	Act sourcetest.Invocation
	// Secret is the credential, which must never be shown.
	Secret string
}

// fault is one failure and its expected outcome.
type fault struct {
	name        string
	intercept   Interceptor
	once, keyed source.Kind
	code        string
	effects     int
	retryAfter  time.Duration
}

// after lets the provider act, and answers in its place.
func after(answer http.HandlerFunc) Interceptor {
	return func(w http.ResponseWriter, r *http.Request, provider http.Handler) {
		provider.ServeHTTP(httptest.NewRecorder(), r)
		answer(w, r)
	}
}

// instead answers in place of the provider, which does not act.
func instead(answer http.HandlerFunc) Interceptor {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) { answer(w, r) }
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"detail":[%q]}`, serverText) // the client may be gone
	}
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func cutAmid(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"ok":`))
	panic(http.ErrAbortHandler)
}

func faults() []fault {
	const unknown, retry, refused = source.KindUnknown, source.KindRetry, source.KindRefused
	return []fault{
		{"an error before the effect", instead(status(500)), unknown, retry, source.CodeServerError, 0, 0},
		{"an error after the effect", after(status(502)), unknown, retry, source.CodeServerError, 1, 0},
		{"unavailable for a while", instead(status(503, "Retry-After", "11")), unknown, retry, source.CodeServerError, 0, 11 * time.Second},
		{"cut before the effect", instead(cut), unknown, retry, source.CodeLost, 0, 0},
		{"cut after the effect", after(cut), unknown, retry, source.CodeLost, 1, 0},
		{"cut amid the answer", after(cutAmid), unknown, retry, source.CodeLost, 1, 0},
		{"invalid JSON", after(body("<html>" + serverText)), unknown, retry, source.CodeMalformed, 1, 0},
		{"an answer that is half JSON", after(body(`{"ok":tru`)), unknown, retry, source.CodeMalformed, 1, 0},
		{"an answer of another shape", after(body(`["ok"]`)), unknown, retry, source.CodeMalformed, 1, 0},
		{"an empty answer", after(body("")), unknown, retry, source.CodeMalformed, 1, 0},
		{"an answer that is too large", after(body(`{"ok":"` + strings.Repeat("x", MaxBodyBytes) + `"}`)), unknown, unknown, source.CodeOversized, 1, 0},
		{"too many requests", instead(status(429, "Retry-After", "7")), retry, retry, source.CodeRateLimited, 0, 7 * time.Second},
		{"credentials not accepted", instead(status(401)), refused, refused, source.CodeUnauthorized, 0, 0},
		{"not allowed", instead(status(403)), refused, refused, source.CodeUnauthorized, 0, 0},
		{"not found", instead(status(404)), refused, refused, source.CodeNotFound, 0, 0},
		{"not understood", instead(status(422)), refused, refused, source.CodeRejected, 0, 0},
	}
}

// Faults tests a source with every fault. It calls open once for each.
func Faults(t *testing.T, open func(t *testing.T) Fixture) {
	t.Helper()
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, effect := range []envelope.Effect{envelope.EffectOnce, envelope.EffectKeyed} {
				fixture := open(t)
				fixture.Server.Intercept(f.intercept)
				call := fixture.call("key of " + t.Name() + string(effect))
				call.Effect = effect

				got := fixture.Source.Execute(t.Context(), call)

				want := f.once
				if effect == envelope.EffectKeyed {
					want = f.keyed
				}
				if got.Kind != want || got.Code != f.code || got.RetryAfter != f.retryAfter {
					t.Errorf("Execute(%s) = %s %q after %v (%s), want %s %q after %v", effect, got.Kind, got.Code, got.RetryAfter, got.Message, want, f.code, f.retryAfter)
				}
				if n := fixture.Server.Count(call.Key); n != f.effects {
					t.Errorf("effects = %d, want %d", n, f.effects)
				}
				NotShown(t, fixture.Secret, got.Message)
				NotShown(t, serverText, got.Message)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		t.Parallel()
		fixture := open(t)
		fixture.Server.Stop()

		got := fixture.Source.Execute(t.Context(), fixture.call("key"))

		if got.Kind != source.KindRetry || got.Code != source.CodeUnreachable {
			t.Errorf("Execute() = %s %q, want retry unreachable", got.Kind, got.Code)
		}
		NotShown(t, fixture.Secret, got)
	})
	t.Run("sent elsewhere", func(t *testing.T) {
		t.Parallel()
		fixture := open(t)
		var asked atomic.Bool
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
		t.Cleanup(other.Close)
		fixture.Server.Intercept(instead(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}))

		got := fixture.Source.Execute(t.Context(), fixture.call("key"))

		if got.Kind != source.KindRefused || got.Code != source.CodeRejected || asked.Load() {
			t.Errorf("Execute() = %s %q, other host asked: %t; want refused and nobody asked", got.Kind, got.Code, asked.Load())
		}
	})
	t.Run("closed meanwhile", func(t *testing.T) {
		t.Parallel()
		fixture := open(t)
		arrived := make(chan struct{})
		fixture.Server.Intercept(instead(func(_ http.ResponseWriter, r *http.Request) {
			close(arrived)
			<-r.Context().Done()
		}))
		ended := make(chan source.Outcome)
		go func() { ended <- fixture.Source.Execute(t.Context(), fixture.call("key")) }() // the receive below waits for it

		<-arrived
		err := fixture.Source.Close()
		got := <-ended

		if err != nil || got.Kind != source.KindUnknown || got.Code != source.CodeClosed {
			t.Errorf("Close() = %v and Execute() = %s %q, want unknown closed", err, got.Kind, got.Code)
		}
	})
}

func (f Fixture) call(key string) source.Call {
	return source.Call{Key: key, Tool: f.Act.Tool, Args: f.Act.Args, Effect: envelope.EffectOnce, Attempt: 1}
}

// NotShown fails if any printed or encoded form of the values contains the text.
func NotShown(t *testing.T, text string, values ...any) {
	t.Helper()
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			if strings.Contains(fmt.Sprintf(verb, value), text) {
				t.Errorf("%T printed with %s shows %q", value, verb, text)
			}
		}
		if raw, err := json.Marshal(value); err == nil && strings.Contains(string(raw), text) {
			t.Errorf("%T written as JSON shows %q", value, text)
		}
	}
}
