package dev

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

// shared is a buffer that several goroutines write to.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func TestTextOfMailIsInTriageTablesOnly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	log := &shared{}
	e, err := Open(ctx, Config{
		DatabaseURL: dbtest.URL(t), Dir: t.TempDir(), Listen: "127.0.0.1:0", Notes: sourcetest.Program(t, "examples/notes-mcp"),
		Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	report, err := e.Demonstrate(ctx)
	if err != nil || report.Err() != nil {
		t.Fatal(err, report.Err())
	}

	rows, err := e.pool.Query(ctx, `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_|^information_schema$'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	inTriage := 0
	for _, table := range tables {
		var n int
		if err := e.pool.QueryRow(ctx, "SELECT count(1) FROM "+table+" t WHERE t::text ILIKE '%"+mailWord+"%'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		ofTriage := strings.HasPrefix(table, "countersign_data.triage_")
		if ofTriage {
			inTriage += n
		} else if n > 0 {
			t.Errorf("%d rows of %s have text of mail", n, table)
		}
		// The subject of the mail that its owner tagged is an argument of the reminder.
		if err := e.pool.QueryRow(ctx, "SELECT count(1) FROM "+table+" t WHERE t::text ILIKE '%"+taggedSubject+"%'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if argument := table == "countersign_data.actions" || table == "countersign_data.action_words"; n > 0 && !ofTriage && !argument {
			t.Errorf("%d rows of %s have the subject of a tagged mail", n, table)
		} else if table == "countersign_data.actions" && n == 0 {
			t.Error("no action has the subject of a tagged mail: it is not looked for")
		}
	}
	if inTriage == 0 || len(tables) < 40 {
		t.Errorf("%d rows of triage have text of mail, of %d tables, want some: the word is not looked for", inTriage, len(tables))
	}
	metrics := httptest.NewRecorder()
	e.watched.Handler().ServeHTTP(metrics, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
	log.mu.Lock()
	defer log.mu.Unlock()
	for name, text := range map[string]string{"log": log.text.String(), "metrics": metrics.Body.String()} {
		if strings.Contains(strings.ToLower(text), mailWord) || strings.Contains(text, taggedSubject) {
			t.Errorf("the %s has text of mail", name)
		}
	}
	if !strings.Contains(log.text.String(), `"mail read"`) {
		t.Error("the log has no line of triage")
	}
}
