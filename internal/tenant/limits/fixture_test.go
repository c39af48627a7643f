package limits_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// fixture is a tenant with the source mail, that has the tools send and read.
type fixture struct {
	t      testing.TB
	db     postgres.Begins
	tenant envelope.TenantID
}

func newFixture(t testing.TB) fixture {
	t.Helper()
	return fixture{t: t, db: dbtest.Tx(t)}.otherTenant()
}

// otherTenant returns another tenant in the same database.
func (h fixture) otherTenant() fixture {
	h.t.Helper()
	h.tenant = envelope.TenantID(uuid.Must(uuid.NewV7()))
	h.admin("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", h.tenant.String(), "t-"+h.tenant.String())
	h.admin("INSERT INTO sources (tenant_id, source_id, kind) VALUES ($1, 'mail', 'mcp')", h.tenant.String())
	h.admin(`INSERT INTO tools (tenant_id, source_id, name, input_schema, digest)
		SELECT $1, 'mail', unnest(ARRAY['send', 'read']), '{}', '\x00'`, h.tenant.String())
	return h
}

// admin runs a statement as the connection's own user.
func (h fixture) admin(statement string, args ...any) {
	h.t.Helper()
	h.as(postgres.Admin(), func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	})
}

func (h fixture) as(scope postgres.Scope, fn func(ctx context.Context, tx pgx.Tx) error) {
	h.t.Helper()
	if err := postgres.InTx(h.t.Context(), h.db, scope, func(tx pgx.Tx) error { return fn(h.t.Context(), tx) }); err != nil {
		h.t.Fatal(err)
	}
}

// try makes a change as the tenant.
func (h fixture) try(fn func(ctx context.Context, tx pgx.Tx) error) error {
	return postgres.InTx(h.t.Context(), h.db, postgres.API(h.tenant), func(tx pgx.Tx) error { return fn(h.t.Context(), tx) })
}

func (h fixture) must(fn func(ctx context.Context, tx pgx.Tx) error) {
	h.t.Helper()
	if err := h.try(fn); err != nil {
		h.t.Fatal(err)
	}
}

// set loads and compiles the tenant's settings.
func (h fixture) set() *limits.Set {
	h.t.Helper()
	var set *limits.Set
	h.must(func(ctx context.Context, tx pgx.Tx) (err error) {
		set, err = limits.Load(ctx, tx, h.tenant)
		return err
	})
	return set
}

// events returns the audit items of changes, oldest first.
func (h fixture) events() []audit.Item {
	h.t.Helper()
	var items []audit.Item
	h.must(func(ctx context.Context, tx pgx.Tx) error {
		// audit.Read would leave out the events of the test's open transaction.
		rows, err := tx.Query(ctx, "SELECT e.items FROM events e WHERE e.tenant_id = $1 AND e.kind = 'configured' AND e.actor = 'ada' ORDER BY e.event_id", h.tenant.String())
		if err != nil {
			return err
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if err != nil {
			return err
		}
		for _, text := range texts {
			var some []audit.Item
			if err := json.Unmarshal(text, &some); err != nil {
				return err
			}
			items = append(items, some...)
		}
		return nil
	})
	return items
}

// subjects returns the subjects of the events.
func (h fixture) subjects() []string {
	h.t.Helper()
	subjects := []string{}
	for _, it := range h.events() {
		subjects = append(subjects, it.Subject)
	}
	return subjects
}

func (h fixture) wantSubjects(want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.subjects()); diff != "" {
		h.t.Errorf("events (-want +got):\n%s", diff)
	}
}

// document exports all settings.
func (h fixture) document() limits.Document {
	h.t.Helper()
	var doc limits.Document
	h.must(func(ctx context.Context, tx pgx.Tx) (err error) {
		doc, err = limits.Export(ctx, tx, h.tenant)
		return err
	})
	return doc
}

// pointers returns the pointers in an error.
func pointers(err error) []string {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return nil
	}
	var all []string
	for _, f := range broken.Fields {
		all = append(all, f.Pointer)
	}
	return all
}

func some[T any](v T) *T { return &v }
