package insight

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	notebook "github.com/countersign-dev/countersign/internal/tenant/notebook"
)

// cursorNotes is the name of the notebook in cursors.
const cursorNotes = "notes"

// GET /api/v1/notes lists the notebook, newest note first.
func Notes(c *request.Call) error {
	before, limit, err := c.Page(cursorNotes)
	if err != nil {
		return err
	}
	var rows []notebook.Note
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		rows, err = notebook.List(ctx, tx, c.By.Tenant, notebook.ID(before), limit+1)
		return err
	})
	if err != nil {
		return err
	}
	same := func(n notebook.Note) notebook.Note { return n }
	return c.JSON(http.StatusOK, request.PageOf(rows, limit, cursorNotes, same, func(n notebook.Note) envelope.ActionID { return envelope.ActionID(n.ID) }))
}
