package model

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
)

// Observer is told what is asked and what is refused, for metrics, logs and
// statuses. Nothing that it is told has text of a question or an answer in it.
// Its functions may be nil, must return quickly, and are called by several
// goroutines at once.
type Observer struct {
	// Asked is called after every question.
	Asked func(Asked)
	// Refused is called for every attempt to have a question answered elsewhere,
	// none of which was let through.
	Refused func(Refused)
}

// Asked is a question that was asked.
type Asked struct {
	Server, Model string
	// Kind is empty for a question that was answered.
	Kind                           Kind
	PromptTokens, CompletionTokens int
	Took                           time.Duration
}

// Refused is an attempt to have a question answered elsewhere.
type Refused struct {
	Server, Model string
	Refusal       Refusal
	Why           string
}

// Server is a model on a server.
type Server struct {
	host     *host
	protocol protocol
	model    string
	context  int
	observer Observer
}

func newServer(h *host, _ Dialect, t TierConfig, o Observer) *Server {
	return &Server{host: h, protocol: openAI{}, model: t.Model, context: t.Context, observer: o}
}

// Name returns the name that the configuration has for the server.
func (s *Server) Name() string { return s.host.name }

// Model returns the name of the model.
func (s *Server) Model() string { return s.model }

// Context returns the size of the context in tokens, for question and answer
// together.
func (s *Server) Context() int { return cmp.Or(s.context, 4096) }

// Ask asks a question and checks the answer. Its error is an *Error.
func (s *Server) Ask(ctx context.Context, q Question) (Answer, error) {
	q.MaxTokens = cmp.Or(q.MaxTokens, 64)
	begun := time.Now()
	a, err := s.ask(ctx, q)
	told := Asked{Server: s.host.name, Model: s.model, PromptTokens: a.PromptTokens, CompletionTokens: a.CompletionTokens, Took: time.Since(begun)}
	if err != nil {
		e := s.named(err)
		told.Kind, err = e.Kind, e
		if e.Kind == Remote && s.observer.Refused != nil {
			s.observer.Refused(Refused{s.host.name, s.model, e.Refusal, e.Why})
		}
	}
	if s.observer.Asked != nil {
		s.observer.Asked(told)
	}
	return a, err
}

// named returns an error with the names of the server and the model.
func (s *Server) named(err error) *Error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Kind: Unavailable, Why: "the question could not be asked", cause: err}
	}
	named := *e
	named.Server, named.Model = s.host.name, s.model
	return &named
}

func (s *Server) ask(ctx context.Context, q Question) (Answer, error) {
	if err := s.host.slots.Acquire(ctx, 1); err != nil {
		return Answer{}, &Error{Kind: Unavailable, Why: "no slot of the server was free in time", cause: err}
	}
	defer s.host.slots.Release(1)
	begun := time.Now()
	body, err := s.protocol.encode(q, s.model, s.Context())
	if err != nil {
		return Answer{}, &Error{Kind: Invalid, Why: "the question's schema is no JSON text", cause: err}
	}
	status, text, err := s.host.do(ctx, http.MethodPost, s.protocol.path(), body)
	if err != nil {
		return Answer{}, err
	}
	if status != http.StatusOK {
		return Answer{}, failStatus(status)
	}
	r, err := s.protocol.decode(text)
	if err != nil {
		return Answer{}, err
	}
	a, err := s.check(ctx, q, r)
	a.Took = time.Since(begun)
	return a, err
}
