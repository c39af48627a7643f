package model

import (
	"errors"
	"fmt"
)

// Kind is the reason why a question has no answer.
type Kind string

// The kinds of errors.
const (
	// Unavailable: the server is unreachable, loading, full or failing, or its
	// breaker is open.
	Unavailable Kind = "unavailable"
	// TooLong: the question does not fit the model's context.
	TooLong Kind = "too_long"
	// Cut: the answer reached MaxTokens before its end.
	Cut Kind = "cut"
	// Invalid: the answer is not JSON, or does not match the schema.
	Invalid Kind = "invalid"
	// WrongModel: the server does not have the model, or another one answered.
	WrongModel Kind = "wrong_model"
	// Remote: the server is at a forbidden address, or would have another host
	// answer.
	Remote Kind = "remote"
	// Disobedient: the server ignored a schema.
	Disobedient Kind = "disobedient"
)

// Error is the error of a question without an answer. Its text contains nothing
// of a question or an answer.
type Error struct {
	Kind Kind
	// Server and Model are the names in the configuration.
	Server, Model string
	// Why is a clause without a full stop, without text of the server.
	Why string
	// Refusal is the reason of a Remote error, else "".
	Refusal Refusal
	cause   error
	// answered reports whether the server answered, even with an error.
	answered bool
	// abandoned reports whether the caller's context ended, which is no failure
	// of the server.
	abandoned bool
}

// Refusal is a way in which another host would have answered a question.
type Refusal string

// The refusals.
const (
	// RefusedAddress is a connection to a forbidden address.
	RefusedAddress Refusal = "address"
	// RefusedRedirect is a redirect to another address.
	RefusedRedirect Refusal = "redirect"
	// RefusedModel is a model that the server reports as remote.
	RefusedModel Refusal = "model"
	// RefusedAnswer is an answer that is marked as made by another host.
	RefusedAnswer Refusal = "answer"
)

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("model %s on server %s: %s: %s", e.Model, e.Server, e.Kind, e.Why)
}

// Unwrap returns the error of the connection or of the context, if there is one.
func (e *Error) Unwrap() error { return e.cause }

func fail(kind Kind, reason string) *Error { return &Error{Kind: kind, Why: reason} }

func refuse(refusal Refusal, reason string) *Error {
	return &Error{Kind: Remote, Refusal: refusal, Why: reason}
}

// asError returns the *Error in an error, or nil.
func asError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}
