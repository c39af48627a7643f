package mcpserver

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// recheckEvery is how often the tokens of open requests are checked again.
const recheckEvery = 15 * time.Second

// run announces changed catalogs, ends requests whose token is no longer valid,
// and removes idle token servers, until the Server closes. While nobody is
// connected it asks the database nothing.
func (srv *Server) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	polls, rechecks := time.NewTicker(srv.cfg.Poll), time.NewTicker(recheckEvery)
	defer polls.Stop()
	defer rechecks.Stop()
	srv.background.Go(func() { // ends a query that is running
		<-srv.closing
		cancel()
	})
	for {
		select {
		case <-srv.closing:
			return
		case now := <-polls.C:
			srv.removeIdle(now)
			srv.announceChanges(ctx)
		case <-rechecks.C:
			srv.recheckTokens(ctx)
		}
	}
}

// removeIdle removes the token servers that nobody uses.
func (srv *Server) removeIdle(now time.Time) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	maps.DeleteFunc(srv.servers, func(_ identity.TokenID, ts *tokenServer) bool { return ts.idle(now) })
}

// announceChanges notifies every client whose list of tools has changed. It
// reads the settings once for each tenant that has clients.
func (srv *Server) announceChanges(ctx context.Context) {
	type current struct {
		snap *settings.Settings
		now  time.Time
	}
	known := make(map[envelope.TenantID]current)
	for _, ts := range srv.tokenServers() {
		if len(slices.Collect(ts.server.Sessions())) == 0 {
			continue
		}
		at := known[ts.by.Tenant]
		var err error
		if at.snap == nil {
			at.snap, at.now, err = ts.settings(ctx)
		}
		var moved bool
		if err == nil {
			known[ts.by.Tenant] = at
			moved, err = ts.listChanged(at.snap, at.now)
		}
		if err != nil && ctx.Err() == nil {
			srv.Log.WarnContext(ctx, "catalog not compared", slog.String("tenant_id", ts.by.Tenant.String()), slog.Any("error", err))
		}
		if moved {
			ts.addFollowUps() // the SDK's server notifies its clients when tools are added
		}
	}
}

// recheckTokens ends open requests whose token was revoked, has expired, or
// grants something else now.
func (srv *Server) recheckTokens(ctx context.Context) {
	srv.mu.Lock()
	calls := slices.Collect(maps.Values(srv.requests))
	srv.mu.Unlock()
	for _, o := range calls {
		by, err := srv.Auth.Authenticate(ctx, o.token, time.Now())
		if err == nil && !by.Equal(o.by) || errors.Is(err, identity.ErrToken) || errors.Is(err, fault.Denied) {
			o.cancel()
		}
	}
}
