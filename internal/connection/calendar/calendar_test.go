package calendar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/connection/calendar"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// server is a source of kind dav.
type server struct {
	source.Source
	calls atomic.Int64
	args  json.RawMessage
	out   source.Outcome
}

// Execute implements source.Source.
func (s *server) Execute(_ context.Context, call source.Call) source.Outcome {
	s.calls.Add(1)
	s.args = call.Args
	return s.out
}

// TestRead reads a calendar when it is due, once, and keeps its events while it cannot
// be read. No text of it is in the log.
func TestRead(t *testing.T) {
	t.Parallel()
	f := tenanttest.New(t)
	home := &server{Source: sourcetest.NewSource(), out: source.Outcome{Kind: source.KindDone, Result: json.RawMessage(`{"events":[{"summary":"SECRET"}]}`)}}
	f.Put(catalog.Source{ID: "home", Kind: catalog.KindDAV, Enabled: true, Config: json.RawMessage(`{"calendars":{"a":"https://dav.example.org/"}}`)})
	account := uuid.New()
	f.Exec(`INSERT INTO triage_accounts (tenant_id, account_id, name, kind, enabled, proposals) VALUES ($1, $2, 'work', 'maildir', true, '{"brief":{"zone":"America/New_York","calendar":"home"}}')`, f.Tenant.String(), account)
	var log bytes.Buffer
	pool := connection.NewPool(connection.Config{Open: func(envelope.TenantID, catalog.Source) (source.Source, error) {
		if home.out.Kind == "" {
			return nil, errors.New("SECRET")
		}
		return home, nil
	}})
	r := calendar.New(f.DB, settings.NewCache(), pool, slog.New(slog.NewTextHandler(&log, nil)))
	var now time.Time
	stored := func(want string, calls int64) {
		t.Helper()
		var got string
		err := postgres.InTx(t.Context(), f.DB, postgres.Admin(), func(tx pgx.Tx) error {
			if err := tx.QueryRow(t.Context(), "SELECT now()").Scan(&now); err != nil {
				return err
			}
			return nil
		})
		if err == nil {
			err = r.Read(t.Context(), now)
		}
		if err == nil {
			err = postgres.InTx(t.Context(), f.DB, postgres.Admin(), func(tx pgx.Tx) error {
				return tx.QueryRow(t.Context(), "SELECT concat_ws(' ', source_id, zone, read_at IS NOT NULL, events -> 'events' -> 0 ->> 'summary', problem) FROM triage_calendars WHERE tenant_id = $1", f.Tenant.String()).Scan(&got)
			})
		}
		if err != nil || strings.TrimSpace(got) != want || home.calls.Load() != calls {
			t.Errorf("the calendar is %q after %d calls, %v, want %q after %d", got, home.calls.Load(), err, want, calls)
		}
	}
	later := func() { f.Exec("UPDATE triage_calendars SET tried_at = tried_at - interval '11 minutes'") }

	stored("home America/New_York t SECRET", 1)
	stored("home America/New_York t SECRET", 1) // another process
	var args struct{ From, Until time.Time }
	ny, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	y, m, d := now.In(ny).Date()
	if err := json.Unmarshal(home.args, &args); err != nil || !args.From.Equal(time.Date(y, m, d, 0, 0, 0, 0, ny)) || !args.Until.Equal(time.Date(y, m, d+8, 0, 0, 0, 0, ny)) {
		t.Errorf("it reads %s, %v", home.args, err)
	}
	home.out = source.Outcome{Kind: source.KindRefused, Code: source.CodeUnauthorized, Message: "SECRET"}
	later()
	stored("home America/New_York t SECRET the server does not return it (unauthorized)", 2)
	home.out = source.Outcome{Kind: source.KindDone, Result: json.RawMessage(`{"events":[]}`)}
	f.Exec("UPDATE triage_calendars SET tried_at = now() + interval '1 year'") // the clock was set back
	stored("home America/New_York t", 3)
	// Another calendar is read at once, without events of the one before.
	f.Exec(`UPDATE triage_accounts SET proposals = '{"brief":{"zone":"UTC","calendar":"src"}}'`)
	stored("src UTC f no enabled source of kind dav has this name", 3)
	f.Exec(`UPDATE triage_accounts SET enabled = false, proposals = '{"brief":{"zone":"UTC","calendar":"home"}}'`)
	later()
	stored("src UTC f no enabled source of kind dav has this name", 3)
	if strings.Contains(log.String(), "SECRET") || !strings.Contains(log.String(), "unauthorized") {
		t.Errorf("the log is\n%s", log.String())
	}
}
