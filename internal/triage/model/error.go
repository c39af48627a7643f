package model

import (
	"errors"
	"fmt"
)

// Kind is why a question has no answer.
type Kind string

// The kinds of errors.
const (
	// Unavailable: the server is gone, loading, full or failing, or its breaker
	// is open.
	Unavailable Kind = "unavailable"
	// TooLong: the question does not fit the model's context.
	TooLong Kind = "too_long"
	// Cut: the answer reached MaxTokens before its end.
	Cut Kind = "cut"
	// Invalid: the answer is no JSON text, or not one by the schema.
	Invalid Kind = "invalid"
	// WrongModel: the server does not have the model, or another one answered.
	WrongModel Kind = "wrong_model"
	// Remote: the server is at an address that is not allowed, or would have the
	// question answered elsewhere.
	Remote Kind = "remote"
	// Disobedient: the server was seen to ignore schemas.
	Disobedient Kind = "disobedient"
)

// Error is why a question has no answer. Its text has nothing of a question or
// an answer in it.
type Error struct {
	Kind Kind
	// Server and Model are the names that the configuration has.
	Server, Model string
	// Why is a sentence without its end, in words of this package.
	Why string
	// Refusal is what a Remote error refused; empty else.
	Refusal Refusal
	cause   error
	// answered says that the server answered, if only to refuse.
	answered bool
	// abandoned says that the caller's context ended, which says nothing of the
	// server.
	abandoned bool
}

// Refusal is what would have had a question answered elsewhere.
type Refusal string

// The refusals.
const (
	// RefusedAddress is a connection to an address that is not allowed.
	RefusedAddress Refusal = "address"
	// RefusedRedirect is an answer that leads to another address.
	RefusedRedirect Refusal = "redirect"
	// RefusedModel is a model that the server says runs elsewhere.
	RefusedModel Refusal = "model"
	// RefusedAnswer is an answer that says it was made elsewhere.
	RefusedAnswer Refusal = "answer"
)

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("model %s on server %s: %s: %s", e.Model, e.Server, e.Kind, e.Why)
}

// Unwrap returns the error of the connection or of the context, if there is one.
func (e *Error) Unwrap() error { return e.cause }

func fail(kind Kind, why string) *Error { return &Error{Kind: kind, Why: why} }

func refuse(what Refusal, why string) *Error { return &Error{Kind: Remote, Refusal: what, Why: why} }

// asError returns the *Error in an error, or nil.
func asError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}
