package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
)

// The tables whose rows events cover.
const (
	tableActions  = "actions"
	tableVotes    = "votes"
	tableAttempts = "tool_executions"
	tableEdits    = "approvals"
)

// RowsOptions select what VerifyRows compares.
type RowsOptions struct {
	// Since leaves out actions that were proposed earlier. Zero is all.
	Since time.Time
	// Progress, if set, is called from time to time.
	Progress func(RowsReport)
	// atOnce is about how many actions are held in memory; zero is actionsAtOnce.
	atOnce int
}

// actionsAtOnce bounds how many actions are held in memory, with about 300 bytes
// each.
const actionsAtOnce = 250_000

// RowsReport is the result of comparing rows with events.
type RowsReport struct {
	Findings []Finding `json:"findings"`
	Omitted  int64     `json:"findings_omitted"`
	// Actions, Votes and Attempts are how many rows were compared, and Pruned how
	// many actions retention deleted, as its events say.
	Actions  int64 `json:"actions"`
	Votes    int64 `json:"votes"`
	Attempts int64 `json:"attempts"`
	Pruned   int64 `json:"pruned"`
	// Unchecked is how many actions were not compared, because their events are
	// older than Since or were deleted by retention.
	Unchecked int64 `json:"unchecked"`
	// Part of Parts is being compared.
	Part  int `json:"part"`
	Parts int `json:"parts"`
}

func (r *RowsReport) add(f Finding) {
	if len(r.Findings) == maxFindings {
		r.Omitted++
		return
	}
	r.Findings = append(r.Findings, f)
}

// VerifyRows compares a tenant's actions, edits, votes and attempts with the
// digests that its events have of them, in both directions. It believes the
// events, which Verify checks. tx must be of the scope Snapshot: then changes
// meanwhile cause no findings. Memory is bounded: actions are compared in parts,
// for each of which all events are read.
func VerifyRows(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, opt RowsOptions) (RowsReport, error) {
	v := rowsVerification{tx: tx, tenant: tenant, opt: opt, report: RowsReport{Findings: []Finding{}, Parts: 1}}
	if err := v.begin(ctx); err != nil {
		return v.report, err
	}
	for v.report.Part = 1; v.report.Part <= v.report.Parts; v.report.Part++ {
		if err := v.part(ctx); err != nil {
			return v.report, err
		}
	}
	v.report.Part = v.report.Parts
	return v.report, v.orphans(ctx)
}

type rowsVerification struct {
	tx     pgx.Tx
	tenant envelope.TenantID
	opt    RowsOptions
	report RowsReport
	// after is the position of the last event that is not read, and before the
	// time up to which actions may have events up to there.
	after  Position
	before time.Time
	known  map[envelope.ActionID]*history
}

// history is what the events say of an action.
type history struct {
	// proposedAt is the time of its proposal; zero if that event was not read.
	proposedAt time.Time
	last       Digests
	votes      []Hash
	attempts   []Hash
	gone       bool
}

// begin finds the events to read, and how many parts there are.
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
	atOnce := v.opt.atOnce
	if atOnce == 0 {
		atOnce = actionsAtOnce
	}
	actions, err := countActions(ctx, v.tx, v.tenant)
	v.report.Parts = int(actions/int64(atOnce)) + 1
	return err
}

// mine reports whether an action is of the part that is being compared.
func (v *rowsVerification) mine(id envelope.ActionID) bool {
	// The last bytes of an id are random.
	n := uint32(id[12])<<24 | uint32(id[13])<<16 | uint32(id[14])<<8 | uint32(id[15])
	return int(n%uint32(v.report.Parts)) == v.report.Part-1
}

func (v *rowsVerification) part(ctx context.Context) error {
	v.known = make(map[envelope.ActionID]*history)
	var failed error
	events := 0
	err := eachRow(ctx, v.tx, v.tenant, v.after, Position{math.MaxUint64, math.MaxInt64}, func(r row) {
		if err := v.learn(r); err != nil && failed == nil {
			failed = err
		}
		if events++; events%readRows == 0 {
			v.progress()
		}
	})
	if err != nil {
		return err
	}
	if failed != nil {
		v.report.add(Finding{Kind: Changed, Message: failed.Error()})
	}
	if err := v.compareAll(ctx); err != nil {
		return err
	}
	for id, h := range v.known {
		switch {
		case h.gone:
			v.report.Pruned++
		case h.last != (Digests{}):
			v.found(Missing, tableActions, id, "", "the events tell of the action, and it does not exist")
		}
	}
	return nil
}

func (v *rowsVerification) progress() {
	if v.opt.Progress != nil {
		v.opt.Progress(v.report)
	}
}

// learn adds what an event says to the histories of its actions.
func (v *rowsVerification) learn(r row) error {
	var items []struct {
		Action envelope.ActionID `json:"action_id"`
	}
	if err := json.Unmarshal([]byte(r.text), &items); err != nil {
		return fmt.Errorf("the items of event %s cannot be read", r.position)
	}
	digests, ok := decodeDigests(r.digests, len(items))
	if !ok {
		return fmt.Errorf("the digests of event %s cannot be read", r.position)
	}
	for i, it := range items {
		if it.Action == (envelope.ActionID{}) || !v.mine(it.Action) {
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

// compareAll compares the rows of this part with the histories, and forgets those
// that it compared.
func (v *rowsVerification) compareAll(ctx context.Context) error {
	for after := (envelope.ActionID{}); ; {
		records, next, err := recordsAfter(ctx, v.tx, v.tenant, after)
		if err != nil {
			return err
		}
		for _, r := range records {
			if id := envelope.ActionID(r.row.ActionID); v.mine(id) {
				v.compare(id, r)
				delete(v.known, id)
			}
		}
		v.progress()
		if next == (envelope.ActionID{}) {
			return nil
		}
		after = next
	}
}

func (v *rowsVerification) compare(id envelope.ActionID, r *record) {
	h := v.known[id]
	old := !r.row.CreatedAt.After(v.before)
	switch {
	case h == nil && old:
		v.report.Unchecked++
		return
	case h == nil:
		v.found(Added, tableActions, id, "", "no event tells of the action")
		return
	case h.gone:
		v.found(Added, tableActions, id, "", "the action exists, though retention deleted it")
		return
	case h.proposedAt.IsZero() && !old:
		v.found(Added, tableActions, id, "", "no event tells of the proposal")
	case !h.proposedAt.IsZero() && !h.proposedAt.Equal(r.row.CreatedAt):
		v.found(Changed, tableActions, id, "created_at", "the time of the proposal differs from that of its event")
	}
	v.report.Actions++
	for _, g := range [...]struct {
		table, columns string
		want, is       Hash
	}{
		{tableActions, "args", h.last.Args, r.digests.Args},
		{tableActions, "proposal", h.last.Proposal, r.digests.Proposal},
		{tableActions, "decision", h.last.Decision, r.digests.Decision},
		{tableEdits, "edits", h.last.Edits, r.digests.Edits},
	} {
		// What happened before the first event that was read is not known.
		if g.want != g.is && (g.want != (Hash{}) || !h.proposedAt.IsZero()) {
			v.found(Changed, g.table, id, g.columns, "the row differs from what the events say")
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
		v.found(Changed, table, id, "row", "a row differs from what the events say")
	}
	for ; added > 0; added-- {
		v.found(Added, table, id, "row", "no event tells of the row")
	}
	for ; missing > 0; missing-- {
		v.found(Missing, table, id, "row", "the events tell of a row that does not exist")
	}
}

// orphans finds rows of actions that do not exist.
func (v *rowsVerification) orphans(ctx context.Context) error {
	rows, err := orphanRows(ctx, v.tx, v.tenant)
	for _, r := range rows {
		v.found(Added, r.table, r.action, "row", "the row is of an action that does not exist")
	}
	return err
}

func (v *rowsVerification) found(kind FindingKind, table string, id envelope.ActionID, columns, message string) {
	v.report.add(Finding{Kind: kind, Table: table, Action: uuid.UUID(id), Columns: columns, Message: message})
}
