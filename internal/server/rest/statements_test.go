package rest_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/rest"
)

// counts is the work of a request in the database. A statement that begins a
// transaction counts once, with the role, the tenant and the path that it sets.
type counts struct{ Statements, Transactions int64 }

// counter counts the statements of a pool.
type counter struct{ statements, transactions atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	switch {
	case strings.HasPrefix(q.SQL, "begin"):
		c.transactions.Add(1)
	case q.SQL == "commit" || q.SQL == "rollback" || strings.Contains(q.SQL, "pg_notify"):
	default:
		c.statements.Add(1)
	}
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestRequestsTakeFewStatements holds the statements of single requests, as agents
// and people make them. Caches are warm, as from the second request on.
func TestRequestsTakeFewStatements(t *testing.T) {
	t.Parallel()
	counted := &counter{}
	config := dbtest.DB(t).Config()
	config.ConnConfig.Tracer = counted
	db, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	f := newFixtureWith(t, db, rest.Config{}).tenant("acme")
	count := func(do func()) counts {
		statements, transactions := counted.statements.Load(), counted.transactions.Load()
		do()
		return counts{counted.statements.Load() - statements, counted.transactions.Load() - transactions}
	}
	f.agent.propose("read")
	waiting := f.agent.propose("write")
	again := proposal("read", object{})
	f.agent.send("POST", "/api/v1/actions", again).wants(t, 201)

	etag := f.operator.pendingAction(waiting).Decision.ETag

	got := map[string]counts{
		"propose what policy allows": count(func() { f.agent.propose("read") }),
		"propose what people decide": count(func() { f.agent.propose("write") }),
		"propose a duplicate":        count(func() { f.agent.send("POST", "/api/v1/actions", again).wants(t, 200) }),
		"propose what is invalid":    count(func() { f.agent.send("POST", "/api/v1/actions", object{"type": "mcp.exec"}).wants(t, 400) }),
		"read an action":             count(func() { f.operator.send("GET", path(waiting), nil).wants(t, 200) }),
		"list 50 actions":            count(func() { f.operator.send("GET", "/api/v1/actions?limit=50", nil).wants(t, 200) }),
		"read the inbox":             count(func() { f.operator.send("GET", "/api/v1/inbox?limit=50", nil).wants(t, 200) }),
		"the matrix of policy":       count(func() { f.operator.send("GET", "/api/v1/policy/matrix", nil).wants(t, 200) }),
		"list tools":                 count(func() { f.operator.send("GET", "/api/v1/tools", nil).wants(t, 200) }),
		"approve":                    count(func() { f.operator.send("POST", path(waiting, "/approve"), nil, ifMatch(etag)...).wants(t, 200) }),
	}

	want := map[string]counts{
		"propose what policy allows": {4, 2}, "propose what people decide": {5, 2}, "propose a duplicate": {5, 3}, "propose what is invalid": {0, 0},
		"read an action": {2, 2}, "list 50 actions": {3, 2}, "read the inbox": {5, 1}, "the matrix of policy": {1, 1}, "list tools": {2, 1}, "approve": {14, 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statements and transactions (-want +got):\n%s", diff)
	}
}
