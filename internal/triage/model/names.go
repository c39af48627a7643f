package model

import (
	"context"
	"errors"
)

// Names returns the names of the models that a server lists. It makes no other
// request.
func Names(ctx context.Context, c ServerConfig) ([]string, error) {
	h, err := newHost("server", c, usualLimits())
	if err != nil {
		return nil, err
	}
	defer h.client.CloseIdleConnections()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := h.get(ctx, "v1/models", &list); err != nil {
		if e := asError(err); e != nil {
			return nil, errors.New(e.Why)
		}
		return nil, err
	}
	var names []string
	for _, m := range list.Data {
		if m.ID != "" && len(m.ID) <= maxModel {
			names = append(names, m.ID)
		}
	}
	return names, nil
}
