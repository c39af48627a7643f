// Package model asks one question of one language model on a server of the
// user's own, and believes nothing of the answer until it is checked. It owns
// the connections to model servers and the decision whether a server may be
// used; it knows nothing of mail.
//
// Questions stay on the user's own machines: connections go to loopback
// addresses, to Unix sockets and to networks that the configuration names, a
// server's models that run elsewhere are refused, and each refusal is counted.
package model

import (
	"encoding/json"
	"time"
)

// Question is what is asked of a model. System, Schema and the beginning of
// User are the same for every question of a kind, so that servers can reuse what
// they computed of it.
type Question struct {
	System string
	User   string
	// Schema is sent as it is written: the order of its properties is the order
	// in which a model writes them.
	Schema json.RawMessage
	// MaxTokens bounds the answer; 0 is 64.
	MaxTokens int
	// Choices asks for the alternatives that the model weighed at each token.
	Choices bool
}

// Answer is a text that is valid by the question's schema, from the model that
// was asked.
type Answer struct {
	Text  json.RawMessage
	Model string
	// CachedTokens are the tokens of the prompt that the server had computed
	// before; -1 where it does not say.
	PromptTokens, CompletionTokens, CachedTokens int
	// Tokens are those of Text, in order; empty where the server gives no
	// log-probabilities.
	Tokens []Token
	// Took includes waiting for a slot on the server's side, not on ours.
	Took time.Duration
	// thinks says that the model wrote more than the answer.
	thinks bool
}

// Token is one token of an answer. Its probabilities are those of before the
// schema was applied: normalise over the allowed alternatives.
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
