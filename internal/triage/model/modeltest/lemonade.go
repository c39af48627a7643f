package modeltest

import (
	"cmp"
	"net/http"
)

// lemonade forwards questions to a back end.
type lemonade struct{ openAI }

func (l lemonade) routes(mux *http.ServeMux) {
	recipe := func() string {
		if l.remoteModel() {
			return "cloud"
		}
		return cmp.Or(l.config.Recipe, "llamacpp")
	}
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{
			"id": l.config.Model, "object": "model", "owned_by": "lemonade", "recipe": recipe(), "checkpoint": "test/checkpoint", "downloaded": true,
		}}})
	})
	mux.HandleFunc("GET /v1/health", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]any{"status": "ok", "all_models_loaded": []any{map[string]any{
			"model_name": l.config.Model, "recipe": recipe(), "backend_url": cmp.Or(l.config.BackEnd, "http://127.0.0.1:8001/v1"),
			"recipe_options": map[string]any{"ctx_size": l.config.Context},
		}}})
	})
}
