package model

import "context"

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

// identity is what a server says of itself and of a model, before it is asked
// anything.
type identity struct {
	dialect Dialect
	// slots and context are 0 where the server does not say.
	slots, context int
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

// protocol is how one dialect is spoken.
type protocol interface {
	// identify asks the server about a model. Its error is an *Error.
	identify(ctx context.Context, h *host, model string) (identity, error)
	// path returns where questions go.
	path() string
	// encode returns a question as the server takes it.
	encode(q Question, model string, context int) ([]byte, error)
	// decode reads an answer of status 200.
	decode(body []byte) (reply, error)
}
