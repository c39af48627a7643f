package intake

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// insert writes rows and puts those that may run on the schedule. It returns
// the ids that were new.
func insert(ctx context.Context, tx pgx.Tx, by Submitter, version int64, wait time.Duration, traceparent string, rows []row) (map[envelope.ActionID]bool, error) {
	n := len(rows)
	p := &dbsqlc.ActionInsertManyParams{
		TenantID: uuid.UUID(by.Tenant), ConfigVersion: version, ApprovalSeconds: wait.Seconds(), Traceparent: traceparent,
		ActionIds: make([]uuid.UUID, n), ExternalIds: make([]string, n), ContentDigests: make([][]byte, n),
		EmployeeIds: make([]uuid.UUID, n), AutomationIds: make([]string, n), SessionIds: make([]string, n),
		SourceIds: make([]string, n), ToolNames: make([]string, n), ComposioApps: make([]string, n),
		Args: make([][]byte, n), Risks: make([]string, n), Effects: make([]string, n),
		DecisionIds: make([]uuid.UUID, n),
		ToolDigests: make([][]byte, n), ApprovalStates: make([]string, n), BucketIds: make([]int64, n),
		RateBuckets: make([]string, n), NotBefores: make([]time.Time, n), MustRunBefores: make([]time.Time, n), MaxAttempts: make([]int32, n),
	}
	if by.Token != uuid.Nil {
		p.ProposedBy = &by.Token
	}
	for i := range rows {
		r := &rows[i]
		q := r.proposal
		p.ActionIds[i], p.ExternalIds[i], p.ContentDigests[i] = uuid.UUID(r.action), q.ExternalID, r.digest[:]
		p.EmployeeIds[i], p.AutomationIds[i], p.SessionIds[i] = uuid.UUID(r.employee), q.AutomationID, r.session
		p.SourceIds[i], p.ToolNames[i], p.ComposioApps[i] = r.tool.Key.Source, r.tool.Key.Action, q.Tool.ComposioApp
		p.Args[i], p.Risks[i], p.Effects[i] = q.Args, string(r.risk), string(r.tool.Effect)
		p.DecisionIds[i] = r.decision.id
		p.ToolDigests[i], p.ApprovalStates[i], p.BucketIds[i] = r.tool.Digest, string(r.approval), r.bucket
		p.RateBuckets[i], p.NotBefores[i], p.MustRunBefores[i] = q.Constraints.RateBucket, q.Constraints.NotBefore, q.Constraints.MustRunBefore
		p.MaxAttempts[i] = int32(r.tool.MaxAttempts)
	}
	ids, err := dbsqlc.New().ActionInsertMany(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	written := make(map[envelope.ActionID]bool, len(ids))
	for _, id := range ids {
		written[envelope.ActionID(id)] = true
	}
	return written, nil
}

// answerKnown answers for rows whose id or external id the tenant had
// already: with the envelope of that name if the content is the same.
func answerKnown(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, known []row, answers []Answer) error {
	actions, externals := make([]uuid.UUID, len(known)), make([]string, 0, len(known))
	for i, r := range known {
		actions[i] = uuid.UUID(r.action)
		if r.proposal.ExternalID != "" {
			externals = append(externals, r.proposal.ExternalID)
		}
	}
	found, err := dbsqlc.New().ActionsKnown(ctx, tx, &dbsqlc.ActionsKnownParams{TenantID: uuid.UUID(tenant), ActionIds: actions, ExternalIds: externals})
	if err != nil {
		return err
	}
	byAction, byExternal := make(map[uuid.UUID]dbsqlc.ActionsKnownRow), make(map[string]dbsqlc.ActionsKnownRow)
	for _, f := range found {
		byAction[f.ActionID] = f
		if f.ExternalID != "" {
			byExternal[f.ExternalID] = f
		}
	}
	for _, r := range known {
		first, ok := byExternal[r.proposal.ExternalID]
		if !ok {
			first, ok = byAction[uuid.UUID(r.action)]
			// The same action id under another external id is another envelope.
			ok = ok && first.ExternalID == r.proposal.ExternalID
		}
		named := r.proposal.ActionID != (envelope.ActionID{})
		switch {
		case !ok:
			answers[r.at] = Answer{Err: fault.New(fault.Conflict, "the action_id is taken by another envelope")}
		case string(first.ContentDigest) != string(r.digest[:]):
			answers[r.at] = Answer{Err: fault.New(fault.Conflict, "an envelope of this external_id or action_id exists with other content: %s", first.ActionID)}
		case named && first.ActionID != uuid.UUID(r.action):
			answers[r.at] = Answer{Err: fault.New(fault.Conflict, "an envelope of this external_id exists under another action_id: %s", first.ActionID)}
		default:
			answers[r.at] = Answer{Action: envelope.ActionID(first.ActionID), Known: true}
		}
	}
	return nil
}

func ensureBuckets(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, wanted map[string]bool) (map[string]int64, error) {
	// In one order everywhere, so that two processes cannot deadlock.
	names := slices.Sorted(maps.Keys(wanted))
	rows, err := dbsqlc.New().BucketEnsure(ctx, tx, &dbsqlc.BucketEnsureParams{TenantID: uuid.UUID(tenant), Names: names})
	if err != nil {
		return nil, err
	}
	ids := make(map[string]int64, len(rows))
	for _, r := range rows {
		ids[r.Name] = r.BucketID
	}
	return ids, nil
}

// insertDecisions keeps decisions under their ids.
func insertDecisions(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, decisions []decision) error {
	p := &dbsqlc.DecisionInsertManyParams{TenantID: uuid.UUID(tenant)}
	for _, d := range decisions {
		p.DecisionIds = append(p.DecisionIds, d.id)
		p.Modes = append(p.Modes, string(d.Mode))
		p.ModeSources = append(p.ModeSources, d.Source)
		p.Traces = append(p.Traces, d.TraceJSON)
	}
	return dbsqlc.New().DecisionInsertMany(ctx, tx, p)
}
