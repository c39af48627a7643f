package fence

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// plan counts the actions that a recovery affects, if the fence is held.
func (r Recovery) plan(ctx context.Context, tx pgx.Tx) (p Plan, err error) {
	s, err := Read(ctx, tx)
	if err != nil {
		return p, err
	}
	p.Recovery = wire.Recovery{Database: s.Database, State: string(s.State), Reason: s.Reason, Detail: s.Why(), Since: s.Since.UTC(), People: 1, Classes: []wire.RecoveryClass{}}
	p.onlyTenant = true
	if s.State != StateHeld {
		return p, nil
	}
	row, err := dbsqlc.New().FenceRecoveryPlan(ctx, tx, &dbsqlc.FenceRecoveryPlanParams{TenantID: r.Tenant, HeadNo: r.Head.Checkpoint, HeadHash: r.Head.Hash[:]})
	if err != nil {
		return p, err
	}
	if !row.Newest.IsZero() {
		p.Newest = new(row.Newest.UTC())
	}
	if row.CheckpointNo > 0 {
		p.AuditHead = &wire.AuditHead{Checkpoint: row.CheckpointNo, Hash: row.CheckpointHash}
	}
	p.NotedHead = r.compare(row.CheckpointNo, row.NotedUntil)
	p.Approvals, p.Workers, p.Silent = row.Approvals, row.Workers, row.Silent
	p.People, p.AskedBy = min(row.People, 2), envelope.Actor(row.AskedBy)
	p.asked, p.login, p.onlyTenant = row.AskedPerson, row.Login, row.OnlyTenant
	return p, r.classes(ctx, tx, &p)
}

// compare compares the noted head with the last checkpoint that is here, and with the time
// of the newest event up to the same checkpoint; zero if that is not here.
func (r Recovery) compare(last int64, until time.Time) *wire.RecoveryHead {
	if r.Head.Checkpoint == 0 {
		return nil
	}
	h := &wire.RecoveryHead{AuditHead: wire.AuditHead{Checkpoint: r.Head.Checkpoint, Hash: r.Head.Hash.String()}, Result: "different"}
	switch {
	case !until.IsZero():
		h.Result, h.Until = "present", new(until.UTC())
	case r.Head.Checkpoint > last:
		h.Result, h.Missing = "missing", r.Head.Checkpoint-last
	}
	return h
}

// classes counts the actions and calls of each class, and adds them up.
func (r Recovery) classes(ctx context.Context, tx pgx.Tx, p *Plan) error {
	rows, err := dbsqlc.New().FenceRecoveryClasses(ctx, tx, &dbsqlc.FenceRecoveryClassesParams{TenantID: r.Tenant, HeadNo: r.Head.Checkpoint, HeadHash: r.Head.Hash[:]})
	for _, c := range rows {
		p.Unknown, p.Later, p.Repeatable, p.running = p.Unknown+c.Unsure, p.Later+c.Later, p.Repeatable+c.Others, p.running+c.Running
		p.Recorded, p.Lost = p.Recorded+c.Recorded, p.Lost+c.Lost
		p.Classes = append(p.Classes, wire.RecoveryClass{
			Effect: envelope.Effect(c.Effect), Unknown: c.Unsure, Reconcilable: c.Reconcilable, Continue: c.Later + c.Others,
			Recorded: c.Recorded, Lost: c.Lost, OpenAtHead: c.OpenAtHead,
		})
	}
	return err
}

// ask records who asked for a recovery that another person has to confirm.
func ask(ctx context.Context, tx pgx.Tx, p Plan, by envelope.Actor, person string) error {
	if err := dbsqlc.New().FenceAskRecovery(ctx, tx, &dbsqlc.FenceAskRecoveryParams{ByActor: string(by), Person: person}); err != nil {
		return err
	}
	return record(ctx, tx, by, p.Database, StateHeld, p.Reason, "the recovery waits for a second person")
}

// endUnsure ends the actions of class once that may have been sent.
func endUnsure(ctx context.Context, tx pgx.Tx, by envelope.Actor) error {
	if err := audit.EnsurePartitions(ctx, tx, 2); err != nil { // the database may be old
		return err
	}
	rows, err := dbsqlc.New().OutboxRecover(ctx, tx, noteUnknown)
	if err != nil {
		return err
	}
	items := make(map[envelope.TenantID][]audit.Item)
	for _, r := range rows {
		items[r.TenantID] = append(items[r.TenantID], audit.Item{Action: r.ActionID, Status: envelope.StatusUnknown, Attempt: int(r.Attempt), Code: "recovered"})
	}
	return audit.Write(ctx, tx, audit.EventsOf(audit.Settled, by, items)...)
}

// voidApprovals voids the votes on actions of class once that wait for people.
func voidApprovals(ctx context.Context, tx pgx.Tx, by envelope.Actor) error {
	rows, err := dbsqlc.New().ApprovalsVoid(ctx, tx, noteApproved)
	if err != nil {
		return err
	}
	items := make(map[envelope.TenantID][]audit.Item)
	for _, r := range rows {
		items[r.TenantID] = append(items[r.TenantID], audit.Item{Action: r.ActionID, Status: envelope.StatusPending, Approval: envelope.ApprovalRequired, Note: noteApproved})
	}
	return audit.Write(ctx, tx, audit.EventsOf(audit.ReturnedToApproval, by, items)...)
}

// reopen opens the fence, and returns the database's new id.
func reopen(ctx context.Context, tx pgx.Tx, r Recovery) (uuid.UUID, error) {
	var until *time.Time
	if r.AskFor > 0 && !r.Moved {
		s, err := read(ctx, tx, uuid.Nil)
		if err != nil {
			return uuid.Nil, err
		}
		until = new(s.now.Add(r.AskFor))
	}
	id, err := dbsqlc.New().FenceRecover(ctx, tx, until)
	if err != nil {
		return uuid.Nil, err
	}
	detail := "recovered"
	if r.Moved {
		detail = "recovered after a move"
	}
	return id, record(ctx, tx, r.By, id, StateOpen, "", detail)
}

// Lost is a call that was made and whose action the database lost.
type Lost struct {
	Outcome, Worker string
	At              time.Time
}

// FindLost returns the lost calls of actions that were proposed again: those with the same
// external id. Reads may be repeated.
func FindLost(ctx context.Context, tx pgx.Tx, items []outbox.Item) (map[envelope.ActionID]Lost, error) {
	p := &dbsqlc.LostCallFindParams{}
	for i := range items {
		if it := &items[i]; it.ExternalID != "" && it.Effect != envelope.EffectRead {
			p.TenantIds, p.ExternalIds = append(p.TenantIds, uuid.UUID(it.Tenant)), append(p.ExternalIds, it.ExternalID)
		}
	}
	if len(p.ExternalIds) == 0 {
		return nil, nil
	}
	rows, err := dbsqlc.New().LostCallFind(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	type key struct {
		tenant envelope.TenantID
		id     string
	}
	calls := make(map[key]Lost, len(rows))
	for _, r := range rows {
		calls[key{r.TenantID, r.ExternalID}] = Lost{r.Outcome, r.Worker, r.CalledAt}
	}
	found := make(map[envelope.ActionID]Lost)
	for i := range items {
		if call, ok := calls[key{items[i].Tenant, items[i].ExternalID}]; ok && items[i].Effect != envelope.EffectRead {
			found[items[i].Action] = call
		}
	}
	return found, nil
}

// report records the calls that a process made and whose commits may be missing: those
// whose actions are here are settled again, or marked as started; of the others, proposals
// with the same external id are not sent again, unless the call certainly had no effect.
func (g *Guard) report(ctx context.Context, tx pgx.Tx, calls []call) error {
	q := dbsqlc.New()
	p := &dbsqlc.LostCallPutParams{Worker: g.cfg.Name}
	again := &dbsqlc.OutboxReassertParams{LeaseSeconds: g.cfg.Lease.Seconds()}
	var ended []outbox.Settlement
	for _, c := range calls {
		p.TenantIds, p.ActionIds = append(p.TenantIds, uuid.UUID(c.Tenant)), append(p.ActionIds, uuid.UUID(c.Action))
		p.ExternalIds, p.SourceIds, p.ToolNames = append(p.ExternalIds, c.externalID), append(p.SourceIds, c.source), append(p.ToolNames, c.tool)
		p.Effects, p.CalledAts = append(p.Effects, string(c.effect)), append(p.CalledAts, c.at)
		outcome := c.outcome.Status
		returned := c.ended && !c.settles()
		if returned && !c.harmless() {
			outcome = "" // not known
		}
		p.Outcomes, p.Codes, p.ProviderIds = append(p.Outcomes, string(outcome)), append(p.Codes, c.outcome.Code), append(p.ProviderIds, c.outcome.ProviderID)
		if c.ended {
			ended = append(ended, c.outcome)
		}
		if returned {
			continue // it has a lease only if it was reported before
		}
		again.TenantIds, again.ActionIds = append(again.TenantIds, uuid.UUID(c.Tenant)), append(again.ActionIds, uuid.UUID(c.Action))
		again.Fences, again.Once = append(again.Fences, c.Fence), append(again.Once, c.effect == envelope.EffectOnce)
	}
	// Proposals may be taken meanwhile: an action that is not here yet is lost, even if the
	// next statement finds it.
	if err := q.LostCallPut(ctx, tx, p); err != nil {
		return err
	}
	if err := q.OutboxReassert(ctx, tx, again); err != nil {
		return err
	}
	if _, err := outbox.Settle(ctx, tx, outbox.Mark{}, g.cfg.Name, ended); err != nil {
		return err
	}
	return q.FenceCountLost(ctx, tx)
}

// reported records that a process has compared its commits with a held database.
func (g *Guard) reported(ctx context.Context, tx pgx.Tx) error {
	return dbsqlc.New().WorkerReported(ctx, tx, g.worker)
}
