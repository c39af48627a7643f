package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

func TestKnowsZone(t *testing.T) {
	t.Parallel()
	err := postgres.InTx(t.Context(), dbtest.Tx(t), postgres.Admin(), func(tx pgx.Tx) error {
		for name, want := range map[string]bool{"UTC": true, "Europe/Berlin": true, "Mars/Olympus": false, "No/Such": false, "": false} {
			if got, err := postgres.KnowsZone(t.Context(), tx, name); err != nil || got != want {
				t.Errorf("KnowsZone(%q) = %t, %v, want %t", name, got, err, want)
			}
		}
		_, err := tx.Exec(t.Context(), "SELECT 1") // the transaction remains usable
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
