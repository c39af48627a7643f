package inspect

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// ExportPlace is a position in an export: behind the row After of a kind. The zero
// value is its beginning.
type ExportPlace struct {
	Kind  int
	After string
}

// Valid reports whether a position may be one of Export.
func (p ExportPlace) Valid() bool {
	kinds := exporters()
	if p.Kind < 0 || p.Kind >= len(kinds) || strings.ContainsRune(p.After, 0) || !utf8.ValidString(p.After) {
		return false
	}
	_, notHex := hex.DecodeString(p.After)
	return p.Kind < len(kinds)-1 || notHex == nil
}

// exported is a row of an export with its place.
type exported struct {
	place string
	line  json.RawMessage
}

// exporter reads the rows of a kind behind a place.
type exporter func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, after string, most int64) ([]exported, error)

// exporters returns those of every kind, in order.
func exporters() []exporter {
	q := dbsqlc.New()
	return []exporter{
		func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, after string, most int64) ([]exported, error) {
			rows, err := q.TriageExportFolders(ctx, tx, &dbsqlc.TriageExportFoldersParams{TenantID: tenant, AccountID: account, After: after, Most: most})
			return postgres.Map(rows, err, func(r dbsqlc.TriageExportFoldersRow) exported { return exported{r.Place, r.Line} })
		},
		func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, after string, most int64) ([]exported, error) {
			id, _ := uuid.Parse(after)
			rows, err := q.TriageExportRuns(ctx, tx, &dbsqlc.TriageExportRunsParams{TenantID: tenant, AccountID: account, After: id, Most: most})
			return postgres.Map(rows, err, func(r dbsqlc.TriageExportRunsRow) exported { return exported{r.Place, r.Line} })
		},
		func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, after string, most int64) ([]exported, error) {
			rows, err := q.TriageExportSenders(ctx, tx, &dbsqlc.TriageExportSendersParams{TenantID: tenant, AccountID: account, After: after, Most: most})
			return postgres.Map(rows, err, func(r dbsqlc.TriageExportSendersRow) exported { return exported{r.Place, r.Line} })
		},
		func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, after string, most int64) ([]exported, error) {
			rows, err := q.TriageExportSetAside(ctx, tx, &dbsqlc.TriageExportSetAsideParams{TenantID: tenant, AccountID: account, After: after, Most: most})
			return postgres.Map(rows, err, func(r dbsqlc.TriageExportSetAsideRow) exported { return exported{r.Place, r.Line} })
		},
		func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, after string, most int64) ([]exported, error) {
			rows, err := q.TriageExportLabels(ctx, tx, &dbsqlc.TriageExportLabelsParams{TenantID: tenant, AccountID: account, After: after, Most: most})
			return postgres.Map(rows, err, func(r dbsqlc.TriageExportLabelsRow) exported { return exported{r.Place, r.Line} })
		},
		func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, after string, most int64) ([]exported, error) {
			rows, err := q.TriageExportMessages(ctx, tx, &dbsqlc.TriageExportMessagesParams{TenantID: tenant, AccountID: account, After: after, Most: most})
			return postgres.Map(rows, err, func(r dbsqlc.TriageExportMessagesRow) exported { return exported{r.Place, r.Line} })
		},
	}
}

// Export returns rows of the data about an account behind a place, each as a JSON
// object without bodies of mail (but with the arguments of tries), and the next place; nil at the end.
func Export(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, at ExportPlace, most int) (lines []json.RawMessage, next *ExportPlace, err error) {
	kinds := exporters()
	for ; at.Kind < len(kinds); at = (ExportPlace{Kind: at.Kind + 1}) {
		left := most - len(lines)
		rows, err := kinds[at.Kind](ctx, tx, tenant, account, at.After, int64(left)+1)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range rows[:min(len(rows), left)] {
			lines, at.After = append(lines, r.line), r.place
		}
		if len(rows) > left {
			return lines, &at, nil
		}
	}
	return lines, nil, nil
}
