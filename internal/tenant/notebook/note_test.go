package notebook_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/notebook"
)

func list(t *testing.T, db postgres.Begins, tenant envelope.TenantID, before uuid.UUID, most int) []wire.AgentNote {
	t.Helper()
	var all []wire.AgentNote
	err := postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) (err error) {
		all, err = notebook.List(t.Context(), tx, tenant, before, most)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func texts(notes []wire.AgentNote) []string {
	var all []string
	for _, n := range notes {
		all = append(all, n.Source+"/"+n.Key+"/"+n.Text)
	}
	return all
}

func TestBookKeepsEachKeyOnce(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	a, b := envelope.TenantID(uuid.Must(uuid.NewV7())), envelope.TenantID(uuid.Must(uuid.NewV7()))
	book := notebook.NewBook(db)
	keep := func(ctx context.Context, tenant envelope.TenantID, source, key, text string) string {
		t.Helper()
		id, err := book.Of(tenant, source).Keep(ctx, key, text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}

	first := keep(t.Context(), a, "one", "k", "first")
	again := keep(t.Context(), a, "one", "k", "second")
	keep(t.Context(), a, "two", "k", "third")
	keep(t.Context(), a, "one", "l", "fourth")
	keep(t.Context(), b, "one", "k", "of another tenant")

	if first != again {
		t.Errorf("Keep of the same key = %s, want %s", again, first)
	}
	all := list(t, db, a, uuid.UUID{}, 10)
	if diff := cmp.Diff([]string{"one/l/fourth", "two/k/third", "one/k/first"}, texts(all)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if got := all[2].ID.String(); got != first {
		t.Errorf("the note's id is %s, want the one that Keep returned: %s", got, first)
	}
	if diff := cmp.Diff([]string{"two/k/third"}, texts(list(t, db, a, all[0].ID, 1))); diff != "" {
		t.Errorf("the next page (-want +got):\n%s", diff)
	}
}

func TestFailedNoteIsAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	id, err := notebook.NewBook(dbtest.Tx(t)).Of(envelope.TenantID(uuid.Must(uuid.NewV7())), "one").Keep(ctx, "k", "text")

	if err == nil {
		t.Errorf("Keep = %q, want an error", id)
	}
}
