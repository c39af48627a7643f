// Package modeltest is a model server for tests that behaves like the real ones
// in their dialects: it answers by the given schema with scripted values, and
// has every failure mode observed in real ones.
package modeltest

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

// Config configures a server. The zero value is ready to use.
type Config struct {
	// Dialect is the dialect; "" means model.LlamaServer.
	Dialect model.Dialect
	// Model is the name of the model; "" means test-model.
	Model string
	// Context is the limit of tokens for question and answer together; 0 means
	// 4096.
	Context int
	// Slots is the number of concurrent questions; 0 means 4. Further ones
	// wait.
	Slots int
	// Answer answers questions; nil means First.
	Answer func(Request) Reply
	// Latency is the duration of answers; the zero value is immediate.
	Latency Latency
	// CutsPrompts makes the server truncate prompts to the context silently.
	CutsPrompts bool
	// RedirectTo is the target of the fault Redirect.
	RedirectTo string
	// Recipe is the back end of the model on Lemonade; "" means llamacpp.
	// BackEnd is its address; "" means a loopback address.
	Recipe, BackEnd string
}

// Request is a received question of any dialect.
type Request struct {
	Path         string
	Model        string
	System, User string
	Schema       json.RawMessage
	MaxTokens    int
	// Choices reports whether log-probabilities were requested.
	Choices bool
	// Raw is the body of the request.
	Raw json.RawMessage
}

// Reply is an answer.
type Reply struct {
	Text string
	// Confidence is the probability of each chosen enum value before the
	// schema; 0 means 0.9. The rest is divided among the other values.
	Confidence float64
}

// Server is a model server for tests. It listens on a loopback address.
type Server struct {
	config Config
	http   *httptest.Server
	// handler serves all routes.
	handler http.Handler
	closed  chan struct{}
	close   func()
	slots   chan *slot

	mu       sync.Mutex
	requests []Request
	probes   int
	fault    Fault
	failing  int
	file     string
}

// New starts a server that stops when the test ends.
func New(t testing.TB, c Config) *Server {
	s := Start(c)
	t.Cleanup(s.Close)
	return s
}

// Start starts a server, which Close stops.
func Start(c Config) *Server {
	s := newServer(c)
	s.http = httptest.NewServer(s.handler)
	return s
}

// newServer returns a server without a listener.
func newServer(c Config) *Server {
	c.Dialect, c.Model = cmp.Or(c.Dialect, model.LlamaServer), cmp.Or(c.Model, "test-model")
	c.Context, c.Slots = cmp.Or(c.Context, 4096), cmp.Or(c.Slots, 4)
	if c.Answer == nil {
		c.Answer = First
	}
	s := &Server{config: c, closed: make(chan struct{}), slots: make(chan *slot, c.Slots)}
	s.close = sync.OnceFunc(func() { close(s.closed) })
	for range c.Slots {
		s.slots <- &slot{}
	}
	s.handler = s.routes()
	return s
}

// Close stops the server and its connections.
func (s *Server) Close() {
	s.close()
	s.http.CloseClientConnections()
	s.http.Close()
}

// URL returns the server's base address.
func (s *Server) URL() string { return s.http.URL }

// Handler returns the handler, for a test's own listeners.
func (s *Server) Handler() http.Handler { return s.handler }

// Requests returns the questions so far in order of arrival, without those of
// the probe before the first question.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Probes returns the number of questions of probes.
func (s *Server) Probes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.probes
}

// Models returns a configuration in which the server answers every tier.
func (s *Server) Models() model.Config {
	c := model.Config{
		Servers: map[string]model.ServerConfig{"test": {URL: s.URL(), Slots: s.config.Slots}},
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

// Swap replaces the file of the model under the same name.
func (s *Server) Swap(file string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file = file
}

// path returns the file of the model.
func (s *Server) path() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.file, "test-model.gguf")
}

// result is the input of a dialect for an answer.
type result struct {
	Request
	Reply
	model, finish              string
	prompt, completion, cached int
	thought                    string
	remote                     bool
}

// dialect is the API of a kind of server.
type dialect interface {
	// routes adds the routes with the server's descriptions.
	routes(mux *http.ServeMux)
	// chat returns the pattern of the route for questions.
	chat() string
	read(body []byte) (Request, error)
	write(w http.ResponseWriter, r result)
	tooLong(w http.ResponseWriter, tokens int)
}

func (s *Server) routes() http.Handler {
	d := s.speak()
	mux := http.NewServeMux()
	d.routes(mux)
	mux.HandleFunc(d.chat(), func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		request, err := d.read(body)
		if err != nil {
			writeError(w, http.StatusBadRequest, "invalid_request_error", "the request cannot be read")
			return
		}
		request.Path, request.Raw = r.URL.Path, body
		s.answer(w, r, d, request)
	})
	return mux
}

// answer answers a question, or fails.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, d dialect, request Request) {
	probe := isProbe(request)
	s.keep(request, probe)
	f := s.next()
	if s.refuse(w, r, f) {
		return
	}
	out := result{Request: request, model: s.config.Model, finish: "stop", remote: f == RemoteAnswer}
	out.prompt = CountTokens(request.System + request.User)
	if s.config.CutsPrompts {
		out.prompt = min(out.prompt, s.config.Context-1)
	}
	if f == Overflow || !s.config.CutsPrompts && out.prompt+request.MaxTokens > s.config.Context {
		d.tooLong(w, max(out.prompt, s.config.Context+1))
		return
	}
	taken, err := s.take(r.Context(), request)
	if err != nil {
		return // the client is gone
	}
	defer s.give(taken)
	out.cached = taken.cached
	if out.Reply = First(request); !probe {
		out.Reply = s.config.Answer(request)
	}
	out.change(f)
	if most := 4 * request.MaxTokens; len(out.Text) > most {
		out.Text, out.finish = out.Text[:most], "length"
	}
	out.completion = CountTokens(out.Text + out.thought)
	if f == Uncounted {
		out.prompt, out.completion = 0, 0
	}
	if s.config.Latency.wait(r.Context(), out) {
		d.write(w, out)
	}
}

// change applies a fault to an answer.
func (out *result) change(f Fault) {
	switch f {
	case Cut:
		out.Text, out.finish = out.Text[:len(out.Text)/2], "length"
	case SilentCut:
		out.prompt /= 2
	case WrongModel:
		out.model = "another-model"
	case Ignored:
		out.Text = "banana"
	case Thinking:
		out.thought = "Let me think about what is asked here, step by step, before I answer. "
	case Loading, Full, Silent, Dropped, DroppedHalfway, Redirect, Garbage, Huge, Overflow, Uncounted, RemoteAnswer, RemoteModel, RemoteShown, "":
	}
}

func (s *Server) keep(r Request, probe bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if probe {
		s.probes++
	} else {
		s.requests = append(s.requests, r)
	}
}

// isProbe reports whether a question belongs to the probe, by its schema. A
// real server could not know, but scripted answers are only for a test's own
// questions.
func isProbe(r Request) bool {
	var n node
	return json.Unmarshal(r.Schema, &n) == nil && len(n.Properties) == 2 && n.Properties[0].name == "first" && n.Properties[1].name == "second"
}
