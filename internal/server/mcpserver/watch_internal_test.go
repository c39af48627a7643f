package mcpserver

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

func TestRecheckEndsRequestsWhoseTokenIsNoLongerValid(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := &Front{auth: identity.NewAuthenticator(dbtest.Tx(t)), calls: map[string]*open{"a": {ctx: ctx, cancel: cancel, token: "cs_agent_revoked"}}}

	f.recheck(t.Context())

	if ctx.Err() == nil {
		t.Error("the request goes on")
	}
}

func TestDesksThatNobodyUsesAreTakenAway(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := &Front{desks: make(map[identity.TokenID]*desk)}
	for i, d := range []struct {
		users int
		used  time.Time
	}{{0, now.Add(-time.Hour)}, {1, now.Add(-time.Hour)}, {0, now}} {
		made := newDesk(f, identity.Principal{})
		made.users, made.used = d.users, d.used
		f.desks[identity.TokenID{byte(i)}] = made
	}

	f.tidy(now)

	if _, there := f.desks[identity.TokenID{0}]; there || len(f.desks) != 2 {
		t.Errorf("%d desks are left, want the one in use and the one that was", len(f.desks))
	}
}
