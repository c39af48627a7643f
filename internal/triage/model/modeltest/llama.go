package modeltest

import "net/http"

// llamaServer describes itself like a recorded server.
type llamaServer struct{ openAI }

func (l llamaServer) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, recorded("llama-server", "health"))
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		body := recorded("llama-server", "models")
		for _, list := range []string{"data", "models"} {
			for _, m := range body[list].([]any) {
				m.(map[string]any)["id"], m.(map[string]any)["name"], m.(map[string]any)["aliases"] = l.config.Model, l.config.Model, []any{l.config.Model}
			}
		}
		write(w, http.StatusOK, body)
	})
	mux.HandleFunc("GET /props", func(w http.ResponseWriter, _ *http.Request) {
		body := recorded("llama-server", "props")
		body["total_slots"], body["model_alias"], body["model_path"] = l.config.Slots, l.config.Model, l.path()
		body["default_generation_settings"].(map[string]any)["n_ctx"] = l.config.Context
		write(w, http.StatusOK, body)
	})
}

func (l llamaServer) tooLong(w http.ResponseWriter, tokens int) {
	body := recorded("llama-server", "chat_overflow")
	e := body["error"].(map[string]any)
	e["n_prompt_tokens"], e["n_ctx"] = tokens, l.config.Context
	write(w, http.StatusBadRequest, body)
}
