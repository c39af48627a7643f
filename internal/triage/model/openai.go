package model

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// openAI implements the chat completions that most servers have. The dialects
// of llama.cpp, Lemonade and vLLM also use it for questions.
type openAI struct{}

func (openAI) path() string { return "v1/chat/completions" }

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func messages(q Question) []message {
	return []message{{"system", q.System}, {"user", q.User}}
}

// openAIRequest has a nested schema, since llama.cpp silently ignores the flat
// form.
type openAIRequest struct {
	Model          string         `json:"model"`
	Messages       []message      `json:"messages"`
	Temperature    float64        `json:"temperature"`
	Seed           int            `json:"seed"`
	MaxTokens      int            `json:"max_tokens"`
	Stream         bool           `json:"stream"`
	Logprobs       bool           `json:"logprobs,omitzero"`
	TopLogprobs    int            `json:"top_logprobs,omitzero"`
	ResponseFormat responseFormat `json:"response_format"`
	// TemplateArguments disable thinking in templates that support it.
	TemplateArguments map[string]bool `json:"chat_template_kwargs"`
}

type responseFormat struct {
	Type   string     `json:"type"`
	Schema jsonSchema `json:"json_schema"`
}

type jsonSchema struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

// alternatives is the number of alternatives requested for each token.
const alternatives = 8

func (openAI) encode(q Question, model string, _ int) ([]byte, error) {
	request := openAIRequest{
		Model: model, Messages: messages(q), Seed: 1, MaxTokens: q.MaxTokens, Logprobs: q.Choices,
		ResponseFormat:    responseFormat{"json_schema", jsonSchema{"answer", true, q.Schema}},
		TemplateArguments: map[string]bool{"enable_thinking": false},
	}
	if q.Choices {
		request.TopLogprobs = alternatives
	}
	return json.Marshal(request)
}

type logprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Top     []struct {
		Token   string  `json:"token"`
		Logprob float64 `json:"logprob"`
	} `json:"top_logprobs"`
}

func tokens(all []logprob) []Token {
	var list []Token
	for _, l := range all {
		t := Token{Text: l.Token, Logprob: l.Logprob}
		for _, top := range l.Top {
			t.Top = append(t.Top, Alternative{top.Token, top.Logprob})
		}
		list = append(list, t)
	}
	return list
}

type openAIAnswer struct {
	Model   string `json:"model"`
	Choices []struct {
		Finish  string `json:"finish_reason"`
		Message struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
			Thinking  string `json:"reasoning"`
		} `json:"message"`
		Logprobs struct {
			Content []logprob `json:"content"`
		} `json:"logprobs"`
	} `json:"choices"`
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached *int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	remoteMarks
}

// remoteMarks are the fields with which Ollama marks remote models.
type remoteMarks struct {
	RemoteModel string `json:"remote_model"`
	RemoteHost  string `json:"remote_host"`
}

func (m remoteMarks) remote() bool { return m.RemoteModel != "" || m.RemoteHost != "" }

func (openAI) decode(body []byte) (reply, error) {
	var a openAIAnswer
	if json.Unmarshal(body, &a) != nil || len(a.Choices) != 1 {
		return reply{}, fail(Invalid, "invalid chat completion")
	}
	choice := a.Choices[0]
	r := reply{
		text: choice.Message.Content, finish: choice.Finish, model: a.Model, cached: -1,
		thinking: choice.Message.Reasoning != "" || choice.Message.Thinking != "",
		prompt:   a.Usage.Prompt, completion: a.Usage.Completion,
		tokens: tokens(choice.Logprobs.Content), remote: a.remote(),
	}
	if a.Usage.Details.Cached != nil {
		r.cached = *a.Usage.Details.Cached
	}
	return r, nil
}

func (openAI) tooLong(status int, body []byte) bool {
	var e struct {
		Message string `json:"message"`
		Error   struct {
			Message string `json:"message"`
			Code    any    `json:"code"`
		} `json:"error"`
	}
	if status != http.StatusBadRequest || json.Unmarshal(body, &e) != nil {
		return false
	}
	text := strings.ToLower(e.Message + " " + e.Error.Message)
	return e.Error.Code == "context_length_exceeded" || strings.Contains(text, "context length") || strings.Contains(text, "context size")
}

type openAIModels struct {
	Data []struct {
		ID      string `json:"id"`
		Root    string `json:"root"`
		OwnedBy string `json:"owned_by"`
		MaxLen  int    `json:"max_model_len"`
		remoteMarks
	} `json:"data"`
}

func (openAI) identify(ctx context.Context, h *host, model string) (identity, error) {
	var list openAIModels
	if err := h.get(ctx, "v1/models", &list); err != nil {
		return identity{}, err
	}
	for _, m := range list.Data {
		switch {
		case m.ID != model:
		case m.remote():
			return identity{}, refuse(RefusedModel, "the server lists the model as remote")
		default:
			return identity{context: m.MaxLen, fingerprint: m.ID + " " + m.Root}, nil
		}
	}
	return identity{}, fail(WrongModel, "the server does not list the model")
}
