package modeltest

import (
	"encoding/json"
	"net/http"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

// speak returns the server's dialect.
func (s *Server) speak() dialect {
	base := openAI{s}
	switch s.config.Dialect {
	case model.LlamaServer:
		return llamaServer{base}
	case model.Ollama:
		return ollama{s}
	case model.Lemonade:
		return lemonade{base}
	case model.VLLM, model.OpenAI, model.Auto:
	}
	return base
}

// openAI is the common part of servers with OpenAI's chat completions.
type openAI struct{ *Server }

func (o openAI) routes(mux *http.ServeMux) {
	owner := "library"
	if o.config.Dialect == model.VLLM {
		owner = "vllm"
	}
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		entry := map[string]any{"id": o.config.Model, "object": "model", "owned_by": owner, "root": o.config.Model}
		if owner == "vllm" {
			entry["max_model_len"] = o.config.Context
		}
		if o.remoteModel() {
			entry["remote_host"], entry["remote_model"] = "https://ollama.com:443", o.config.Model
		}
		write(w, http.StatusOK, map[string]any{"object": "list", "data": []any{entry}})
	})
}

func (openAI) chat() string { return "POST /v1/chat/completions" }

func (openAI) read(body []byte) (Request, error) {
	var in struct {
		Model     string  `json:"model"`
		Messages  []entry `json:"messages"`
		MaxTokens int     `json:"max_tokens"`
		Logprobs  bool    `json:"logprobs"`
		Format    struct {
			Type   string `json:"type"`
			Schema struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	r := Request{Model: in.Model, Schema: in.Format.Schema.Schema, MaxTokens: in.MaxTokens, Choices: in.Logprobs}
	r.System, r.User = prompts(in.Messages)
	return r, nil
}

type entry struct{ Role, Content string }

func prompts(all []entry) (system, user string) {
	for _, e := range all {
		if e.Role == "system" {
			system = e.Content
		} else {
			user = e.Content
		}
	}
	return system, user
}

func (o openAI) write(w http.ResponseWriter, r result) {
	body := recorded("llama-server", "chat_ok")
	text := map[string]any{"role": "assistant", "content": r.Text}
	if r.thought != "" {
		text["reasoning_content"] = r.thought
	}
	choice := map[string]any{"index": 0, "finish_reason": r.finish, "message": text}
	if r.Choices && o.config.Dialect != model.Lemonade {
		choice["logprobs"] = map[string]any{"content": logprobs(tokens(r.Request, r.Reply))}
	}
	usage := map[string]any{"prompt_tokens": r.prompt, "completion_tokens": r.completion, "total_tokens": r.prompt + r.completion}
	if o.config.Dialect == model.LlamaServer || o.config.Dialect == model.VLLM {
		usage["prompt_tokens_details"] = map[string]any{"cached_tokens": r.cached}
	}
	body["model"], body["choices"], body["usage"] = r.model, []any{choice}, usage
	delete(body, "timings")
	if r.remote {
		body["remote_host"], body["remote_model"] = "https://ollama.com:443", r.model
	}
	write(w, http.StatusOK, body)
}

func (o openAI) tooLong(w http.ResponseWriter, tokens int) {
	write(w, http.StatusBadRequest, map[string]any{
		"object": "error", "type": "BadRequestError", "code": 400,
		"message": "This model's maximum context length is shorter than the request.", "tokens": tokens,
	})
}

func logprobs(all []model.Token) []map[string]any {
	list := []map[string]any{}
	for _, t := range all {
		var top []map[string]any
		for _, a := range t.Top {
			top = append(top, map[string]any{"token": a.Text, "logprob": a.Logprob})
		}
		list = append(list, map[string]any{"token": t.Text, "logprob": t.Logprob, "top_logprobs": top})
	}
	return list
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func writeError(w http.ResponseWriter, status int, kind, text string) {
	write(w, status, map[string]any{"error": map[string]any{"code": status, "message": text, "type": kind}})
}
