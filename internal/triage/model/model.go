// Package model asks a language model on a server of the user's own one
// question, and verifies the answer. It owns the connections to model servers
// and the decision whether a server may be used. It is independent of mail.
//
// Questions stay on the user's own machines: connections go only to loopback
// addresses, Unix sockets and configured networks, a server's remote models are
// refused, and each refusal is counted.
package model

import (
	"encoding/json"
	"time"
)

// Question is a question to a model. System, Schema and the beginning of User
// are the same for every question of a kind, so that servers can cache them.
type Question struct {
	System string
	User   string
	// Schema is sent byte for byte: a model writes properties in the order of
	// the schema.
	Schema json.RawMessage
	// MaxTokens limits the answer; 0 means 64.
	MaxTokens int
	// Choices requests the alternatives of each token.
	Choices bool
}

// Answer is an answer of the requested model that matches the question's
// schema.
type Answer struct {
	Text  json.RawMessage
	Model string
	// CachedTokens is the number of prompt tokens from the server's cache; -1
	// if it does not report it.
	PromptTokens, CompletionTokens, CachedTokens int
	// Tokens are the tokens of Text in order; empty if the server returns no
	// log-probabilities.
	Tokens []Token
	// Took includes the wait for a slot in the server, but not in this process.
	Took time.Duration
	// thinks reports whether the model wrote more than the answer.
	thinks bool
}

// Token is a token of an answer. Its probabilities are those before the schema
// was applied: normalise them over the allowed alternatives.
type Token struct {
	Text    string
	Logprob float64
	Top     []Alternative
}

// Alternative is a token that the model could have written instead.
type Alternative struct {
	Text    string
	Logprob float64
}
