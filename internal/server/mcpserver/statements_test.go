package mcpserver_test

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
)

// statements counts statements by name.
type statements struct {
	mu    sync.Mutex
	names map[string]int
}

var statementName = regexp.MustCompile(`-- name: (\w+)`)

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	name := "settings of a transaction"
	switch found := statementName.FindStringSubmatch(q.SQL); {
	case found != nil:
		name = found[1]
	case strings.Contains(q.SQL, "pg_notify"):
		name = "notify"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name]++
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// take returns the statements since its last call, except those that depend on
// time: polls for due work and for ended actions, and notifications.
func (s *statements) take() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.names
	for _, timed := range []string{"OutboxDueBuckets", "ActionEndedPerID", "EventList", "EventLatest", "ApiTokenUse", "notify", "settings of a transaction"} {
		delete(taken, timed)
	}
	s.names = make(map[string]int)
	return taken
}

// TestACallTakesFewStatements fixes the statements of API and worker for an allowed
// call, without the one that settles it, which the tracer does not see. Caches are
// warm, as from the second call on.
func TestACallTakesFewStatements(t *testing.T) {
	t.Parallel()
	counted := &statements{names: make(map[string]int)}
	config := dbtest.DB(t).Config()
	config.ConnConfig.Tracer = counted
	db, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	f := newFixtureIn(t, db, mcpserver.Config{Poll: time.Hour}, nil).tenant("acme")
	agent := f.connect(f.agent, withSessions)
	want := map[string]int{
		"TenantVersions": 2, "ActionLastTurn": 1, "SessionUsageTake": 1, "ActionInsertAlike": 1, "EventInsertMany": 2,
		"OutboxClaim": 1, "EnvelopePerID": 1,
	}
	agent.call(nameRead, object{"at": 0})
	counted.take()
	var diff string
	for n := range 5 { // on a busy machine the fallback poll may run during a call
		agent.call(nameRead, object{"at": n + 1})
		if diff = cmp.Diff(want, counted.take()); diff == "" {
			return
		}
	}
	t.Errorf("statements (-want +got):\n%s", diff)
}
