// Package resttest owns the stage on which adapters that speak HTTP are
// tested: a server that a test's own provider answers on, effects counted by
// key, and the ways in which a network and a provider fail.
package resttest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// The words which, anywhere in a request's address or body, make the server
// behave in a way of its own.
const (
	// WordHang has the server not answer until the test is over.
	MarkerHang = "resttest-hang"
	// WordLose has the server act, and then cut the connection.
	MarkerLose = "resttest-lose"
	// WordLimited has the server answer 429 with RetryAfter, and not act.
	MarkerLimited = "resttest-limited"
)

// RetryAfter is what the server asks for on WordLimited, in seconds.
const RetryAfter = "7"

// HeaderKey carries the key of a call from Keyed to the server. It is no part
// of what an adapter sends by itself.
const HeaderKey = "X-Resttest-Key"

// Meddler stands between the server's clients and its provider.
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

// Meddle puts something between the clients and the provider.
func (s *Server) Intercept(m Interceptor) { s.interceptor.Store(&m) }

// Effect notes that a request took effect.
func (s *Server) Effect(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effects[r.Header.Get(HeaderKey)]++
}

// Count says how many effects the calls of a key had.
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
	says := func(word string) bool {
		return strings.Contains(r.RequestURI, word) || bytes.Contains(body, []byte(word))
	}
	meddler := s.interceptor.Load()
	switch {
	case says(MarkerHang):
		<-s.done
	case says(MarkerLose):
		s.provider.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case says(MarkerLimited):
		w.Header().Set("Retry-After", RetryAfter)
		w.WriteHeader(http.StatusTooManyRequests)
	case meddler != nil:
		(*meddler)(w, r, s.provider)
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
