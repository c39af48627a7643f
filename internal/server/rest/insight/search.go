package insight

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/search"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/headline"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
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
// begin, and actions by their words.
func Search(c *request.Call) error {
	var kinds []string
	for _, s := range searched() {
		if c.Routes.Admit(c.By, s[1]) == nil {
			kinds = append(kinds, s[0])
		}
	}
	return request.AnswerItems(c, func(ctx context.Context, tx pgx.Tx) ([]wire.SearchResult, error) {
		named, err := overview.Search(ctx, tx, c.By.Tenant, c.Query.Get("q"), kinds)
		if err != nil || !slices.Contains(kinds, "action") {
			return named, err
		}
		worded, err := byWords(ctx, tx, c, c.Query.Get("q"))
		for _, found := range worded {
			if !slices.ContainsFunc(named, func(n wire.SearchResult) bool { return n.Kind == found.Kind && n.ID == found.ID }) {
				named = append(named, found)
			}
		}
		return named, err
	})
}

// mostWorded is the number of actions that are found by their words.
const mostWorded = 10

// byWords returns the newest actions with all words of a text.
func byWords(ctx context.Context, tx pgx.Tx, c *request.Call, text string) ([]wire.SearchResult, error) {
	words := search.Parse(text)
	if words == nil {
		return nil, nil
	}
	page, err := outbox.List(ctx, tx, c.By.Tenant, outbox.Filter{Words: words, Most: mostWorded})
	if err != nil || len(page.Items) == 0 {
		return nil, err
	}
	snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
	return postgres.Map(page.Items, err, func(v outbox.View) wire.SearchResult {
		e := v.Envelope
		args, line := access.ArgsOf(c.By, e.ExternalID, e.Args), ""
		if tool, known := snap.Tool(policy.Key{Source: e.Tool.Source, Action: e.Tool.Name}); known {
			line = tool.Headline(args)
		} else {
			line = headline.Of(args, nil, nil)
		}
		return wire.SearchResult{Kind: "action", ID: e.ActionID.String(), Label: strings.TrimSpace(e.Tool.Source + ":" + e.Tool.Name + " " + line)}
	})
}
