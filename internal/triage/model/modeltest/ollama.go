package modeltest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// ollama is Ollama's native dialect.
type ollama struct{ *Server }

func (o ollama) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/version", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]any{"version": "0.17.4"})
	})
	mux.HandleFunc("GET /api/tags", func(w http.ResponseWriter, _ *http.Request) {
		name := o.config.Model
		if !strings.Contains(name, ":") {
			name += ":latest"
		}
		write(w, http.StatusOK, map[string]any{"models": []any{o.mark(o.remoteModel(), map[string]any{"name": name, "model": name, "size": 1 << 30, "digest": o.path()})}})
	})
	mux.HandleFunc("POST /api/show", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, o.mark(o.remoteModel() || o.failsWith(RemoteShown), map[string]any{
			"capabilities": []string{"completion"}, "model_info": map[string]any{"general.architecture": "qwen3", "qwen3.context_length": 32768},
		}))
	})
}

// mark adds Ollama's fields for remote models.
func (o ollama) mark(remote bool, entry map[string]any) map[string]any {
	if remote {
		entry["remote_host"], entry["remote_model"] = "https://ollama.com:443", o.config.Model
	}
	return entry
}

func (ollama) chat() string { return "POST /api/chat" }

func (ollama) read(body []byte) (Request, error) {
	var in struct {
		Model    string          `json:"model"`
		Messages []entry         `json:"messages"`
		Format   json.RawMessage `json:"format"`
		Logprobs bool            `json:"logprobs"`
		Options  struct {
			MaxTokens int `json:"num_predict"`
		} `json:"options"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	r := Request{Model: in.Model, Schema: in.Format, MaxTokens: in.Options.MaxTokens, Choices: in.Logprobs}
	r.System, r.User = prompts(in.Messages)
	return r, nil
}

func (o ollama) write(w http.ResponseWriter, r result) {
	text := map[string]any{"role": "assistant", "content": r.Text}
	if r.thought != "" {
		text["thinking"] = r.thought
	}
	body := map[string]any{
		"model": r.model, "created_at": "2026-11-22T10:00:00Z", "message": text, "done": true, "done_reason": r.finish,
		"prompt_eval_count": r.prompt, "eval_count": r.completion,
	}
	if r.Choices {
		body["logprobs"] = logprobs(tokens(r.Request, r.Reply))
	}
	if r.remote {
		body["remote_host"], body["remote_model"] = "https://ollama.com:443", r.model
	}
	write(w, http.StatusOK, body)
}

func (o ollama) tooLong(w http.ResponseWriter, _ int) {
	write(w, http.StatusBadRequest, map[string]any{"error": "input length exceeds the context length"})
}
