// Package modeltest has a model server for tests, which behaves like the real
// ones in their dialects: it answers by the schema that it is asked with, in
// scripted words, and fails in every way that real ones were seen to fail.
package modeltest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

// Config is what a server for tests is. Its zero value is useful.
type Config struct {
	// Dialect is model.LlamaServer if it is empty.
	Dialect model.Dialect
	// Model is test-model if it is empty.
	Model string
	// Context is in tokens, for question and answer together; 0 is 4096.
	Context int
	// Slots is how many questions are answered at once; 0 is 4.
	Slots int
	// Answer answers; nil is First.
	Answer func(Request) Reply
}

// Request is a question as the server got it, in whatever dialect.
type Request struct {
	Path         string
	Model        string
	System, User string
	Schema       json.RawMessage
	MaxTokens    int
	// Choices says that log-probabilities were asked for.
	Choices bool
}

// Reply is an answer.
type Reply struct {
	Text string
	// Confidence is the probability that each value of an enum is told to have,
	// before the schema; 0 is 0.9. The rest is spread over the other values.
	Confidence float64
}

// Server is a model server for tests. It listens on a loopback address.
type Server struct {
	config Config
	http   *httptest.Server

	mu       sync.Mutex
	requests []Request
}

// New starts a server, which ends with the test.
func New(t testing.TB, c Config) *Server {
	s := Start(c)
	t.Cleanup(s.Close)
	return s
}

// Start starts a server, until Close.
func Start(c Config) *Server {
	c.Dialect, c.Model = cmp.Or(c.Dialect, model.LlamaServer), cmp.Or(c.Model, "test-model")
	c.Context, c.Slots = cmp.Or(c.Context, 4096), cmp.Or(c.Slots, 4)
	if c.Answer == nil {
		c.Answer = First
	}
	s := &Server{config: c}
	mux := http.NewServeMux()
	s.openAI(mux)
	s.http = httptest.NewServer(mux)
	return s
}

// Close ends the server and its connections.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// URL returns the server's base address.
func (s *Server) URL() string { return s.http.URL }

// Requests returns the questions so far, in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Models returns a configuration in which the server answers every tier.
func (s *Server) Models() model.Config {
	c := model.Config{
		Servers: map[string]model.ServerConfig{"test": {Dialect: s.config.Dialect, URL: s.URL(), Slots: s.config.Slots}},
		Tiers:   make(map[string]model.TierConfig),
	}
	for _, tier := range model.Tiers() {
		c.Tiers[tier] = model.TierConfig{Server: "test", Model: s.config.Model, Context: s.config.Context}
	}
	return c
}

// Tier returns the server as the model of a tier.
func (s *Server) Tier(t testing.TB, name string) model.Tier {
	t.Helper()
	set, err := model.Open(s.Models(), model.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	tier, _ := set.Tier(name)
	return tier
}

// answer answers a question and keeps it.
func (s *Server) answer(r Request) Reply {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	return s.config.Answer(r)
}
