package model

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
)

// lemonade forwards questions to back ends, some of which are remote.
type lemonade struct{ openAI }

// localRecipes are the back ends of Lemonade that run on its machine.
func localRecipes() []string {
	return []string{"llamacpp", "flm", "ryzenai-llm", "vllm", "onnxruntime"}
}

func (lemonade) identify(ctx context.Context, h *host, model string) (identity, error) {
	var list struct {
		Data []struct {
			ID         string `json:"id"`
			Recipe     string `json:"recipe"`
			Checkpoint string `json:"checkpoint"`
			remoteMarks
		} `json:"data"`
	}
	if err := h.get(ctx, "v1/models", &list); err != nil {
		return identity{}, err
	}
	for _, m := range list.Data {
		switch {
		case m.ID != model:
		case m.remote() || !slices.Contains(localRecipes(), m.Recipe):
			return identity{}, refuse(RefusedModel, "the model's back end does not run on the server's own machine")
		default:
			return lemonadeLoaded(ctx, h, model, m.Recipe+" "+m.Checkpoint)
		}
	}
	return identity{}, fail(WrongModel, "the server does not list the model")
}

// lemonadeLoaded returns the identity of a model with a local back end. If the
// model is loaded, the back end must have an address of the server's machine.
func lemonadeLoaded(ctx context.Context, h *host, model, fingerprint string) (identity, error) {
	var health struct {
		Loaded []struct {
			Model   string `json:"model_name"`
			Recipe  string `json:"recipe"`
			URL     string `json:"backend_url"`
			Options struct {
				Context int `json:"ctx_size"`
			} `json:"recipe_options"`
		} `json:"all_models_loaded"`
	}
	if err := h.get(ctx, "v1/health", &health); err != nil {
		return identity{}, err
	}
	id := identity{fingerprint: fingerprint}
	for _, l := range health.Loaded {
		if l.Model != model {
			continue
		}
		if !slices.Contains(localRecipes(), l.Recipe) || !loopbackURL(l.URL) {
			return identity{}, refuse(RefusedModel, "the model's back end is not on the server's own machine")
		}
		id.context = l.Options.Context
		id.fingerprint += fmt.Sprintf(" %d", l.Options.Context)
	}
	return id, nil
}

// loopbackURL reports whether a URL names a loopback address literally, or
// localhost.
func loopbackURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && addr.Unmap().IsLoopback()
}
