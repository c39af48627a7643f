package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// read locks envelopes and reads the input of a decision about them. Missing
// envelopes are left out.
func read(ctx context.Context, tx pgx.Tx, by Decider, actions []envelope.ActionID) (map[envelope.ActionID]*item, error) {
	locked, err := dbsqlc.New().ApprovalLock(ctx, tx, &dbsqlc.ApprovalLockParams{TenantID: by.Tenant, ActionIds: postgres.UUIDs(actions)})
	if err != nil {
		return nil, err
	}
	return readUnlocked(ctx, tx, by, locked)
}

// readUnlocked is read without locks, for callers that change nothing.
func readUnlocked(ctx context.Context, tx pgx.Tx, by Decider, actions []envelope.ActionID) (map[envelope.ActionID]*item, error) {
	rows, err := dbsqlc.New().ApprovalRead(ctx, tx, &dbsqlc.ApprovalReadParams{TenantID: by.Tenant, ActionIds: postgres.UUIDs(actions)})
	if err != nil {
		return nil, err
	}
	items := make(map[envelope.ActionID]*item, len(rows))
	var closed []envelope.ActionID
	for i := range rows {
		r := &rows[i]
		m := itemFromRow(r)
		m.isProposer = isProposer(by, r.ProposedBy, r.Person) || slices.Contains(r.ShownTo, by.person())
		items[m.action] = m
		if r.Overdue || m.state != envelope.ApprovalRequired {
			closed = append(closed, m.action)
		}
	}
	return items, setClosed(ctx, tx, by.Tenant, items, closed)
}

// setClosed sets the reason why items can no longer be decided.
func setClosed(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, items map[envelope.ActionID]*item, closed []envelope.ActionID) error {
	if len(closed) == 0 {
		return nil
	}
	views, err := outbox.Get(ctx, tx, tenant, closed...)
	for i := range views {
		m := items[views[i].Envelope.ActionID]
		m.closed = views[i].CheckUndecided(m.Now)
	}
	return err
}

// isProposer reports whether an envelope is the decider's own proposal: of the same
// token, or of another one of the same person.
func isProposer(by Decider, token, person *uuid.UUID) bool {
	for _, proposer := range []*uuid.UUID{token, person} {
		if proposer != nil && (*proposer == by.Token || *proposer == by.person()) {
			return true
		}
	}
	return false
}

func itemFromRow(r *dbsqlc.ApprovalReadRow) *item {
	m := &item{
		action: r.ActionID, state: envelope.Approval(r.ApprovalState),
		tool: policy.Key{Source: r.SourceID, Action: r.ToolName}, toolDigest: r.ToolDigest,
		Action: decision.Action{Proposal: settings.Proposal{
			Automation: postgres.OrZero(r.AutomationID), AskedApproval: r.Asked, Employee: postgres.OrZero(r.EmployeeID), Risk: envelope.Risk(r.Risk), Session: postgres.OrZero(r.SessionID), Person: postgres.OrZero(r.Person), Args: r.Args, Now: r.Now,
		}},
		decided: r.DecisionID, round: round{number: int(r.Round), needed: int(r.Needed), given: len(r.Voters), voters: r.Voters, void: r.Void}, edited: r.Edited, editors: r.Editors,
	}
	if len(r.ApprovalDigest) > 0 {
		m.digest = r.ApprovalDigest
	}
	return m
}

// CountVotes returns the number of votes that count for each granted action.
// Actions without votes are left out.
func CountVotes(ctx context.Context, tx pgx.Tx, granted []outbox.Lease) (map[envelope.ActionID]int, error) {
	if len(granted) == 0 {
		return nil, nil
	}
	p := &dbsqlc.VoteCountManyParams{}
	for _, l := range granted {
		p.TenantIds, p.ActionIds = append(p.TenantIds, uuid.UUID(l.Tenant)), append(p.ActionIds, uuid.UUID(l.Action))
	}
	rows, err := dbsqlc.New().VoteCountMany(ctx, tx, p)
	votes := make(map[envelope.ActionID]int, len(rows))
	for _, r := range rows {
		votes[r.ActionID] = int(r.Votes)
	}
	return votes, err
}

// insertVotes stores votes and the progress of the envelopes.
func insertVotes(ctx context.Context, tx pgx.Tx, by Decider, vote envelope.Decision, note string, counted []countedVote) error {
	v := &dbsqlc.VoteInsertManyParams{
		TenantID: by.Tenant, Person: by.person(), Token: by.Token, Actor: string(by.actor()), Decision: string(vote), Note: note,
	}
	p := &dbsqlc.ApprovalVotedParams{TenantID: by.Tenant}
	for _, c := range counted {
		v.ActionIds, v.Rounds, v.ApprovalDigests = append(v.ActionIds, uuid.UUID(c.action)), append(v.Rounds, int32(c.number)), append(v.ApprovalDigests, postgres.NotNull(c.digest))
		p.Needed, p.Given = append(p.Needed, int32(c.needed)), append(p.Given, int32(c.given)) // at most settings.MaxApprovals
		p.ApprovalDigests = append(p.ApprovalDigests, c.item.digest)
	}
	p.ActionIds, p.Rounds = v.ActionIds, v.Rounds
	q := dbsqlc.New()
	// First the row that the votes belong to.
	if err := q.ApprovalVoted(ctx, tx, p); err != nil {
		return err
	}
	return violations.Fault(q.VoteInsertMany(ctx, tx, v))
}

// decide ends the wait of locked envelopes.
func decide(ctx context.Context, tx pgx.Tx, by Decider, vote envelope.Decision, note string, counted []countedVote) error {
	to, err := envelope.NextApproval(envelope.ApprovalRequired, vote)
	if err != nil {
		return err
	}
	p := &dbsqlc.ActionsDecideParams{ApprovalState: string(to), DecidedBy: string(by.actor()), DecisionNote: note, TenantID: by.Tenant}
	for _, c := range counted {
		p.ActionIds, p.ApprovalDigests = append(p.ActionIds, uuid.UUID(c.action)), append(p.ApprovalDigests, postgres.NotNull(c.digest))
	}
	decided, err := dbsqlc.New().ActionsDecide(ctx, tx, p)
	if err == nil && len(decided) != len(counted) {
		return fmt.Errorf("decided about %d of %d envelopes, whose locks are held", len(decided), len(counted))
	}
	return err
}

// storeEdit stores new arguments and returns them as stored.
func storeEdit(ctx context.Context, tx pgx.Tx, by Decider, action envelope.ActionID, was, args json.RawMessage, decided uuid.UUID, version int64, e wire.Edit) (json.RawMessage, error) {
	note, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	q := dbsqlc.New()
	err = q.ApprovalEdit(ctx, tx, &dbsqlc.ApprovalEditParams{
		TenantID: by.Tenant, ActionID: action, Was: was, Edit: note, EditedBy: string(by.actor()), Person: by.person(),
	})
	if err != nil {
		return nil, err
	}
	return q.ActionEdit(ctx, tx, &dbsqlc.ActionEditParams{
		Args: args, DecisionID: decided, ConfigVersion: version, TenantID: by.Tenant, ActionID: action,
	})
}

// Votes returns the votes about an envelope, oldest first.
func Votes(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID) ([]wire.Vote, error) {
	rows, err := dbsqlc.New().VoteList(ctx, tx, &dbsqlc.VoteListParams{TenantID: tenant, ActionID: action})
	return postgres.Map(rows, err, func(r dbsqlc.VoteListRow) wire.Vote {
		return wire.Vote{Round: int(r.Round), By: envelope.Actor(r.Actor), Decision: envelope.Decision(r.Decision), Note: postgres.OrZero(r.Note), At: r.At.UTC()}
	})
}

// expire expires overdue undecided actions and returns them by tenant, and
// their number.
func expire(ctx context.Context, tx pgx.Tx, most int) (map[envelope.TenantID][]audit.Item, int, error) {
	rows, err := dbsqlc.New().ActionsExpire(ctx, tx, int64(most))
	items := make(map[envelope.TenantID][]audit.Item)
	for _, r := range rows {
		items[r.TenantID] = append(items[r.TenantID], audit.Item{Action: r.ActionID, Status: envelope.StatusSkipped, Approval: envelope.ApprovalExpired})
	}
	return items, len(rows), err
}

// dueWithdrawals locks the withdrawals that are due.
func dueWithdrawals(ctx context.Context, tx pgx.Tx, most int) ([]withdrawal, error) {
	rows, err := dbsqlc.New().TriageWithdrawalsDue(ctx, tx, int64(most))
	return postgres.Map(rows, err, func(r dbsqlc.TriageWithdrawalsDueRow) withdrawal {
		return withdrawal{tenant: r.TenantID, external: r.ExternalID, action: envelope.ActionID(r.ActionID), later: r.Waiting}
	})
}

func endWithdrawals(ctx context.Context, tx pgx.Tx, due []withdrawal) error {
	p := &dbsqlc.TriageWithdrawnParams{}
	for _, w := range due {
		p.TenantIds, p.ExternalIds = append(p.TenantIds, uuid.UUID(w.tenant)), append(p.ExternalIds, w.external)
		p.Withdrawn, p.Later = append(p.Withdrawn, w.withdrawn), append(p.Later, w.later)
	}
	return dbsqlc.New().TriageWithdrawn(ctx, tx, p)
}

// dueWarnings takes due warnings. It returns those of pending actions, and the
// number of all.
func dueWarnings(ctx context.Context, tx pgx.Tx, most int) ([]reminder, int, error) {
	rows, err := dbsqlc.New().ApprovalsExpiring(ctx, tx, int64(most))
	all, err := postgres.Map(rows, err, func(r dbsqlc.ApprovalsExpiringRow) reminder { return reminderFromRow(dbsqlc.ApprovalsEscalatingRow(r)) })
	return stillWaiting(all), len(all), err
}

// dueEscalations takes the escalations that are due, like dueWarnings.
func dueEscalations(ctx context.Context, tx pgx.Tx, most int) ([]reminder, int, error) {
	rows, err := dbsqlc.New().ApprovalsEscalating(ctx, tx, int64(most))
	all, err := postgres.Map(rows, err, reminderFromRow)
	return stillWaiting(all), len(all), err
}

func reminderFromRow(r dbsqlc.ApprovalsEscalatingRow) reminder {
	return reminder{
		tenant: r.TenantID, action: r.ActionID,
		needed: int(r.Needed), given: int(r.Given), expiresAt: r.ExpiresAt, waits: r.Waits,
	}
}

func stillWaiting(all []reminder) []reminder {
	return slices.DeleteFunc(slices.Clone(all), func(r reminder) bool { return !r.waits })
}

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"votes_pkey": fault.Coded(wire.CodeVoted, fault.Conflict, "you have decided about this action already"),
}
