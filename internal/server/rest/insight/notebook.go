package insight

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	notebook "github.com/countersign-dev/countersign/internal/tenant/notebook"
)

// Notes handles GET /api/v1/notes. It lists the notebook, newest note first.
func Notes(c *request.Call) error {
	read := func(ctx context.Context, tx pgx.Tx, before envelope.ActionID, most int) ([]wire.AgentNote, error) {
		return notebook.List(ctx, tx, c.By.Tenant, uuid.UUID(before), most)
	}
	return request.AnswerPage(c, "notes", read, request.Same[wire.AgentNote], func(n wire.AgentNote) envelope.ActionID { return envelope.ActionID(n.ID) })
}
