package insight

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// searched returns the kinds of search results, and the operation that lists each: a
// caller who may not call it does not find them.
func searched() [][2]string {
	return [][2]string{
		{"action", "listActions"}, {"tool", "listTools"}, {"source", "listSources"}, {"bucket", "listBuckets"}, {"session", "listExecutions"},
		{"automation", "listModes"}, {"employee", "listEmployees"}, {"person", "listOperators"}, {"workflow", "listWorkflows"},
		{"dead_letter", "listDeadLetters"},
	}
}

// Search handles GET /api/v1/search. It finds things by how their ids and names
// begin.
func Search(c *request.Call) error {
	var kinds []string
	for _, s := range searched() {
		if c.Routes.Admit(c.By, s[1]) == nil {
			kinds = append(kinds, s[0])
		}
	}
	return request.AnswerItems(c, func(ctx context.Context, tx pgx.Tx) ([]wire.SearchResult, error) {
		return overview.Search(ctx, tx, c.By.Tenant, c.Query.Get("q"), kinds)
	})
}
