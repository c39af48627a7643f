package model

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
)

// llamaServer is the server of llama.cpp.
type llamaServer struct{ openAI }

func (llamaServer) identify(ctx context.Context, h *host, model string) (identity, error) {
	var list struct {
		Data []struct {
			ID      string   `json:"id"`
			Aliases []string `json:"aliases"`
		} `json:"data"`
	}
	if err := h.get(ctx, "v1/models", &list); err != nil {
		return identity{}, err
	}
	// A server with one model answers with it, regardless of the requested
	// name.
	listed := false
	for _, m := range list.Data {
		listed = listed || m.ID == model || slices.Contains(m.Aliases, model)
	}
	if !listed {
		return identity{}, fail(WrongModel, "the server does not have the model")
	}
	var props struct {
		TotalSlots int    `json:"total_slots"`
		Path       string `json:"model_path"`
		Build      string `json:"build_info"`
		Settings   struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if err := h.get(ctx, "props?model="+url.QueryEscape(model), &props); err != nil {
		return identity{}, err
	}
	return identity{
		slots: props.TotalSlots, context: props.Settings.Context,
		fingerprint: fmt.Sprintf("%s %s %d", props.Path, props.Build, props.Settings.Context),
	}, nil
}

func (llamaServer) tooLong(status int, body []byte) bool {
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	return status == 400 && json.Unmarshal(body, &e) == nil && e.Error.Type == "exceed_context_size_error"
}
