package execution

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// KeepDryRuns is how many days a dry run stays in the log.
const DryRunDays = 30

// NoteDryRun puts a dry run into the log and returns its row. The row is all
// that a dry run leaves behind.
func RecordDryRun(ctx context.Context, tx pgx.Tx, by intake.Submitter, p *envelope.Proposal, v intake.Preview) (Execution, error) {
	outlook, err := json.Marshal(v.Prediction)
	if err != nil {
		return Execution{}, fmt.Errorf("encode outlook: %w", err)
	}
	id := envelope.NewActionID()
	row := &dbsqlc.DryRunInsertParams{
		TenantID: uuid.UUID(by.Tenant), ExecutionID: uuid.UUID(id), ContentDigest: v.Digest[:], EmployeeID: uuid.UUID(v.Employee),
		SessionID: v.Session, AutomationID: p.AutomationID, ProposedBy: by.Token, SourceID: v.Tool.Key.Source, ToolName: v.Tool.Key.Action,
		Args: v.Args, Risk: string(v.Risk), Effect: string(v.Tool.Effect), Mode: string(v.Decision.Mode), ModeSource: v.Decision.Source,
		Trace: v.Decision.TraceJSON, Outlook: outlook, Origin: by.Origin,
	}
	if _, err := dbsqlc.New().DryRunInsert(ctx, tx, row); err != nil {
		return Execution{}, fmt.Errorf("insert dry run: %w", violations.Fault(err))
	}
	return Get(ctx, tx, by.Tenant, id)
}

// PruneDryRuns deletes the dry runs that are older than KeepDryRuns days, a
// part at a time while more says so. It reports whether none is left.
func PruneDryRuns(ctx context.Context, db postgres.Begins, more func() bool) (done bool, err error) {
	const most = 5000
	for more() {
		var n int64
		err := postgres.InTx(ctx, db, postgres.Worker(), func(tx pgx.Tx) error {
			var err error
			n, err = dbsqlc.New().DryRunPrune(ctx, tx, &dbsqlc.DryRunPruneParams{Days: DryRunDays, Most: most})
			return err
		})
		if err != nil {
			return false, fmt.Errorf("prune dry runs: %w", err)
		}
		if n < most {
			return true, nil
		}
	}
	return false, nil
}
