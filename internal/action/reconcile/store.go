package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Put sets the rule of a tool, or removes it if that is nil. It applies to the
// tool's dead letters that exist already as well. The error is an
// *envelope.InvalidError if the rule cannot work.
func Put(ctx context.Context, tx pgx.Tx, snap *settings.Settings, key policy.Key, rule *Rule) error {
	p := &dbsqlc.ToolReconcilePutParams{TenantID: snap.Tenant, SourceID: key.Source, Name: key.Action}
	if rule != nil {
		if err := rule.Validate(); err != nil {
			return err
		}
		if err := CheckRead(snap, key.Source, rule.Tool); err != nil {
			return err
		}
		text, err := json.Marshal(rule)
		if err != nil {
			return fmt.Errorf("encode rule: %w", err)
		}
		p.Reconcile = text
	}
	q := dbsqlc.New()
	n, err := q.ToolReconcilePut(ctx, tx, p)
	if err != nil {
		return err
	}
	if n == 0 {
		return fault.New(fault.NotFound, "no tool %s", key)
	}
	_, err = q.DeadLetterReconcilePlan(ctx, tx, &dbsqlc.DeadLetterReconcilePlanParams{
		Wanted: rule != nil, TenantID: p.TenantID, SourceID: key.Source, Tool: key.Action,
	})
	return err
}

// ToolRule is a stored rule, which Put set.
type ToolRule struct {
	Key  policy.Key
	Rule Rule
}

// List returns every rule of a tenant, by source and tool; or that of one tool, if
// of is not zero.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, of policy.Key) ([]ToolRule, error) {
	rows, err := dbsqlc.New().ToolReconcileList(ctx, tx, &dbsqlc.ToolReconcileListParams{TenantID: tenant, SourceID: of.Source, ToolName: of.Action})
	return postgres.TryMap(rows, err, func(r dbsqlc.ToolReconcileListRow) (ToolRule, error) {
		t := ToolRule{Key: policy.Key{Source: r.SourceID, Action: r.Name}}
		if err := json.Unmarshal(r.Reconcile, &t.Rule); err != nil {
			return t, fmt.Errorf("decode rule of %s: %w", t.Key, err)
		}
		return t, nil
	})
}

// unresolvedCall is a dead letter whose reconciling read was claimed.
type unresolvedCall struct {
	lease        outbox.Lease
	attempt      int
	age          time.Duration
	source, tool string
	args         json.RawMessage
	effect       envelope.Effect
	// rule is nil if the tool no longer has one.
	rule *Rule
}

// claim claims the reconciling reads that are due. No other process claims them
// before hold is over.
func claim(ctx context.Context, tx pgx.Tx, most int, hold time.Duration) ([]unresolvedCall, error) {
	rows, err := dbsqlc.New().DeadLetterReconcileClaim(ctx, tx, &dbsqlc.DeadLetterReconcileClaimParams{Most: int64(most), HoldSeconds: hold.Seconds()})
	return postgres.TryMap(rows, err, func(r dbsqlc.DeadLetterReconcileClaimRow) (unresolvedCall, error) {
		c := unresolvedCall{
			lease:   outbox.Lease{Tenant: r.TenantID, Action: r.ActionID},
			attempt: int(r.ReconcileAttempts), age: postgres.Seconds(r.AgeSeconds),
			source: r.SourceID, tool: r.ToolName, args: r.Args, effect: envelope.Effect(r.Effect),
		}
		if len(r.Reconcile) == 0 {
			return c, nil
		}
		c.rule = new(Rule)
		if err := json.Unmarshal(r.Reconcile, c.rule); err != nil {
			return c, fmt.Errorf("decode rule of %s:%s: %w", r.SourceID, r.ToolName, err)
		}
		return c, nil
	})
}

// settle resolves a call, or stores the result and the time of the next read. A
// call that was resolved meanwhile is unchanged.
func settle(ctx context.Context, tx pgx.Tx, r *unresolvedCall, v decision) error {
	if v.resolve {
		err := deadletter.Resolve(ctx, tx, r.lease.Tenant, r.lease.Action, deadletter.Resolution{
			Happened: v.happened, Actor: envelope.Actor("verify/" + r.rule.Tool), Note: v.note, ReconcileAttempt: r.attempt,
		})
		if errors.Is(err, fault.Conflict) || errors.Is(err, fault.NotFound) {
			return nil
		}
		return err
	}
	delay := v.again.Seconds()
	if v.last {
		delay = -1
	}
	_, err := dbsqlc.New().DeadLetterReconcileNote(ctx, tx, &dbsqlc.DeadLetterReconcileNoteParams{
		Result: v.said, DelaySeconds: delay, TenantID: r.lease.Tenant, ActionID: r.lease.Action, Tries: int32(r.attempt),
	})
	return err
}
