package model

import (
	"context"
	"encoding/json"
)

// Dialect is how a model server is spoken to.
type Dialect string

// The dialects.
const (
	// Auto finds the dialect out at the first connection.
	Auto Dialect = "auto"
	// LlamaServer is the server of llama.cpp.
	LlamaServer Dialect = "llama-server"
	// Ollama is spoken to in its own dialect, since its OpenAI-compatible one
	// ignores the size of the context and cuts prompts silently.
	Ollama   Dialect = "ollama"
	Lemonade Dialect = "lemonade"
	VLLM     Dialect = "vllm"
	// OpenAI is any other server with /v1/chat/completions.
	OpenAI Dialect = "openai"
)

// Dialects returns every dialect that a configuration may name.
func Dialects() []Dialect { return []Dialect{Auto, LlamaServer, Ollama, Lemonade, VLLM, OpenAI} }

// identity is what a server says of itself and of a model, before it is asked
// anything.
type identity struct {
	// slots and context are 0 where the server does not say.
	slots, context int
	// trained is the largest context that the model was trained with; 0 if the
	// server does not say.
	trained int
	// fingerprint changes when the server has another model under the name.
	fingerprint string
}

// reply is what an answer of any dialect says.
type reply struct {
	text, finish, model string
	// thinking says that the model wrote a text that is no part of the answer.
	thinking                   bool
	prompt, completion, cached int
	tokens                     []Token
	// remote says that the server had the answer made elsewhere.
	remote bool
}

// protocol is how one dialect is spoken. Errors are of type *Error.
type protocol interface {
	// identify asks the server about a model.
	identify(ctx context.Context, h *host, model string) (identity, error)
	// path returns where questions go.
	path() string
	// encode returns a question as the server takes it.
	encode(q Question, model string, context int) ([]byte, error)
	// decode reads an answer of status 200.
	decode(body []byte) (reply, error)
	// tooLong reports whether an error says that the question is too long.
	tooLong(status int, body []byte) bool
}

// speak returns the protocol of a dialect, which the server is asked for if it is
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

// detect finds out what a server is. What only one kind of server has is asked
// for first: llama.cpp and Lemonade imitate parts of Ollama's interface.
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
