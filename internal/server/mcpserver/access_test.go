package mcpserver_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/identity/identitytest"
)

// operations are the operations of a client, each with the scope that it
// needs.
func operations() map[string]identity.Scope {
	return map[string]identity.Scope{
		"list": identity.CatalogRead, nameRead: identity.ActionsPropose, "countersign_status": identity.ActionsRead,
		"countersign_search": identity.CatalogRead, "countersign_wait": identity.ActionsRead, "countersign_undo": identity.ActionsPropose, "countersign_revert": identity.ActionsPropose,
	}
}

// Every role, without narrowing, narrowed to all scopes but one, and narrowed
// to a single scope, tries every operation, in both versions of the protocol.
// An operation that the REST API denies must have no effect.
func TestRolesAndScopesApplyToMCP(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{Wait: 20 * time.Second}).tenant("acme")
	proposers := []identity.Role{identity.RoleAgent, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	session := map[identity.Role]string{identity.RoleAgent: "walk"}

	for _, role := range append(slices.Clone(proposers), identity.RoleViewer) {
		for _, only := range []identity.Scope{"", identity.CatalogRead, identity.ActionsPropose, identity.ActionsRead} {
			for _, but := range []bool{false, true} {
				var scopes []identity.Scope
				for _, s := range identity.Scopes() {
					if only != "" && (s == only) != but {
						scopes = append(scopes, s)
					}
				}
				version := map[bool]string{false: withSessions, true: withoutSessions}[but]
				c := f.connect(f.holder(identity.Grant{Name: "walker", Role: role, Session: session[role], Scopes: scopes}), version)
				for operation, scope := range operations() {
					may := scopes == nil || slices.Contains(scopes, scope)
					if role == identity.RoleViewer && scope == identity.ActionsPropose {
						may = false
					}
					before := len(f.actions())
					if got := c.does(operation); got != may {
						t.Errorf("%s with the scopes %v does %s: %t, want %t", role, scopes, operation, got, may)
					}
					if after := len(f.actions()); !may && after != before {
						t.Errorf("%s with the scopes %v made an envelope by %s", role, scopes, operation)
					}
				}
			}
		}
	}
}

// does reports whether a client was allowed to do an operation. "No such action" is
// returned only to those who may ask about one.
func (c *client) does(operation string) bool {
	c.t.Helper()
	if operation == "list" {
		list, err := c.ListTools(c.t.Context(), nil)
		return err == nil && len(list.Tools) > 0
	}
	args := object{"action_id": uuid.NewString()}
	switch operation {
	case nameRead:
		args = object{}
	case "countersign_search":
		args = object{"query": "read"}
	}
	got := c.end(c.start(c.t.Context(), operation, args))
	return got.content.Status != "denied"
}

func TestViewersSeeToolsAndCallNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	viewer := f.connect(f.holder(identity.Grant{Name: "v", Role: identity.RoleViewer}), withSessions)

	if !viewer.does("list") || viewer.does(nameRead) || len(f.actions()) != 0 {
		t.Error("a viewer does not see the tools, or can call them")
	}
}

// A session has the current rights of its holder, and ends when they are
// reduced.
func TestSessionEndsWhenRightsAreReduced(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	issuer := identitytest.New(t)
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return identity.PutProvider(ctx, tx, f.id, identity.Provider{ID: "p", Issuer: issuer.URL(), Audience: identity.OwnAudience(f.id), DefaultRole: identity.RoleOperator})
	})
	person := issuer.Token(identity.OwnAudience(f.id), time.Now(), nil)
	// Its login has the rights of before for a while: with its stream, which it opens
	// again, it would end the session of the other login.
	c, err := f.tryConnectWith(person, withSessions, true)
	if err != nil {
		t.Fatal(err)
	}
	if !c.does(nameRead) {
		t.Fatal("an operator cannot call")
	}
	session := c.ID()

	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		all, err := identity.Operators(ctx, tx, f.id)
		if err != nil {
			return err
		}
		all[0].RoleSet = identity.RoleViewer
		return identity.PutOperator(ctx, tx, identity.Principal{Tenant: f.id, Role: identity.RoleOwner}, all[0])
	})
	// Another login of the same person is not in the cache.
	again := issuer.Token(identity.OwnAudience(f.id), time.Now(), identitytest.Claims{"jti": "again"})

	before := len(f.actions())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url,
		bytes.NewBufferString(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`+nameRead+`","arguments":{"a":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + again, "Mcp-Session-Id": session, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": withSessions,
	} {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNotFound || len(f.actions()) != before {
		t.Errorf("the session of before answers %d, and there are %d envelopes, want 404 and %d", res.StatusCode, len(f.actions()), before)
	}
	viewer, err := f.tryConnect(again, withSessions)
	if err != nil {
		t.Fatal(err)
	}
	if !viewer.does("list") || viewer.does(nameRead) {
		t.Error("the new session of a viewer cannot see, or can call")
	}
}

// People whom the issuer knows but who have no rights here get that reason,
// and an unavailable issuer is not reported as a bad token.
func TestRejectionsHaveTheReason(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	issuer := identitytest.New(t)
	if err := postgres.InTx(t.Context(), f.db, postgres.API(f.id), func(tx pgx.Tx) error {
		return identity.PutProvider(t.Context(), tx, f.id, identity.Provider{ID: "p", Issuer: issuer.URL(), Audience: identity.OwnAudience(f.id)})
	}); err != nil {
		t.Fatal(err)
	}
	status := func(token string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url, bytes.NewBufferString(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}

	issuer.SetDown(true)
	if got := status(issuer.Token(identity.OwnAudience(f.id), time.Now(), nil)); got != http.StatusServiceUnavailable {
		t.Errorf("while the issuer is down = %d, want 503", got)
	}
	if got := status("eyJ.not.one"); got != http.StatusUnauthorized {
		t.Errorf("a token that is none = %d, want 401", got)
	}
	other := identitytest.New(t)
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return identity.PutProvider(ctx, tx, f.id, identity.Provider{ID: "q", Issuer: other.URL(), Audience: identity.OwnAudience(f.id)})
	})
	if got := status(other.Token(identity.OwnAudience(f.id), time.Now(), nil)); got != http.StatusForbidden {
		t.Errorf("a person without a role = %d, want 403", got)
	}
}
