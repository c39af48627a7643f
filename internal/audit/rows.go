package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
)

// The tables whose rows are covered by events, and decisions, which are covered
// by their ids.
const (
	tableActions   = "actions"
	tableVotes     = "votes"
	tableAttempts  = "tool_executions"
	tableEdits     = "approvals"
	tableDecisions = "decisions"
)

// VerifyRows compares a part of a tenant's actions, with their edits, votes and
// attempts, with the digests in its events, in both directions, and the
// decisions of policy with their ids. It trusts the events, which Verify checks.
// The first part includes the contents of all decisions, and the last the rows
// of actions that do not exist. tx must have the scope Snapshot, so that
// concurrent changes cause no findings. All events since the first one that
// concerns the part are read.
func VerifyRows(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, opt RowsOptions) (RowsReport, error) {
	v := rowsVerification{tx: tx, tenant: tenant, opt: opt, report: RowsReport{Findings: []Finding{}, Part: opt.Part}}
	for _, step := range []func(context.Context) error{v.begin, v.decisions, v.learnAll, v.compareAll, v.orphans} {
		if err := step(ctx); err != nil {
			return v.report, err
		}
	}
	if p := v.report.Part; p.No < p.Of {
		v.report.Next = Part{p.No + 1, p.Of}
	}
	return v.report, nil
}

type rowsVerification struct {
	tx     pgx.Tx
	tenant envelope.TenantID
	opt    RowsOptions
	report RowsReport
	// after is the position of the last event that is not read. before is the
	// time up to which actions may have events up to that position.
	after  Position
	before time.Time
	known  map[envelope.ActionID]*history
	// decided are the decisions that exist, and undecided the missing ones that
	// actions name.
	decided, undecided map[uuid.UUID]bool
}

// history is the state of an action by its events.
type history struct {
	// proposedAt is the time of its proposal; zero if that event was not read.
	proposedAt time.Time
	last       Digests
	votes      []Hash
	attempts   []Hash
	gone       bool
}

// begin determines the events to read, and the part if no part was requested.
func (v *rowsVerification) begin(ctx context.Context) error {
	pruned, err := prunedThrough(ctx, v.tx, v.tenant)
	if err != nil {
		return err
	}
	v.after, v.before = beginning(), v.opt.Since
	for no := int64(0); ; {
		s, ok, err := nextCheckpoint(ctx, v.tx, v.tenant, no)
		if err != nil {
			return err
		}
		if !ok || s.no > pruned && !s.newest.Before(v.opt.Since) {
			break
		}
		v.after, no = s.until, s.no
		if s.no <= pruned && s.newest.After(v.before) {
			v.before = s.newest
		}
	}
	if v.report.Part != (Part{}) {
		return nil
	}
	atOnce := v.opt.atOnce
	atOnce = cmp.Or(atOnce, actionsAtOnce)
	actions, err := countActions(ctx, v.tx, v.tenant)
	v.report.Part = Part{1, int(actions/int64(atOnce)) + 1}
	return err
}

// first and last report whether the part is the first, and the last.
func (v *rowsVerification) first() bool { return v.report.Part.No == 1 }
func (v *rowsVerification) last() bool  { return v.report.Part.No == v.report.Part.Of }

// decisions reads the ids of the decisions, and compares their contents with
// them.
func (v *rowsVerification) decisions(ctx context.Context) error {
	v.decided, v.undecided = make(map[uuid.UUID]bool), make(map[uuid.UUID]bool)
	return eachDecision(ctx, v.tx, v.tenant, func(id, content uuid.UUID) {
		v.decided[id] = true
		if !v.first() {
			return
		}
		v.report.Decisions++
		if id != content {
			v.report.add(Finding{
				Kind: Changed, Table: tableDecisions, Decision: id, Columns: "row",
				Message: "the id of the decision is not the digest of its contents",
			})
		}
	})
}

// learnAll reads the events into the histories.
func (v *rowsVerification) learnAll(ctx context.Context) error {
	v.known = make(map[envelope.ActionID]*history)
	return eachRow(ctx, v.tx, v.tenant, v.after, Position{math.MaxUint64, math.MaxInt64}, func(r row) {
		if err := v.learn(r); err != nil && v.first() {
			v.report.add(Finding{Kind: Changed, Position: r.position.String(), Event: r.position.Event, At: r.at.UTC(), Message: err.Error()})
		}
		if v.report.Events++; v.report.Events%readRows == 0 {
			v.progress()
		}
	})
}

func (v *rowsVerification) progress() {
	if v.opt.Progress != nil {
		v.opt.Progress(v.report)
	}
}

// learn adds an event to the histories of its actions.
func (v *rowsVerification) learn(r row) error {
	var items []struct {
		Action envelope.ActionID `json:"action_id"`
	}
	if err := json.Unmarshal([]byte(r.text), &items); err != nil {
		return errors.New("the items of the event cannot be read")
	}
	digests, ok := decodeDigests(r.digests, len(items))
	if !ok {
		return errors.New("the digests of the event cannot be read")
	}
	for i, it := range items {
		if it.Action == (envelope.ActionID{}) || !v.report.Part.mine(it.Action) {
			continue
		}
		h := v.known[it.Action]
		if h == nil {
			h = &history{}
			v.known[it.Action] = h
		}
		h.learn(Kind(r.kind), r.at, &digests[i])
	}
	return nil
}

func (h *history) learn(kind Kind, at time.Time, d *Digests) {
	switch kind {
	case Proposed:
		h.proposedAt = at
	case Pruned:
		h.gone = true
	}
	last := h.last.groups()
	for i, hash := range d.groups() {
		if *hash != (Hash{}) {
			*last[i] = *hash
		}
	}
	if d.Vote != (Hash{}) {
		h.votes = append(h.votes, d.Vote)
	}
	if d.Attempt != (Hash{}) {
		h.attempts = append(h.attempts, d.Attempt)
	}
}

// compareAll compares the rows of the part with the histories. Histories that
// remain belong to actions that do not exist.
func (v *rowsVerification) compareAll(ctx context.Context) error {
	for after := (envelope.ActionID{}); ; {
		records, next, err := recordsAfter(ctx, v.tx, v.tenant, after)
		if err != nil {
			return err
		}
		for _, r := range records {
			if id := envelope.ActionID(r.row.ActionID); v.report.Part.mine(id) {
				v.compare(id, r)
				delete(v.known, id)
			}
		}
		v.progress()
		if next == (envelope.ActionID{}) {
			break
		}
		after = next
	}
	for id, h := range v.known {
		switch {
		case h.gone:
			v.report.Pruned++
		case h.last != (Digests{}):
			v.found(Missing, tableActions, id, "", "the events record the action, which does not exist")
		}
	}
	return nil
}

func (v *rowsVerification) compare(id envelope.ActionID, r *record) {
	h := v.known[id]
	old := !r.row.CreatedAt.After(v.before)
	switch {
	case h == nil && old:
		v.report.Unchecked++
		return
	case h == nil:
		v.found(Added, tableActions, id, "", "no event records the action")
		return
	case h.gone:
		v.found(Added, tableActions, id, "", "the action exists, though retention deleted it")
		return
	case h.proposedAt.IsZero() && !old:
		v.found(Added, tableActions, id, "", "no event records the proposal")
	case !h.proposedAt.IsZero() && !h.proposedAt.Equal(r.row.CreatedAt):
		v.found(Changed, tableActions, id, "created_at", "the time of the proposal differs from that of its event")
	}
	v.report.Actions++
	v.compareDecision(id, r.row.DecisionID)
	for _, g := range [...]struct {
		table, columns string
		want, is       Hash
	}{
		{tableActions, "args", h.last.Args, r.digests.Args},
		{tableActions, "proposal", h.last.Proposal, r.digests.Proposal},
		{tableActions, "decision", h.last.Decision, r.digests.Decision},
		{tableEdits, "edits", h.last.Edits, r.digests.Edits},
	} {
		// The state before the first event that was read is unknown.
		if g.want != g.is && (g.want != (Hash{}) || !h.proposedAt.IsZero()) {
			v.found(Changed, g.table, id, g.columns, "the row differs from its events")
		}
	}
	partly := h.proposedAt.IsZero()
	attempts := make([]Hash, 0, len(r.attempts))
	for _, a := range r.attempts {
		if !partly || a.finishedAt.After(v.before) {
			attempts = append(attempts, a.hash)
		}
	}
	v.report.Attempts += int64(len(attempts))
	v.compareSets(id, tableAttempts, h.attempts, attempts)
	v.report.Votes += int64(len(r.votes))
	if !partly {
		v.compareSets(id, tableVotes, h.votes, r.votes)
	}
}

// compareDecision checks that the decision of an action exists. A missing
// decision is reported once, with one of its actions.
func (v *rowsVerification) compareDecision(id envelope.ActionID, decision uuid.UUID) {
	if v.decided[decision] || v.undecided[decision] {
		return
	}
	v.undecided[decision] = true
	v.report.add(Finding{
		Kind: Missing, Table: tableDecisions, Action: uuid.UUID(id), Decision: decision, Columns: "row",
		Message: "the action names a decision that does not exist",
	})
}

// compareSets compares the rows of a table that belong to one action.
func (v *rowsVerification) compareSets(id envelope.ActionID, table string, told, are []Hash) {
	left := make(map[Hash]int, len(told))
	for _, h := range told {
		left[h]++
	}
	added := 0
	for _, h := range are {
		if left[h]--; left[h] < 0 {
			added++
		}
	}
	missing := 0
	for _, n := range left {
		missing += max(n, 0)
	}
	for ; added > 0 && missing > 0; added, missing = added-1, missing-1 {
		v.found(Changed, table, id, "row", "a row differs from its events")
	}
	for ; added > 0; added-- {
		v.found(Added, table, id, "row", "no event records the row")
	}
	for ; missing > 0; missing-- {
		v.found(Missing, table, id, "row", "the events record a row that does not exist")
	}
}

// orphans finds rows of actions that do not exist.
func (v *rowsVerification) orphans(ctx context.Context) error {
	if !v.last() {
		return nil
	}
	rows, err := orphanRows(ctx, v.tx, v.tenant)
	for _, r := range rows {
		v.found(Added, r.table, r.action, "row", "the row is of an action that does not exist")
	}
	return err
}

func (v *rowsVerification) found(kind FindingKind, table string, id envelope.ActionID, columns, message string) {
	v.report.add(Finding{Kind: kind, Table: table, Action: uuid.UUID(id), Columns: columns, Message: message})
}
