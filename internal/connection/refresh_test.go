package connection_test

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// TestRefreshRecordsChanges reads the events of listings.
func TestRefreshRecordsChanges(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	listing := []source.Tool{tenanttest.Tool("act"), tenanttest.Tool("other")}
	live := connection.NewPool(connection.Config{Open: func(envelope.TenantID, catalog.Source) (source.Source, error) {
		return lister{sourcetest.NewSource(), &listing}, nil
	}})
	refresher := connection.NewRefresher(s.DB, s.cache, live, slog.New(slog.NewTextHandler(io.Discard, nil)))
	refresh := func(tools ...source.Tool) {
		listing = tools
		if err := refresher.Refresh(t.Context(), s.Tenant, "src"); err != nil {
			t.Fatal(err)
		}
	}

	refresh(tenanttest.Tool("act"))
	refresh(tenanttest.Tool("act"), tenanttest.Tool("other"))
	refresh(described("Other."), tenanttest.Tool("other"))
	refresh(described("Other."))
	refresh(described("Other."), tenanttest.Tool("other"))

	var told []string
	err := postgres.InTx(t.Context(), s.DB, postgres.Admin(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT i->>'subject' FROM events e, jsonb_array_elements(e.items) i
			WHERE e.tenant_id = $1 AND e.actor = 'source/src' ORDER BY e.event_id`, s.Tenant.String())
		if err != nil {
			return err
		}
		told, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"tool src:other new", "tool src:act changed", "tool src:other gone", "tool src:other back"}, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// lister is a source whose tools change.
type lister struct {
	source.Source
	tools *[]source.Tool
}

func (l lister) List(context.Context) ([]source.Tool, error) { return *l.tools, nil }

// described returns the tool act with another description.
func described(text string) source.Tool {
	t := tenanttest.Tool("act")
	t.Description = text
	return t
}
