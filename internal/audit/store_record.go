package audit

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// addDigests sets the missing digests of items about actions, from the rows that
// this transaction has written. Callers that write whole batches have the values
// and set the digests themselves.
func addDigests(ctx context.Context, tx pgx.Tx, events []Event) error {
	var keys recordKeys
	for i := range events {
		for j := range events[i].Items {
			if it := &events[i].Items[j]; it.Action != (envelope.ActionID{}) && it.Digests == (Digests{}) {
				keys.add(events[i].Tenant, it.Action)
			}
		}
	}
	if len(keys.actions) == 0 {
		return nil
	}
	began, err := dbsqlc.New().RecordNow(ctx, tx)
	if err != nil {
		return err
	}
	records, err := keys.read(ctx, tx, began)
	if err != nil {
		return err
	}
	for i := range events {
		for j := range events[i].Items {
			it := &events[i].Items[j]
			if it.Action == (envelope.ActionID{}) || it.Digests != (Digests{}) {
				continue
			}
			if r := records[recordKey{events[i].Tenant, it.Action}]; r != nil {
				it.Digests = r.last()
			}
		}
	}
	return nil
}

type recordKey struct {
	tenant envelope.TenantID
	action envelope.ActionID
}

// record is an action with its votes and attempts.
type record struct {
	row      *dbsqlc.RecordActionsRow
	digests  Digests
	votes    []Hash
	attempts []attemptHash
}

type attemptHash struct {
	hash       Hash
	finishedAt time.Time
}

// last returns the digests of the action, its last vote and its last attempt.
func (r *record) last() Digests {
	d := r.digests
	if n := len(r.votes); n > 0 {
		d.Vote = r.votes[n-1]
	}
	if n := len(r.attempts); n > 0 {
		d.Attempt = r.attempts[n-1].hash
	}
	return d
}

type recordKeys struct{ tenants, actions []uuid.UUID }

func (k *recordKeys) add(tenant envelope.TenantID, action envelope.ActionID) {
	k.tenants, k.actions = append(k.tenants, uuid.UUID(tenant)), append(k.actions, uuid.UUID(action))
}

// read reads actions, and their votes and attempts since a time.
func (k *recordKeys) read(ctx context.Context, tx pgx.Tx, since time.Time) (map[recordKey]*record, error) {
	rows, err := dbsqlc.New().RecordActions(ctx, tx, &dbsqlc.RecordActionsParams{TenantIds: k.tenants, ActionIds: k.actions})
	if err != nil {
		return nil, err
	}
	records := make(map[recordKey]*record, len(rows))
	for i := range rows {
		r := &rows[i]
		records[recordKey{r.TenantID, r.ActionID}] = &record{row: r, digests: actionDigests(r)}
	}
	return records, k.addTo(ctx, tx, records, since)
}

// addTo adds votes and attempts since a time to records.
func (k *recordKeys) addTo(ctx context.Context, tx pgx.Tx, records map[recordKey]*record, since time.Time) error {
	q := dbsqlc.New()
	votes, err := q.RecordVotes(ctx, tx, &dbsqlc.RecordVotesParams{TenantIds: k.tenants, ActionIds: k.actions, Since: since})
	if err != nil {
		return err
	}
	for i := range votes {
		v := &votes[i]
		if r := records[recordKey{v.TenantID, v.ActionID}]; r != nil {
			r.votes = append(r.votes, voteDigest(v))
		}
	}
	attempts, err := q.RecordAttempts(ctx, tx, &dbsqlc.RecordAttemptsParams{TenantIds: k.tenants, ActionIds: k.actions, Since: since})
	if err != nil {
		return err
	}
	for i := range attempts {
		a := &attempts[i]
		if r := records[recordKey{a.TenantID, a.ActionID}]; r != nil {
			r.attempts = append(r.attempts, attemptHash{attemptDigest(a), a.FinishedAt})
		}
	}
	return nil
}

// stored returns the text for a record. An empty text, which Countersign stores
// as NULL, differs from NULL.
func stored(p *string) string {
	if p != nil && *p == "" {
		return "\x00"
	}
	return postgres.OrZero(p)
}

func actionDigests(r *dbsqlc.RecordActionsRow) Digests {
	a := ActionRecord{
		Tenant: r.TenantID, Action: r.ActionID,
		External: stored(r.ExternalID), Session: stored(r.SessionID), Automation: stored(r.AutomationID),
		Source: r.SourceID, Tool: r.ToolName, ComposioApp: stored(r.ComposioApp),
		Risk: r.Risk, Effect: r.Effect, RateBucket: stored(r.RateBucket), Traceparent: stored(r.Traceparent),
		ContentDigest: r.ContentDigest, Employee: uuid.UUID(postgres.OrZero(r.EmployeeID)), ProposedBy: postgres.OrZero(r.ProposedBy),
		Person: postgres.OrZero(r.Person), Workflow: postgres.OrZero(r.WorkflowID), Bucket: r.BucketID,
		NotBefore: postgres.OrZero(r.NotBefore), MustRunBefore: postgres.OrZero(r.MustRunBefore), MaxAttempts: r.MaxAttempts, Urgent: r.Urgent,
		Origin: CanonicalHash(r.Origin), Args: CanonicalHash(r.Args),
		Decision: r.DecisionID, ConfigVersion: r.ConfigVersion, ToolDigest: r.ToolDigest, State: r.ApprovalState,
		ExpiresAt: postgres.OrZero(r.ApprovalExpiresAt), DecidedAt: postgres.OrZero(r.DecidedAt), DecidedBy: stored(r.DecidedBy),
		Note: stored(r.DecisionNote), ApprovalDigest: r.ApprovalDigest,
	}
	d := a.Digests()
	if r.EditedBy != nil || len(r.ProposedArgs) > 0 || len(r.Editors) > 0 || string(r.Edits) != "[]" && len(r.Edits) > 0 {
		e := make(encoding, 0, usualEncoding).text("countersign edits 1")
		e = e.tenant(a.Tenant)
		e = e.bytes(a.Action[:])
		e = e.text(stored(r.EditedBy))
		e = e.text(string(r.Edits))
		before := CanonicalHash(r.ProposedArgs)
		e = e.bytes(before[:])
		for _, id := range r.Editors {
			e = e.bytes(id[:])
		}
		d.Edits = e.sum()
	}
	return d
}

func voteDigest(v *dbsqlc.Votes) Hash {
	e := make(encoding, 0, usualEncoding).text("countersign vote 1")
	e = e.bytes(v.TenantID[:])
	e = e.bytes(v.ActionID[:])
	e = e.number(uint64(v.Round))
	e = e.bytes(v.Person[:])
	e = e.bytes(v.Token[:])
	e = e.text(v.Actor)
	e = e.text(v.Decision)
	e = e.text(stored(v.Note))
	e = e.bytes(v.ApprovalDigest)
	e = e.moment(v.At)
	return e.sum()
}

func attemptDigest(r *dbsqlc.ToolExecutions) Hash {
	a := AttemptRecord{
		Tenant: r.TenantID, Action: r.ActionID, Attempt: int(r.Attempt), Status: r.Status,
		Code: stored(r.Code), Message: stored(r.Message), Result: r.Result, ProviderID: stored(r.ProviderID), Worker: stored(r.Worker),
		StartedAt: postgres.OrZero(r.StartedAt), FinishedAt: r.FinishedAt,
	}
	return a.Digest()
}

// recordsAfter reads the next actions of a tenant with all their votes and
// attempts. next is the last action of the page; zero at the end.
func recordsAfter(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, after envelope.ActionID) (page []*record, next envelope.ActionID, err error) {
	rows, err := dbsqlc.New().RecordActionsAfter(ctx, tx, &dbsqlc.RecordActionsAfterParams{
		TenantID: tenant, After: after, Most: readRows,
	})
	if err != nil || len(rows) == 0 {
		return nil, next, err
	}
	var keys recordKeys
	records := make(map[recordKey]*record, len(rows))
	for i := range rows {
		r := dbsqlc.RecordActionsRow(rows[i])
		id := r.ActionID
		keys.add(tenant, id)
		one := &record{row: &r, digests: actionDigests(&r)}
		records[recordKey{tenant, id}] = one
		page = append(page, one)
		next = id
	}
	if len(rows) < readRows {
		next = envelope.ActionID{}
	}
	return page, next, keys.addTo(ctx, tx, records, time.Time{})
}

// eachDecision calls do for every decision of a tenant, with its stored id and
// the id computed from its contents.
func eachDecision(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, do func(id, content uuid.UUID)) error {
	for after := uuid.Nil; ; {
		rows, err := dbsqlc.New().RecordDecisions(ctx, tx, &dbsqlc.RecordDecisionsParams{TenantID: tenant, After: after, Most: readRows})
		if err != nil {
			return err
		}
		for _, r := range rows {
			after = r.DecisionID
			do(r.DecisionID, DecisionID(r.Mode, r.ModeSource, r.Trace))
		}
		if len(rows) < readRows {
			return nil
		}
	}
}

// countActions returns the number of actions of a tenant.
func countActions(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (int64, error) {
	return dbsqlc.New().RecordCount(ctx, tx, tenant)
}

// orphan is a row of an action that does not exist.
type orphan struct {
	table  string
	action envelope.ActionID
}

func orphanRows(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) ([]orphan, error) {
	rows, err := dbsqlc.New().RecordOrphans(ctx, tx, &dbsqlc.RecordOrphansParams{TenantID: tenant, Most: maxFindings})
	return postgres.Map(rows, err, func(r dbsqlc.RecordOrphansRow) orphan { return orphan{r.Tab, r.ActionID} })
}
