// Package resttest owns the stage on which adapters that speak HTTP are
// tested: a server that a test's own provider answers on, effects counted by
// key, and the ways in which a network and a provider fail.
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

// The markers which, anywhere in a request's address or body, make the server
// behave in a way of its own.
const (
	// MarkerHang has the server not answer until the test is over.
	MarkerHang = "resttest-hang"
	// MarkerLose has the server act, and then cut the connection.
	MarkerLose = "resttest-lose"
	// MarkerLimited has the server answer 429 with RetryAfter, and not act.
	MarkerLimited = "resttest-limited"
	// MarkerRefused has the server answer 422, and not act.
	MarkerRefused = "resttest-refused"
)

// RetryAfter is what the server asks for on MarkerLimited, in seconds.
const RetryAfter = "7"

// HeaderKey carries the key of a call from Keyed to the server. It is no part
// of what an adapter sends by itself.
const HeaderKey = "X-Resttest-Key"

// Interceptor stands between the server's clients and its provider.
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

// New returns a running server, which ends with the test.
func New(t *testing.T, provider func(*Server) http.Handler) *Server {
	t.Helper()
	s := &Server{done: make(chan struct{}), effects: make(map[string]int)}
	s.provider = provider(s)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Stop)
	return s
}

// Stop ends the server: what asks it afterwards finds nobody.
func (s *Server) Stop() {
	s.once.Do(func() {
		close(s.done)
		s.Server.Close()
	})
}

// Intercept puts an interceptor between the clients and the provider.
func (s *Server) Intercept(i Interceptor) { s.interceptor.Store(&i) }

// Effect records that a request took effect.
func (s *Server) Effect(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effects[r.Header.Get(HeaderKey)]++
}

// Count returns how many effects the calls of a key had.
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

// keyInContext is where Keyed leaves a call's key for the transport of Config.
type keyInContext struct{}

// Keyed returns a source whose calls tell the server their keys, which
// providers are not told; its requests must use Config.
func Keyed(src source.Source) source.Source { return keyed{src} }

type keyed struct{ source.Source }

// Execute implements source.Source.
func (k keyed) Execute(ctx context.Context, call source.Call) source.Outcome {
	return k.Source.Execute(context.WithValue(ctx, keyInContext{}, call.Key), call)
}

// Config returns a configuration whose transport carries the keys of calls to
// servers of the local machine, and whose answers are bounded by MaxBodyBytes.
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

// MaxBodyBytes is the bound that Faults expects a fixture's source to set itself.
const MaxBodyBytes = 64 << 10

// serverText stands for whatever a provider may write into an error.
const serverText = "the words of the other side"

// Fixture is a fresh source, the server behind it, and a call that acts.
type Fixture struct {
	Server *Server
	// Source reads at most MaxBodyBytes, and is Keyed.
	Source source.Source
	// Act has one effect.
	Act sourcetest.Invocation
	// Secret is the credential; it is never shown.
	Secret string
}

// fault is one way to fail, and what is to be known afterwards.
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

// instead answers in the place of a provider that does not act.
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
		{"an answer that is no JSON", after(body("<html>" + serverText)), unknown, retry, source.CodeMalformed, 1, 0},
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

// Faults runs every fault against a source. It calls open once for each.
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

// NotShown fails if a text shows in a value, however it is printed or written.
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
