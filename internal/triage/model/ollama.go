package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ollama uses /api/chat, which respects the size of the context and fails for a
// prompt that is too long.
type ollama struct{}

func (ollama) path() string { return "api/chat" }

type ollamaRequest struct {
	Model       string          `json:"model"`
	Messages    []message       `json:"messages"`
	Stream      bool            `json:"stream"`
	Format      json.RawMessage `json:"format"`
	Think       bool            `json:"think"`
	Truncate    bool            `json:"truncate"`
	Shift       bool            `json:"shift"`
	Logprobs    bool            `json:"logprobs,omitzero"`
	TopLogprobs int             `json:"top_logprobs,omitzero"`
	Options     ollamaOptions   `json:"options"`
}

type ollamaOptions struct {
	Context     int     `json:"num_ctx"`
	MaxTokens   int     `json:"num_predict"`
	Temperature float64 `json:"temperature"`
	Seed        int     `json:"seed"`
}

func (ollama) encode(q Question, model string, context int) ([]byte, error) {
	request := ollamaRequest{
		Model: model, Messages: messages(q), Format: q.Schema, Logprobs: q.Choices,
		Options: ollamaOptions{Context: context, MaxTokens: q.MaxTokens, Seed: 1},
	}
	if q.Choices {
		request.TopLogprobs = alternatives
	}
	return json.Marshal(request)
}

func (ollama) decode(body []byte) (reply, error) {
	var a struct {
		Model   string `json:"model"`
		Message struct {
			Content  string `json:"content"`
			Thinking string `json:"thinking"`
		} `json:"message"`
		Done     bool      `json:"done"`
		Reason   string    `json:"done_reason"`
		Prompt   int       `json:"prompt_eval_count"`
		Eval     int       `json:"eval_count"`
		Logprobs []logprob `json:"logprobs"`
		remoteMarks
	}
	if json.Unmarshal(body, &a) != nil || !a.Done {
		return reply{}, fail(Invalid, "invalid chat response from Ollama")
	}
	return reply{
		text: a.Message.Content, finish: a.Reason, model: a.Model, thinking: a.Message.Thinking != "",
		prompt: a.Prompt, completion: a.Eval, cached: -1, tokens: tokens(a.Logprobs), remote: a.remote(),
	}, nil
}

func (ollama) identify(ctx context.Context, h *host, model string) (identity, error) {
	// Models on Ollama's own servers have such names, and work without being
	// listed.
	if strings.HasSuffix(model, "-cloud") || strings.HasSuffix(model, ":cloud") {
		return identity{}, refuse(RefusedModel, "the model's name marks it as remote")
	}
	digest, err := ollamaDigest(ctx, h, model)
	if err != nil {
		return identity{}, err
	}
	var shown struct {
		Info map[string]any `json:"model_info"`
		remoteMarks
	}
	if err := h.post(ctx, "api/show", map[string]string{"model": model}, &shown); err != nil {
		return identity{}, err
	}
	if shown.remote() {
		return identity{}, refuse(RefusedModel, "the server lists the model as remote")
	}
	return identity{trained: ollamaTrained(shown.Info), fingerprint: digest}, nil
}

// ollamaTrained returns the largest context in a model's training, or 0 if the
// server does not report it.
func ollamaTrained(info map[string]any) int {
	for _, name := range slices.Sorted(maps.Keys(info)) {
		if n, ok := info[name].(float64); ok && strings.HasSuffix(name, ".context_length") && n > 0 && n < 1e9 {
			return int(n)
		}
	}
	return 0
}

// ollamaDigest returns the digest of a model that is stored on the server.
func ollamaDigest(ctx context.Context, h *host, model string) (string, error) {
	var list struct {
		Models []struct {
			Name   string `json:"name"`
			Digest string `json:"digest"`
			remoteMarks
		} `json:"models"`
	}
	if err := h.get(ctx, "api/tags", &list); err != nil {
		return "", err
	}
	for _, m := range list.Models {
		if !sameModel(m.Name, model) {
			continue
		}
		if m.remote() {
			return "", refuse(RefusedModel, "the server lists the model as remote")
		}
		return m.Digest, nil
	}
	return "", fail(WrongModel, fmt.Sprintf("the server does not have the model; `ollama pull %s` fetches it", model))
}

// sameModel reports whether two names mean the same model: Ollama adds :latest
// to a name without a tag.
func sameModel(a, b string) bool {
	return strings.TrimSuffix(a, ":latest") == strings.TrimSuffix(b, ":latest")
}

func (ollama) tooLong(status int, body []byte) bool {
	var e struct {
		Error string `json:"error"`
	}
	if status < 400 || json.Unmarshal(body, &e) != nil {
		return false
	}
	text := strings.ToLower(e.Error)
	return strings.Contains(text, "context length") || strings.Contains(text, "context size") || strings.Contains(text, "too long")
}
