package model

import (
	"context"
	"encoding/json"
)

// Dialect is the API of a model server.
type Dialect string

// The dialects.
const (
	// Auto detects the dialect at the first connection.
	Auto Dialect = "auto"
	// LlamaServer is the server of llama.cpp.
	LlamaServer Dialect = "llama-server"
	// Ollama is its native API, since its OpenAI-compatible one ignores the
	// size of the context and truncates prompts silently.
	Ollama   Dialect = "ollama"
	Lemonade Dialect = "lemonade"
	VLLM     Dialect = "vllm"
	// OpenAI is any other server with /v1/chat/completions.
	OpenAI Dialect = "openai"
)

// Dialects returns every dialect that a configuration may name.
func Dialects() []Dialect { return []Dialect{Auto, LlamaServer, Ollama, Lemonade, VLLM, OpenAI} }

// identity is a server's description of itself and of a model, before any
// question.
type identity struct {
	// slots and context are 0 if the server does not report them.
	slots, context int
	// trained is the largest context in the model's training; 0 if the server
	// does not report it.
	trained int
	// fingerprint changes when the server has another model of the same name.
	fingerprint string
}

// reply is a decoded answer of any dialect.
type reply struct {
	text, finish, model string
	// thinking reports whether the model wrote text that is not part of the
	// answer.
	thinking                   bool
	prompt, completion, cached int
	tokens                     []Token
	// remote reports whether another host made the answer.
	remote bool
}

// protocol implements one dialect. Errors are of type *Error.
type protocol interface {
	// identify queries the server about a model.
	identify(ctx context.Context, h *host, model string) (identity, error)
	// path returns the path for questions.
	path() string
	// encode returns the request body for a question.
	encode(q Question, model string, context int) ([]byte, error)
	// decode decodes an answer of status 200.
	decode(body []byte) (reply, error)
	// tooLong reports whether an error means that the question is too long.
	tooLong(status int, body []byte) bool
}

// speak returns the protocol of a dialect, and detects the dialect if it is
// Auto. The error is an *Error.
func speak(ctx context.Context, h *host, d Dialect) (Dialect, protocol, error) {
	if d == Auto || d == "" {
		var err error
		if d, err = detect(ctx, h); err != nil {
			return d, nil, err
		}
	}
	switch d {
	case LlamaServer:
		return d, llamaServer{}, nil
	case Ollama:
		return d, ollama{}, nil
	case Lemonade:
		return d, lemonade{}, nil
	case VLLM, OpenAI, Auto:
	}
	return d, openAI{}, nil
}

// detect detects the dialect of a server. It first requests what only one kind
// of server has: llama.cpp and Lemonade imitate parts of Ollama's API.
func detect(ctx context.Context, h *host) (Dialect, error) {
	for _, at := range []struct {
		path    string
		dialect Dialect
		member  string
	}{
		{"props", LlamaServer, "total_slots"}, {"v1/health", Lemonade, "all_models_loaded"}, {"api/version", Ollama, "version"},
	} {
		var members map[string]json.RawMessage
		err := h.get(ctx, at.path, &members)
		if e := asError(err); e != nil && (e.Kind == Unavailable || e.Kind == Remote) && !e.answered {
			return Auto, err
		}
		if _, has := members[at.member]; err == nil && has {
			return at.dialect, nil
		}
	}
	var list openAIModels
	if err := h.get(ctx, "v1/models", &list); err != nil {
		return Auto, err
	}
	for _, m := range list.Data {
		if m.OwnedBy == "vllm" {
			return VLLM, nil
		}
	}
	return OpenAI, nil
}
