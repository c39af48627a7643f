package audit

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// FindingKind is the kind of a deviation of the log from its checkpoints.
type FindingKind string

// The kinds of finding.
const (
	// Changed means that an event differs from its digest.
	Changed FindingKind = "changed"
	// Missing means that a covered event does not exist.
	Missing FindingKind = "missing"
	// Added means that an event was added between covered events.
	Added FindingKind = "added"
	// ChainBroken means that a checkpoint does not follow the previous one, or
	// that no checkpoint has the known head.
	ChainBroken FindingKind = "chain_broken"
	// CheckpointChanged means that a checkpoint does not match its hash.
	CheckpointChanged FindingKind = "checkpoint_changed"
)

// Finding is one deviation and its position.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// Checkpoint is the checkpoint concerned; zero if none.
	Checkpoint int64 `json:"checkpoint_no,omitzero"`
	// Position and Event identify the event, if one is concerned.
	Position string `json:"position,omitzero"`
	Event    int64  `json:"event_id,omitzero"`
	// Table, Action and Columns identify a row that differs from the events, and
	// its differing columns: args, proposal, decision, created_at, edits, or row
	// for all of them.
	Table   string    `json:"table,omitzero"`
	Action  uuid.UUID `json:"action_id,omitzero"`
	Columns string    `json:"columns,omitzero"`
	// Decision is the decision of policy concerned.
	Decision uuid.UUID `json:"decision_id,omitzero"`
	// At is the current time of the event, if it exists.
	At time.Time `json:"at,omitzero"`
	// Message describes the finding.
	Message string `json:"message"`
}

// maxFindings bounds the findings of a report.
const maxFindings = 1000

// Report is the result of a verification.
type Report struct {
	// Findings are in the order of the chain, at most 1000. Omitted is the
	// number of others.
	Findings []Finding `json:"findings"`
	Omitted  int64     `json:"findings_omitted"`
	// Checkpoints is the number of verified checkpoints. Covered is the number
	// of their events that should exist, Pruned the number that retention
	// deleted.
	Checkpoints int64 `json:"checkpoints"`
	Covered     int64 `json:"covered"`
	Pruned      int64 `json:"pruned"`
	// Uncovered is the number of events without a checkpoint, counted up to
	// 100,000, and UncoveredSince the time of the oldest.
	Uncovered      int64     `json:"uncovered"`
	UncoveredSince time.Time `json:"uncovered_since,omitzero"`
	// Head is the last verified checkpoint, or nil. Its hash is computed from
	// its contents.
	Head *Head `json:"head"`
	// KnownHead is the checkpoint with the known head; nil if it is missing or
	// the end of the chain was not reached.
	KnownHead *Head `json:"known_head,omitzero"`
	// Next is the checkpoint to continue after; zero at the end of the chain.
	Next int64 `json:"next_after,omitzero"`
}

// Intact reports whether there are no findings.
func (r *Report) Intact() bool { return len(r.Findings) == 0 }

// Join adds the report that continues after r.Next.
func (r *Report) Join(rest Report) {
	r.add(rest.Findings...)
	r.Omitted += rest.Omitted
	r.Checkpoints += rest.Checkpoints
	r.Covered += rest.Covered
	r.Pruned += rest.Pruned
	r.Uncovered, r.UncoveredSince, r.Next = rest.Uncovered, rest.UncoveredSince, rest.Next
	if rest.Head != nil {
		r.Head = rest.Head
	}
	if rest.KnownHead != nil {
		r.KnownHead = rest.KnownHead
	}
}

// add appends findings up to maxFindings, and counts the others.
func (r *Report) add(found ...Finding) {
	kept := min(len(found), maxFindings-len(r.Findings))
	r.Findings = append(r.Findings, found[:kept]...)
	r.Omitted += int64(len(found) - kept)
}

// Options select the part of a chain to verify. The zero value selects all of it.
type Options struct {
	// After is the checkpoint after which to start; it and earlier ones are
	// trusted. If it does not exist, the error is fault.NotFound. Zero means the
	// beginning.
	After int64
	// Until is the last checkpoint to verify; zero means the end of the chain.
	Until int64
	// Limit is the approximate number of events to verify; zero means all.
	Limit int64
	// KnownHead is the hash of an earlier head that the chain must contain; the
	// zero Hash means none.
	KnownHead Hash
}

// Verify compares a tenant's events with its checkpoints, and each checkpoint
// with the previous one. It reads one checkpoint and a few hundred events per
// statement, so that it delays no other transaction. If tx is READ COMMITTED,
// concurrent changes cause no findings.
func Verify(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, opt Options) (Report, error) {
	v := verification{tx: tx, tenant: tenant, last: genesis(), report: Report{Findings: []Finding{}}}
	var err error
	if opt.After > 0 {
		if err = v.startAfter(ctx, opt.After); err != nil {
			return Report{}, err
		}
	}
	if v.pruned, err = prunedThrough(ctx, tx, tenant); err != nil {
		return Report{}, err
	}
	err = v.run(ctx, opt)
	return v.report, err
}

// verification is the state of Verify.
type verification struct {
	tx     pgx.Tx
	tenant envelope.TenantID
	last   link
	// pruned is the last checkpoint whose events retention deleted.
	pruned int64
	report Report
}

// startAfter continues after a checkpoint that was verified before.
func (v *verification) startAfter(ctx context.Context, no int64) error {
	s, ok, err := nextCheckpoint(ctx, v.tx, v.tenant, no-1)
	if err != nil {
		return err
	}
	if !ok || s.no != no {
		return fault.New(fault.NotFound, "unknown checkpoint %d", no)
	}
	computed := s.hash(v.tenant)
	if !v.fits(&s) {
		v.repair(&s)
	}
	v.last = link{s.no, s.until, s.stored, computed[:]}
	return nil
}

func (v *verification) run(ctx context.Context, opt Options) error {
	after, seen := opt.After, int64(0)
	s, ok, err := nextCheckpoint(ctx, v.tx, v.tenant, after)
	for err == nil && ok {
		if opt.Until > 0 && s.no > opt.Until {
			return nil
		}
		if opt.Limit > 0 && seen >= opt.Limit {
			v.report.Next = after
			return nil
		}
		// after is the number in the row, which repair may correct below.
		after = s.no
		var next checkpoint
		if next, ok, err = nextCheckpoint(ctx, v.tx, v.tenant, after); err == nil {
			err = v.checkpoint(ctx, &s, next.prev)
		}
		seen += int64(s.events)
		s = next
	}
	if err != nil {
		return err
	}
	return v.end(ctx, opt.KnownHead)
}

// end counts the events after the last checkpoint, and searches for the known
// head.
func (v *verification) end(ctx context.Context, head Hash) error {
	var err error
	v.report.Uncovered, v.report.UncoveredSince, err = uncovered(ctx, v.tx, v.tenant, v.last.until)
	if err != nil || head == (Hash{}) {
		return err
	}
	no, err := findHead(ctx, v.tx, v.tenant, head)
	switch {
	case err != nil:
	case no > 0:
		v.report.KnownHead = &Head{no, head}
	default:
		v.report.add(Finding{Kind: ChainBroken, Message: "no checkpoint has the known head: the chain was rewritten, or cut off"})
	}
	return err
}

// checkpoint verifies one checkpoint and its events. follower is the hash by
// which the next checkpoint names it, or nil.
func (v *verification) checkpoint(ctx context.Context, s *checkpoint, follower []byte) error {
	computed := s.hash(v.tenant)
	changed := ""
	switch {
	case v.fits(s):
	case bytes.Equal(computed[:], follower):
		changed = "hash"
	default:
		changed = v.repair(s)
	}
	whole := v.follows(s)
	events, err := v.events(ctx, s, whole)
	if err != nil {
		return err
	}
	if changed == unexplained {
		changed = v.repairFromEvents(s, &events)
	}
	switch {
	case changed == unexplained && (follower == nil || s.no <= v.pruned):
		v.report.add(Finding{Kind: CheckpointChanged, Checkpoint: s.no, Message: "its hash does not match its contents; the changed column is unknown"})
	case changed == unexplained:
		v.report.add(Finding{Kind: CheckpointChanged, Checkpoint: s.no, Message: "its created_at, or more than one column, was changed"})
	case changed != "":
		v.report.add(Finding{Kind: CheckpointChanged, Checkpoint: s.no, Message: "its " + changed + " was changed"})
	}
	v.report.Join(events.Report)
	computed = s.hash(v.tenant)
	v.report.Head = &Head{s.no, computed}
	if s.until.Compare(v.last.until) < 0 {
		s.until = v.last.until
	}
	v.last = link{s.no, s.until, s.stored, computed[:]}
	return nil
}

// unexplained means that a wrong hash is not explained by a single column.
const unexplained = "?"

// repair finds the one column that explains why a checkpoint does not match its
// hash, and corrects it, so that its events can still be verified.
func (v *verification) repair(s *checkpoint) string {
	ends := []Position{s.from, s.until}
	count := s.events
	if leaves, ok := leavesOf(s.leaves); ok {
		ends = []Position{leaves[0].position, leaves[len(leaves)-1].position}
		count = int32(len(leaves))
	}
	return v.tryColumns(s, []column{
		{"prev_hash", func(s *checkpoint) { s.prev = v.last.stored }},
		{"checkpoint_no", func(s *checkpoint) { s.no = v.last.no + 1 }},
		{"version", func(s *checkpoint) { s.version = checkpointVersion }},
		{"from", func(s *checkpoint) { s.from = ends[0] }},
		{"until", func(s *checkpoint) { s.until = ends[1] }},
		{"events", func(s *checkpoint) { s.events = count }},
	})
}

// repairFromEvents is repair with the values of the events. If only the leaves
// were changed, the events are intact.
func (v *verification) repairFromEvents(s *checkpoint, events *coverage) string {
	changed := v.tryColumns(s, []column{
		{"oldest_at", func(s *checkpoint) { s.oldest = events.actual.oldest }},
		{"newest_at", func(s *checkpoint) { s.newest = events.actual.newest }},
		{"leaves", func(s *checkpoint) { s.leaves = events.actual.leaves }},
	})
	if changed == "leaves" {
		events.Findings, events.Omitted = nil, 0
	}
	return changed
}

// column is a column of a checkpoint and its correction.
type column struct {
	name    string
	correct func(*checkpoint)
}

// tryColumns corrects the first column whose correction makes the checkpoint
// match its hash, and returns the column's name.
func (v *verification) tryColumns(s *checkpoint, columns []column) string {
	for _, c := range columns {
		corrected := *s
		c.correct(&corrected)
		if v.fits(&corrected) {
			*s = corrected
			return c.name
		}
	}
	return unexplained
}

// fits reports whether a checkpoint matches the hash in its row.
func (v *verification) fits(s *checkpoint) bool {
	hash := s.hash(v.tenant)
	return bytes.Equal(hash[:], s.stored)
}

// follows verifies that a checkpoint follows the last one. It returns false if
// checkpoints are missing in between.
func (v *verification) follows(s *checkpoint) bool {
	switch {
	case s.no == v.last.no+2:
		v.report.add(Finding{Kind: ChainBroken, Checkpoint: s.no, Message: fmt.Sprintf("checkpoint %d before it is missing", v.last.no+1)})
		return false
	case s.no > v.last.no+2:
		v.report.add(Finding{Kind: ChainBroken, Checkpoint: s.no, Message: fmt.Sprintf("the checkpoints %d to %d before it are missing", v.last.no+1, s.no-1)})
		return false
	case !bytes.Equal(s.prev, v.last.stored) && !bytes.Equal(s.prev, v.last.computed):
		v.report.add(Finding{Kind: ChainBroken, Checkpoint: s.no, Message: "it does not follow the checkpoint before, which was replaced"})
	}
	return true
}
