package rest

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	notebook "github.com/countersign-dev/countersign/internal/tenant/notebook"
)

func (s *Server) listNotes(c *call) error {
	before, limit, err := c.place(cursorNotes)
	if err != nil {
		return err
	}
	var rows []notebook.Note
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		rows, err = notebook.List(ctx, tx, c.by.Tenant, notebook.ID(before), limit+1)
		return err
	})
	if err != nil {
		return err
	}
	same := func(n notebook.Note) notebook.Note { return n }
	return c.json(http.StatusOK, pageOf(rows, limit, cursorNotes, same, func(n notebook.Note) envelope.ActionID { return envelope.ActionID(n.ID) }))
}
