package rest

import (
	"context"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

const (
	defaultWait = 30 * time.Second
	maxWait     = 5 * time.Minute
)

// patience is how long the caller wants to wait.
func patience(query url.Values, otherwise time.Duration) (time.Duration, error) {
	for _, name := range []string{"wait", "timeout"} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, invalid("/query/"+name, envelope.RuleFormat, "must be a duration such as 30s")
		}
		if d > maxWait {
			return 0, invalid("/query/"+name, "maximum", "must be at most 5m")
		}
		return d, nil
	}
	return otherwise, nil
}

// await returns an action that the caller may see: at once, or, if the caller
// wants to wait, when it has ended, the time is over or the server closes.
// What has not ended by then is marked in the answer's header.
func (s *Server) await(c *call, id envelope.ActionID) (outbox.View, error) {
	v, err := s.look(c, id)
	if err != nil || c.wait == 0 || envelope.Ended(v.Envelope.Result.Status) {
		return v, err
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), c.wait)
	defer cancel()
	w, err := s.hub.watch(ctx, c.by.Tenant, id)
	if err == nil {
		defer s.hub.unwatch(w)
		v, err = s.awaitEvents(ctx, c, w, v)
	}
	if c.r.Context().Err() != nil {
		return v, c.r.Context().Err()
	}
	if err != nil && ctx.Err() == nil && !s.hub.isClosed() {
		return v, err
	}
	if !envelope.Ended(v.Envelope.Result.Status) {
		c.w.Header().Set("Countersign-Pending", "true")
	}
	return v, nil
}

// awaitEvents looks at an action whenever something happened to it. It ends
// with the latest view.
func (s *Server) awaitEvents(ctx context.Context, c *call, w *watch, latest outbox.View) (outbox.View, error) {
	for {
		v, err := s.look(c, w.action)
		if err != nil {
			return latest, err
		}
		latest = v
		if envelope.Ended(v.Envelope.Result.Status) {
			return latest, nil
		}
		select {
		case <-w.nudged:
		case <-ctx.Done():
			return latest, ctx.Err()
		case <-s.hub.closed:
			return latest, errClosed
		}
	}
}

func (s *Server) look(c *call, id envelope.ActionID) (outbox.View, error) {
	var v outbox.View
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		v, err = c.view(ctx, tx, id)
		return err
	})
	return v, err
}
