package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Page is a page of the log.
type Page struct {
	Items []wire.Execution
	// Next is the id after which the next page begins; nil at the end. A page
	// with a Next may be short or empty, because a page scans a bounded number
	// of rows.
	Next *envelope.ActionID
}

// List returns a page of the log, newest first. It scans a bounded number of
// rows by the primary key, regardless of the number of matches.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) (Page, error) {
	before := cmp.Or(f.Before, envelope.ActionID(uuid.Max))
	var found []wire.Execution
	var floor envelope.ActionID
	if f.actions() {
		rows, from, err := actionsOf(ctx, tx, tenant, f, before)
		if err != nil {
			return Page{}, err
		}
		for i := range rows {
			found = append(found, fromAction(tenant, &rows[i]))
		}
		floor = from
	}
	if f.dryRuns() {
		from, err := floorOf(f.narrows(), func() (envelope.ActionID, error) {
			return dbsqlc.New().DryRunFloor(ctx, tx, &dbsqlc.DryRunFloorParams{TenantID: tenant, Before: before, Look: int64(f.look() - 1)})
		})
		if err != nil {
			return Page{}, err
		}
		rows, err := dbsqlc.New().DryRunList(ctx, tx, dryRunParams(tenant, f, before, from))
		if err != nil {
			return Page{}, err
		}
		for i := range rows {
			found = append(found, fromDryRun(tenant, &rows[i]))
		}
		floor = later(floor, from)
	}
	return pageOf(found, floor, f.Limit), nil
}

// actionsOf returns the matching actions of one bounded scan, and the id at
// which the scan ended; the zero id means the end of the log. For a workflow it
// scans from the first to the last step.
func actionsOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter, before envelope.ActionID) ([]dbsqlc.ExecutionListRow, envelope.ActionID, error) {
	q, first := dbsqlc.New(), envelope.ActionID{}
	if f.Workflow != uuid.Nil {
		ends, err := q.ExecutionBatchEnds(ctx, tx, &dbsqlc.ExecutionBatchEndsParams{TenantID: tenant, WorkflowID: &f.Workflow, Before: before})
		if err != nil || len(ends) < 2 {
			return nil, envelope.ActionID{}, err
		}
		first, before = ends[0], next(ends[1])
	}
	floor, err := floorOf(f.narrows(), func() (envelope.ActionID, error) {
		return q.ExecutionFloor(ctx, tx, &dbsqlc.ExecutionFloorParams{TenantID: tenant, Before: before, Look: int64(f.look() - 1)})
	})
	if err != nil {
		return nil, envelope.ActionID{}, err
	}
	if compare(floor, first) <= 0 {
		floor = envelope.ActionID{} // there are no rows below
	}
	rows, err := q.ExecutionList(ctx, tx, actionParams(tenant, f, before, later(floor, first)))
	return rows, floor, err
}

// floorOf returns the id at which a bounded scan ends; the zero id means the end
// of the log.
func floorOf(bounded bool, ask func() (envelope.ActionID, error)) (envelope.ActionID, error) {
	if !bounded {
		return envelope.ActionID{}, nil
	}
	floor, err := ask()
	if errors.Is(err, pgx.ErrNoRows) {
		return envelope.ActionID{}, nil
	}
	return floor, err
}

// pageOf sorts the executions, and ends the page where it is full or at the
// floor of the scan.
func pageOf(found []wire.Execution, floor envelope.ActionID, most int) Page {
	slices.SortFunc(found, func(a, b wire.Execution) int { return -compare(a.ID, b.ID) })
	if floor != (envelope.ActionID{}) {
		found = slices.DeleteFunc(found, func(e wire.Execution) bool { return compare(e.ID, floor) < 0 })
	}
	p := Page{Items: found}
	switch {
	case len(found) > most:
		p.Items = found[:most]
		p.Next = &found[most-1].ID
	case floor != envelope.ActionID{}:
		p.Next = &floor
	}
	return p
}

func compare(a, b envelope.ActionID) int { return slices.Compare(a[:], b[:]) }

func later(a, b envelope.ActionID) envelope.ActionID {
	if compare(a, b) < 0 {
		return b
	}
	return a
}

func actionParams(tenant envelope.TenantID, f Filter, before, floor envelope.ActionID) *dbsqlc.ExecutionListParams {
	approvals, statuses := statesOf(f.Status)
	return &dbsqlc.ExecutionListParams{
		TenantID: tenant, Before: before, Floor: floor, Tool: postgres.OrNull(f.Tool), Source: postgres.OrNull(f.Source), Session: postgres.OrNull(f.Session),
		Employee: postgres.OrNull(uuid.UUID(f.Employee)), Proposer: postgres.OrNull(f.User), ProposerName: postgres.OrNull(f.UserName), Automation: postgres.OrNull(f.Automation), Workflow: postgres.OrNull(f.Workflow),
		Via: postgres.OrNull(f.Via), Ip: postgres.OrNull(f.IP), Since: postgres.OrNull(f.Since), Until: postgres.OrNull(f.Until), Code: postgres.OrNull(f.Code),
		Statuses: postgres.Texts[string](statuses), Approvals: postgres.Texts[string](approvals), Most: int64(f.Limit) + 1,
	}
}

func dryRunParams(tenant envelope.TenantID, f Filter, before, floor envelope.ActionID) *dbsqlc.DryRunListParams {
	return &dbsqlc.DryRunListParams{
		TenantID: tenant, Before: before, Floor: floor, Tool: postgres.OrNull(f.Tool), Source: postgres.OrNull(f.Source), Session: postgres.OrNull(f.Session),
		Employee: postgres.OrNull(uuid.UUID(f.Employee)), Proposer: postgres.OrNull(f.User), ProposerName: postgres.OrNull(f.UserName), Automation: postgres.OrNull(f.Automation),
		Via: postgres.OrNull(f.Via), Ip: postgres.OrNull(f.IP), Since: postgres.OrNull(f.Since), Until: postgres.OrNull(f.Until), Most: int64(f.Limit) + 1,
	}
}

// Get returns one execution. The error is fault.NotFound if the tenant has none
// with this id.
func Get(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id envelope.ActionID) (wire.Execution, error) {
	q, one := dbsqlc.New(), Filter{Limit: 0}
	above := next(id)
	actions, err := q.ExecutionList(ctx, tx, actionParams(tenant, one, above, id))
	if err != nil {
		return wire.Execution{}, fmt.Errorf("execution %s: %w", id, err)
	}
	if len(actions) == 1 {
		return fromAction(tenant, &actions[0]), nil
	}
	dryRuns, err := q.DryRunList(ctx, tx, dryRunParams(tenant, one, above, id))
	if err != nil {
		return wire.Execution{}, fmt.Errorf("execution %s: %w", id, err)
	}
	if len(dryRuns) == 1 {
		return fromDryRun(tenant, &dryRuns[0]), nil
	}
	return wire.Execution{}, fault.New(fault.NotFound, "no execution %s", id)
}

// next returns the id that follows id.
func next(id envelope.ActionID) envelope.ActionID {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]++
		if id[i] != 0 {
			break
		}
	}
	return id
}

func fromAction(tenant envelope.TenantID, r *dbsqlc.ExecutionListRow) wire.Execution {
	approval, status := envelope.Approval(r.ApprovalState), envelope.Status(r.Status)
	e := wire.Execution{
		ID: r.ActionID, Tenant: tenant, Status: StatusOf(approval, status), Phase: envelope.PhaseOf(approval, status, postgres.OrZero(r.Code)),
		Tool: toolOf(r.SourceID, r.ToolName), Inputs: r.Args, Outputs: source.Outputs(r.Result), ProviderID: r.ProviderID,
		Attempts: int(r.Attempt), ProposedAt: r.CreatedAt.UTC(), StartedAt: postgres.UTC(r.StartedAt), FinishedAt: postgres.UTC(r.FinishedAt),
		Risk: envelope.Risk(r.Risk), Effect: envelope.Effect(r.Effect), User: userOf(r.ProposedBy, r.ProposerOperator, r.Proposer),
		Employee: r.EmployeeID, Session: postgres.OrZero(r.SessionID), Automation: postgres.OrZero(r.AutomationID),
		ExternalID: postgres.OrZero(r.ExternalID), WorkflowID: r.WorkflowID, Context: originOf(r.Origin),
		Policy: policyOf(r.Mode, r.ModeSource, r.Trace), Proposed: r.ProposedArgs, EditedBy: envelope.Actor(r.EditedBy),
	}
	if code := postgres.OrZero(r.Code); code != "" {
		e.Error = &envelope.Failure{Code: code, Message: postgres.OrZero(r.Message)}
	}
	if e.StartedAt != nil && e.FinishedAt != nil {
		e.DurationMS = new(e.FinishedAt.Sub(*e.StartedAt).Milliseconds())
	}
	if approval != envelope.ApprovalAuto && e.Policy.Mode != envelope.ModeDeny {
		e.Decision = &wire.ExecutionDecision{Approval: approval, At: postgres.UTC(r.DecidedAt), By: envelope.Actor(postgres.OrZero(r.DecidedBy)), Note: postgres.OrZero(r.DecisionNote)}
	}
	return e
}

func fromDryRun(tenant envelope.TenantID, r *dbsqlc.DryRunListRow) wire.Execution {
	return wire.Execution{
		ID: r.ExecutionID, Tenant: tenant, Status: wire.ExecutionDryRun, Tool: toolOf(r.SourceID, r.ToolName), Inputs: r.Args,
		ProposedAt: r.At.UTC(), Risk: envelope.Risk(r.Risk), Effect: envelope.Effect(r.Effect), User: userOf(r.ProposedBy, r.ProposerOperator, r.Proposer),
		Employee: r.EmployeeID, Session: postgres.OrZero(r.SessionID), Automation: postgres.OrZero(r.AutomationID),
		Context: originOf(r.Origin), Policy: policyOf(r.Mode, r.ModeSource, r.Trace), Preview: r.Preview,
	}
}

func userOf(token, operator *uuid.UUID, name string) *wire.TokenName {
	if token == nil {
		return nil
	}
	return &wire.TokenName{ID: *token, OperatorID: operator, Name: name}
}

// originOf decodes the stored origin of an action; nil if it is invalid.
func originOf(raw json.RawMessage) *wire.Origin {
	var o wire.Origin
	if len(raw) == 0 || json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return &o
}

func policyOf(mode, source string, trace json.RawMessage) wire.PolicyDecision {
	return wire.PolicyDecision{Mode: envelope.Mode(mode), Source: source, Trace: policy.Steps(trace)}
}

func toolOf(source, name string) string { return policy.Key{Source: source, Action: name}.String() }

// dryRunDays is the retention of dry runs in days.
const dryRunDays = 30

// RecordDryRun inserts a dry run into the log and returns its id. It is the only
// row of a dry run.
func RecordDryRun(ctx context.Context, tx pgx.Tx, by intake.Submitter, p *envelope.Proposal, v intake.Preview) (envelope.ActionID, error) {
	preview, err := json.Marshal(v.Prediction)
	if err != nil {
		return envelope.ActionID{}, fmt.Errorf("encode preview: %w", err)
	}
	id := envelope.NewActionID()
	row := &dbsqlc.DryRunInsertParams{
		TenantID: by.Tenant, ExecutionID: id, ContentDigest: v.Digest[:], EmployeeID: uuid.UUID(v.Employee),
		SessionID: v.Session, AutomationID: p.AutomationID, ProposedBy: by.Token, SourceID: v.Tool.Key.Source, ToolName: v.Tool.Key.Action,
		Args: v.Args, Risk: string(v.Risk), Effect: string(v.Tool.Effect), Mode: string(v.Decision.Mode), ModeSource: v.Decision.Source,
		Trace: v.Decision.TraceJSON, Preview: preview, Origin: by.Origin,
	}
	if _, err := dbsqlc.New().DryRunInsert(ctx, tx, row); err != nil {
		return envelope.ActionID{}, fmt.Errorf("insert dry run: %w", violations.Fault(err))
	}
	return id, nil
}

// PruneDryRuns deletes the dry runs older than dryRunDays, in batches, while
// more returns true. done reports whether none is left.
func PruneDryRuns(ctx context.Context, db postgres.Begins, more func() bool) (done bool, err error) {
	const most = 5000
	for more() {
		n, err := postgres.InTxReturning(ctx, db, postgres.Worker(), func(tx pgx.Tx) (int64, error) {
			return dbsqlc.New().DryRunPrune(ctx, tx, &dbsqlc.DryRunPruneParams{Days: dryRunDays, Most: most})
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

// violations are the faults for constraints that a caller's input can violate.
var violations = postgres.Violations{
	"dry_runs_tenant_id_fkey": fault.New(fault.NotFound, "no such tenant"),
}
