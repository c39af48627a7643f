// Package notebook owns the notes that agents store with a built-in tool. Notes
// cannot be changed or deleted.
package notebook

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/source/builtin"
)

// Book stores the notes of all tenants in a database.
type Book struct {
	db postgres.Begins
}

// NewBook returns a Book that stores notes in a database.
func NewBook(db postgres.Begins) *Book { return &Book{db: db} }

// Of returns the store of the notes of one source of a tenant.
func (b *Book) Of(tenant envelope.TenantID, source string) builtin.Notes {
	return sourceNotes{db: b.db, tenant: tenant, source: source}
}

type sourceNotes struct {
	db     postgres.Begins
	tenant envelope.TenantID
	source string
}

// Keep implements builtin.Notes.
func (p sourceNotes) Keep(ctx context.Context, key, text string) (string, error) {
	made, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("keep a note: %w", err)
	}
	err = postgres.InTx(ctx, p.db, postgres.Worker(), func(tx pgx.Tx) error {
		made, err = dbsqlc.New().NoteKeep(ctx, tx, &dbsqlc.NoteKeepParams{
			TenantID: p.tenant, NoteID: made, SourceID: p.source, Key: key, Body: text,
		})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("keep a note: %w", err)
	}
	return made.String(), nil
}

// List returns up to most notes of a tenant, the newest first, that are older
// than before; the zero id is the beginning.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, before uuid.UUID, most int) ([]wire.AgentNote, error) {
	rows, err := dbsqlc.New().NoteList(ctx, tx, &dbsqlc.NoteListParams{
		TenantID: tenant, Before: before, Most: int64(most),
	})
	return postgres.Map(rows, err, func(r dbsqlc.NoteListRow) wire.AgentNote {
		return wire.AgentNote{ID: r.NoteID, Source: r.SourceID, Key: r.Key, Text: r.Body, CreatedAt: r.CreatedAt.UTC()}
	})
}
