package mcpserver

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

func TestRecheckEndsRequestsWhoseTokenIsNoLongerValid(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := &Server{Backend: &request.Backend{Auth: identity.NewAuthenticator(dbtest.Tx(t))}, requests: map[string]*openRequest{"a": {ctx: ctx, cancel: cancel, token: "cs_agent_revoked"}}}

	f.recheckTokens(t.Context())

	if ctx.Err() == nil {
		t.Error("the request goes on")
	}
}

func TestIdleTokenServersAreRemoved(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := &Server{Backend: &request.Backend{}, servers: make(map[identity.TokenID]*tokenServer)}
	for i, c := range []struct {
		users int
		used  time.Time
	}{{0, now.Add(-time.Hour)}, {1, now.Add(-time.Hour)}, {0, now}} {
		made := newTokenServer(f, identity.Principal{})
		made.users, made.used = c.users, c.used
		f.servers[identity.TokenID{byte(i)}] = made
	}

	f.removeIdle(now)

	if _, there := f.servers[identity.TokenID{0}]; there || len(f.servers) != 2 {
		t.Errorf("%d token servers are left, want the one in use and the one that was used just now", len(f.servers))
	}
}
