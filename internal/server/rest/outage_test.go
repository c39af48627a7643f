package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/server/rest"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// TestAnOutageOfTheDatabaseIsBusy sends requests to a server whose database
// refuses connections, over REST and MCP.
func TestAnOutageOfTheDatabaseIsBusy(t *testing.T) {
	t.Parallel()
	db, err := pgxpool.New(context.Background(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	cache := settings.NewCache()
	proposals := intake.New(db, cache, intake.Config{})
	server, err := rest.New(rest.Core{DB: db, Catalog: cache, Intake: proposals, Approval: approval.New(db, cache, approval.Config{})}, rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	mcp := mcpserver.New(server.Backend(), mcpserver.Config{})
	t.Cleanup(mcp.Close)
	server.Mount("/mcp", mcp)

	token := "cs_admin_" + strings.Repeat("A", 43)
	for _, at := range []string{"GET /api/v1/actions", "POST /api/v1/actions", "PUT /api/v1/settings", "GET /readyz", "POST /mcp"} {
		method, path, _ := strings.Cut(at, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)

		after, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if w.Code != http.StatusServiceUnavailable || err != nil || after < 1 {
			t.Errorf("%s without a database = %d with Retry-After %q, want 503 with seconds: %s", at, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
}
