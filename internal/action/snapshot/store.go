// Package snapshot takes and stores the state of an object before and after a call: the
// read that an operator declared for a tool, made right before and right after
// the call. It owns the snapshots; their rules are stored with the catalog.
//
// It makes no call that changes anything, and a failed read is stored as one.
package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// maxSnapshots bounds the snapshots that are shown of one action.
const maxSnapshots = 100

// Insert stores a snapshot of a call.
func Insert(ctx context.Context, tx pgx.Tx, call outbox.Lease, s wire.Snapshot) error {
	err := dbsqlc.New().SnapshotInsert(ctx, tx, &dbsqlc.SnapshotInsertParams{
		TenantID: call.Tenant, ActionID: call.Action, Attempt: int32(s.Attempt), // attempts are bounded by the retry rule
		Stage: s.Stage, ToolName: s.Tool, Code: s.Code, Result: s.Result,
	})
	if err != nil {
		return fmt.Errorf("snapshot of %s: %w", call.Action, err)
	}
	return nil
}

// List returns the snapshots around an action's calls, oldest first.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID) ([]wire.Snapshot, error) {
	rows, err := dbsqlc.New().SnapshotList(ctx, tx, &dbsqlc.SnapshotListParams{TenantID: tenant, ActionID: action, Most: maxSnapshots})
	if err != nil {
		return nil, fmt.Errorf("snapshots of %s: %w", action, err)
	}
	return postgres.Map(rows, nil, func(r dbsqlc.SnapshotListRow) wire.Snapshot {
		return wire.Snapshot{
			Attempt: int(r.Attempt), Stage: r.Stage, At: r.At.UTC(), Tool: r.ToolName, Code: r.Code, Result: json.RawMessage(r.Result),
		}
	})
}

// Stage is the time of a snapshot relative to the call.
type Stage string

// The stages.
const (
	// StageBefore is right before the call.
	StageBefore Stage = "before"
	// StageAfter is right after it.
	StageAfter Stage = "after"
)

// CodeFailed is the code of a call that was not made because the read
// before it, which is required, did not work.
const CodeFailed = "snapshot_failed"

// readTimeout bounds one read.
const readTimeout = 10 * time.Second

// CheckRule returns an error if a rule cannot be used for a tool: an
// *envelope.InvalidError whose pointers are below the rule.
func CheckRule(snap *settings.Settings, key policy.Key, rule catalog.SnapshotRule) error {
	if err := template(rule).Validate(); err != nil {
		return err
	}
	return reconcile.CheckRead(snap, key.Source, rule.Tool)
}

// template is the rule in the language of verifying reads.
func template(rule catalog.SnapshotRule) reconcile.Rule {
	return reconcile.Rule{Tool: rule.Tool, Args: rule.Args}
}

// Take makes the read that belongs to a call, over the source that open
// returns. It never fails: a snapshot that could not be taken has the reason.
func Take(
	ctx context.Context, log *slog.Logger, snap *settings.Settings, open func() (source.Source, error), it *outbox.Item, rule catalog.SnapshotRule, stage Stage,
) wire.Snapshot {
	s := wire.Snapshot{Attempt: it.Attempt + 1, Stage: string(stage), Tool: rule.Tool}
	read := reconcile.Read{
		About: it.Lease, Args: it.Args, Source: it.Source, Rule: template(rule), Deadline: readTimeout, Open: open,
		Name: fmt.Sprintf("snapshot/%s/%d/%d", stage, s.Attempt, it.Fence),
	}
	answer, said := read.Run(ctx, log, snap)
	if said != "" {
		s.Code = said
		return s
	}
	s.Result = redact.JSONTruncated(answer, redact.DefaultLimit)
	return s
}
