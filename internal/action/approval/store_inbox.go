package approval

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// inboxItems returns the positions of a part of the inbox.
func inboxItems(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, q InboxQuery) ([]InboxItem, error) {
	all, err := inboxRows(ctx, tx, tenant, q)
	return all[:min(len(all), q.Most)], err
}

// inboxRows returns up to q.Most positions of each part of partsOf, in the order of q.
func inboxRows(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, q InboxQuery) (all []InboxItem, err error) {
	if err := postgres.PlanAnew(ctx, tx); err != nil {
		return nil, err
	}
	p := inboxParams(tenant, q)
	if slices.ContainsFunc(q.kinds(), func(k InboxKind) bool { return k != InboxNotify }) {
		rows, err := dbsqlc.New().InboxItems(ctx, tx, p)
		if all, err = postgres.Map(rows, err, inboxItemFromRow); err != nil {
			return nil, err
		}
	}
	if slices.Contains(q.kinds(), InboxNotify) {
		rows, err := dbsqlc.New().InboxNotices(ctx, tx, (*dbsqlc.InboxNoticesParams)(p))
		notices, err := postgres.Map(rows, err, func(r dbsqlc.InboxNoticesRow) InboxItem { return inboxItemFromRow(dbsqlc.InboxItemsRow(r)) })
		if err != nil {
			return nil, err
		}
		all = append(all, notices...)
	}
	slices.SortFunc(all, func(a, b InboxItem) int { return a.Place().compare(b.Place(), q.Order) })
	return all, nil
}

func inboxItemFromRow(r dbsqlc.InboxItemsRow) InboxItem {
	return InboxItem{
		Kind: InboxKind(r.Kind), Action: envelope.ActionID(r.ActionID), Tool: policy.Key{Source: r.SourceID, Action: r.ToolName}, Session: r.SessionID, person: postgres.OrZero(r.Person),
		Risk: riskOfRank(r.RiskRank), ExpiresAt: postgres.OrZero(r.ExpiresAt), Escalated: r.Escalated, Since: postgres.OrZero(r.Since),
		Workflow: postgres.OrZero(r.WorkflowID), Code: postgres.OrZero(r.Code), Message: postgres.OrZero(r.Message),
	}
}

// setKinds sets the kinds of actions of triage that wait for approval.
func setKinds(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, all []InboxItem) error {
	var ids []uuid.UUID
	for _, it := range all {
		if it.Kind == InboxApproval {
			ids = append(ids, uuid.UUID(it.Action))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := dbsqlc.New().InboxKinds(ctx, tx, &dbsqlc.InboxKindsParams{TenantID: tenant, ActionIds: ids})
	if err != nil || len(rows) == 0 {
		return err
	}
	kinds := make(map[envelope.ActionID]InboxKind, len(rows))
	for _, r := range rows {
		kinds[r.ActionID] = InboxKind(r.Kind)
	}
	for i := range all {
		if kind, ok := kinds[all[i].Action]; ok && all[i].Kind == InboxApproval {
			all[i].Kind = kind
		}
	}
	return nil
}

// nameOf sets the names of people.
func nameOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, people []wire.PersonCount) error {
	ids := make([]uuid.UUID, len(people))
	for i := range people {
		ids[i] = people[i].Person
	}
	rows, err := dbsqlc.New().InboxPeople(ctx, tx, &dbsqlc.InboxPeopleParams{TenantID: tenant, People: ids})
	for _, r := range rows {
		people[slices.Index(ids, r.Person)].Name = r.Name
	}
	return err
}

func inboxParams(tenant envelope.TenantID, q InboxQuery) *dbsqlc.InboxItemsParams {
	p := &dbsqlc.InboxItemsParams{
		TenantID: tenant, Kinds: postgres.Texts[string](q.kinds()), Source: postgres.OrNull(q.Source), Tool: postgres.OrNull(q.Tool), Session: postgres.OrNull(q.Session),
		Automation: postgres.OrNull(q.Automation), Person: postgres.OrNull(q.Person), Cohort: q.Cohort, Words: append([]string{}, q.Words...), RiskRanks: []int32{}, Escalated: q.Escalated, ExpiresBefore: postgres.OrNull(q.ExpiresBefore),
		Sort: string(q.Order), Most: int64(q.Most),
	}
	for _, r := range q.Risks {
		p.RiskRanks = append(p.RiskRanks, riskRank(r))
	}
	switch {
	case q.After != nil:
		p.After, p.AfterExpiry, p.AfterRisk = q.After.Action, expiryOf(*q.After), riskRank(q.After.Risk)
		p.AfterNoSession, p.AfterSession, p.AfterSource, p.AfterTool = q.After.Session == "", q.After.Session, q.After.Tool.Source, q.After.Tool.Action
	case q.Order == InboxNewest:
		p.After = envelope.ActionID(uuid.Max)
	}
	return p
}

// riskOfRank is the inverse of riskRank.
func riskOfRank(rank int32) envelope.Risk {
	for _, r := range []envelope.Risk{envelope.RiskHigh, envelope.RiskMedium} {
		if riskRank(r) == rank {
			return r
		}
	}
	return envelope.RiskLow
}

// addDetails sets the fields of items that a decision does not need.
func addDetails(ctx context.Context, tx pgx.Tx, by Decider, snap *settings.Settings, part []InboxItem) error {
	ids := make([]uuid.UUID, len(part))
	for i, it := range part {
		ids[i] = uuid.UUID(it.Action)
	}
	rows, err := dbsqlc.New().InboxDetails(ctx, tx, &dbsqlc.InboxDetailsParams{TenantID: by.Tenant, ActionIds: ids})
	if err != nil {
		return err
	}
	byID := make(map[envelope.ActionID]*dbsqlc.InboxDetailsRow, len(rows))
	for i := range rows {
		byID[rows[i].ActionID] = &rows[i]
	}
	for i := range part {
		if r, ok := byID[part[i].Action]; ok {
			part[i].addRow(r, snap)
		}
	}
	return nil
}

func (it *InboxItem) addRow(r *dbsqlc.InboxDetailsRow, snap *settings.Settings) {
	it.Effect, it.Bucket, it.MustRunBefore = envelope.Effect(r.Effect), snap.Limits.NameOf(r.BucketID), postgres.OrZero(r.MustRunBefore)
	if r.ProposedBy != nil {
		it.ProposedBy = envelope.NewActor(r.Proposer, *r.ProposedBy, postgres.OrZero(r.OperatorID))
	}
	it.Triage, it.external = r.Triage, r.ExternalID
	if it.Kind.Decided() {
		it.Kind = InboxKind(r.Kind)
		it.Since, it.ApprovedBy, it.EditedBy = r.CreatedAt, postgres.Texts[envelope.Actor](r.Voters), envelope.Actor(postgres.OrZero(r.EditedBy))
		it.Policy, it.Note = r.ModeSource, postgres.OrZero(r.DecisionNote)
	}
}

// Acknowledge acknowledges actions of triage that ran without a person, and
// returns how many were not acknowledged before.
func Acknowledge(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, ids []envelope.ActionID) (int, error) {
	all := make([]uuid.UUID, len(ids))
	for i, id := range ids {
		all[i] = uuid.UUID(id)
	}
	n, err := dbsqlc.New().InboxNoticed(ctx, tx, &dbsqlc.InboxNoticedParams{TenantID: tenant, ActionIds: all})
	return int(n), err
}
