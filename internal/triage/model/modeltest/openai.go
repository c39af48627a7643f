package modeltest

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

// openAI serves /v1/models and /v1/chat/completions.
func (s *Server) openAI(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": s.config.Model, "object": "model"}}})
	})
	mux.HandleFunc("POST /v1/chat/completions", s.completions)
}

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role, Content string
		} `json:"messages"`
		MaxTokens int  `json:"max_tokens"`
		Logprobs  bool `json:"logprobs"`
		Format    struct {
			Schema struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		writeError(w, http.StatusInternalServerError, "server_error", "the request is no JSON text")
		return
	}
	request := Request{Path: r.URL.Path, Model: in.Model, Schema: in.Format.Schema.Schema, MaxTokens: in.MaxTokens, Choices: in.Logprobs}
	for _, m := range in.Messages {
		if m.Role == "system" {
			request.System = m.Content
		} else {
			request.User = m.Content
		}
	}
	reply := s.answer(request)
	choice := map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": reply.Text}}
	if request.Choices {
		choice["logprobs"] = map[string]any{"content": logprobs(tokens(request, reply))}
	}
	prompt, completion := countTokens(request.System+request.User), countTokens(reply.Text)
	write(w, http.StatusOK, map[string]any{
		"object": "chat.completion", "model": s.config.Model, "choices": []any{choice},
		"usage": map[string]any{"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
	})
}

// countTokens counts a token for each four bytes, as in ordinary English.
func countTokens(text string) int { return (len(strings.TrimSpace(text)) + 3) / 4 }

func logprobs(all []model.Token) []map[string]any {
	var list []map[string]any
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
