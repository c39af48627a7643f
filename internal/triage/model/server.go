package model

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Observer receives questions and refusals for metrics, logs and statuses,
// without any text of a question or an answer. Its functions may be nil, must
// return quickly, and are called concurrently.
type Observer struct {
	// Asked is called after every question.
	Asked func(Asked)
	// Refused is called for every attempt to have another host answer; all of
	// them are rejected.
	Refused func(Refused)
}

// Asked describes a completed question.
type Asked struct {
	Server, Model string
	// Kind is empty if the question was answered.
	Kind                           Kind
	PromptTokens, CompletionTokens int
	Took                           time.Duration
}

// Refused describes an attempt to have another host answer.
type Refused struct {
	Server, Model string
	Refusal       Refusal
	Why           string
}

// State is the last known state of a server.
type State struct {
	// Usable is false while the server's breaker is open, and for a while after
	// it was found unfit. It is true before the first question.
	Usable bool
	// Kind and Why are those of the last failure, or empty after a success.
	// Since is the beginning of the failures.
	Kind  Kind
	Why   string
	Since time.Time
}

// Server is a model on a server. It is identified and probed before its first
// question, and again after an outage or a change of its model.
type Server struct {
	host     *host
	dialect  Dialect
	model    string
	context  int
	observer Observer
	pace     pace

	// identifying holds a value while the server is being identified.
	identifying chan struct{}
	known       atomic.Pointer[known]

	mu    sync.Mutex
	state State
}

func newServer(h *host, d Dialect, t TierConfig, o Observer) *Server {
	return &Server{
		host: h, dialect: d, model: t.Model, context: t.Context, observer: o, identifying: make(chan struct{}, 1),
		state: State{Since: time.Now()},
	}
}

// Name returns the server's name in the configuration.
func (s *Server) Name() string { return s.host.name }

// Model returns the name of the model.
func (s *Server) Model() string { return s.model }

// Slots returns the number of concurrent questions to the server.
func (s *Server) Slots() int { return s.host.slots.Load().count }

// defaultContext is the size of the context if neither the configuration nor
// the server has one.
const defaultContext = 4096

// Context returns the size of the context in tokens, for question and answer
// together.
func (s *Server) Context() int {
	if k := s.known.Load(); k != nil {
		return k.context
	}
	return cmp.Or(s.context, defaultContext)
}

// InFlight returns the number of questions in flight to the server, for all its
// models.
func (s *Server) InFlight() int { return int(s.host.inFlight.Load()) }

// State returns the last known state without a request.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, k := s.state, s.known.Load()
	unfit := k != nil && k.unfit != nil && time.Since(k.at) < s.host.limit.recheck
	is.Usable = !unfit && s.host.breaker.State() != gobreaker.StateOpen
	return is
}

// Ready returns nil if the server may be asked. It identifies and probes the
// server if that was not done since its last outage. Its error is an *Error.
func (s *Server) Ready(ctx context.Context) error {
	err := s.host.guarded(func() error {
		_, err := s.ready(ctx)
		return err
	})
	return s.observe(err)
}

// Ask asks a question and verifies the answer. Its error is an *Error.
func (s *Server) Ask(ctx context.Context, q Question) (Answer, error) {
	q.MaxTokens = cmp.Or(q.MaxTokens, 64)
	begun := time.Now()
	a, err := s.ask(ctx, q)
	asked := Asked{Server: s.host.name, Model: s.model, PromptTokens: a.PromptTokens, CompletionTokens: a.CompletionTokens, Took: time.Since(begun)}
	if err = s.observe(err); err != nil {
		a, asked.Kind = Answer{}, asError(err).Kind
	}
	if s.observer.Asked != nil {
		s.observer.Asked(asked)
	}
	return a, err
}

// observe adds the server and the model to an error, reports a refusal, and
// stores the state. It returns nil or an *Error.
func (s *Server) observe(err error) error {
	if err == nil {
		s.keep(State{})
		return nil
	}
	e := &Error{Kind: Unavailable, Why: "the question could not be asked", cause: err}
	if is := asError(err); is != nil {
		*e = *is
	}
	e.Server, e.Model = s.host.name, s.model
	if e.Kind == Remote && s.observer.Refused != nil {
		s.observer.Refused(Refused{e.Server, e.Model, e.Refusal, e.Why})
	}
	switch e.Kind {
	case Unavailable, WrongModel, Remote, Disobedient:
		if !e.abandoned {
			s.keep(State{Kind: e.Kind, Why: e.Why})
		}
	case TooLong, Cut, Invalid:
		s.keep(State{})
	}
	return e
}

func (s *Server) keep(is State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is.Since = s.state.Since
	if is.Kind != s.state.Kind {
		is.Since = time.Now()
	}
	s.state = is
}

func (s *Server) ask(ctx context.Context, q Question) (a Answer, err error) {
	// The number of slots is known after identification.
	if err := s.host.guarded(func() error { _, err := s.ready(ctx); return err }); err != nil {
		return Answer{}, err
	}
	release, err := s.host.acquire(ctx)
	if err != nil {
		return Answer{}, err
	}
	defer release()
	err = s.host.guarded(func() error {
		a, err = s.retried(ctx, q)
		return err
	})
	return a, err
}

// retried asks a question, and again after a broken connection, behind which
// there may be a restarted server.
func (s *Server) retried(ctx context.Context, q Question) (Answer, error) {
	for retry := false; ; retry = true {
		k, err := s.ready(ctx)
		if err != nil {
			return Answer{}, err
		}
		a, err := s.once(ctx, k, q)
		e := asError(err)
		if e == nil {
			return a, err
		}
		if e.Kind == Unavailable && !e.abandoned || e.Kind == WrongModel || e.Kind == Remote {
			s.known.CompareAndSwap(k, nil)
		}
		if retry || !broken(e) {
			return Answer{}, err
		}
	}
}

// broken reports whether a connection closed before the end of the answer.
func broken(e *Error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}, func(cause error) bool { return errors.Is(e.cause, cause) })
}

// once asks an identified server.
func (s *Server) once(ctx context.Context, k *known, q Question) (Answer, error) {
	least := k.leastTokens(q)
	if least+q.MaxTokens > k.context {
		return Answer{}, fail(TooLong, "the question does not fit the model's context")
	}
	body, err := k.encode(q, s.model, k.context)
	if err != nil {
		return Answer{}, &Error{Kind: Invalid, Why: "the question cannot be encoded", cause: err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.pace.timeout(s.host.limit, 2*least, q.MaxTokens), errSlow)
	defer cancel()
	begun := time.Now()
	status, text, err := s.host.do(ctx, http.MethodPost, k.path(), body)
	if err != nil {
		return Answer{}, err
	}
	a, err := s.read(ctx, k, q, status, text)
	if err != nil {
		return Answer{}, err
	}
	a.Took = time.Since(begun)
	s.pace.measure(a)
	return a, nil
}

// read decodes and verifies the answer to a question.
func (s *Server) read(ctx context.Context, k *known, q Question, status int, body []byte) (Answer, error) {
	switch {
	case status != http.StatusOK && k.tooLong(status, body):
		return Answer{}, &Error{Kind: TooLong, Why: "the server rejected the question as too long", answered: true}
	case status != http.StatusOK:
		return Answer{}, failStatus(status)
	}
	r, err := k.decode(body)
	if err != nil {
		return Answer{}, err
	}
	return s.check(ctx, k, q, r)
}
