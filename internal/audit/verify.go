package audit

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// FindingKind is what is wrong with a place of the log.
type FindingKind string

// The kinds of finding.
const (
	// Changed: an event is not what was sealed.
	Changed FindingKind = "changed"
	// Missing: an event that was sealed is not there.
	Missing FindingKind = "missing"
	// Added: an event stands where everything had been sealed.
	Added FindingKind = "added"
	// ChainBroken: a seal does not follow the one before, or a head that was
	// noted is in no seal.
	ChainBroken FindingKind = "chain_broken"
	// SealChanged: a seal is not what its hash says.
	SealChanged FindingKind = "seal_changed"
)

// Finding is one thing that is wrong, and where.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// Seal is the seal that is wrong, or covers the place; zero for none.
	Seal int64 `json:"seal_no,omitzero"`
	// Place and Event say which event; they are empty where it is none.
	Place string `json:"place,omitzero"`
	Event int64  `json:"event_id,omitzero"`
	// At is the time that the event bears now, if it is there.
	At time.Time `json:"at,omitzero"`
	// What says it in words.
	What string `json:"what"`
}

// maxFindings bounds the findings of a report.
const maxFindings = 1000

// Report is what a verification found.
type Report struct {
	// Findings are in the order of the chain, at most 1000; Omitted counts
	// the others.
	Findings []Finding `json:"findings"`
	Omitted  int64     `json:"findings_omitted"`
	// Seals is how many were looked at; Sealed and Pruned how many events they
	// cover that should be there, and that retention deleted.
	Seals  int64 `json:"seals"`
	Sealed int64 `json:"sealed"`
	Pruned int64 `json:"pruned"`
	// Unsealed is how many events no seal covers yet, counted up to 100,000,
	// and UnsealedSince the time of the oldest.
	Unsealed      int64     `json:"unsealed"`
	UnsealedSince time.Time `json:"unsealed_since,omitzero"`
	// Head is the last seal that was looked at; nil for none. Its hash is
	// that of its contents.
	Head *Head `json:"head"`
	// Next is the seal to go on behind; zero when the chain was looked at to
	// its end.
	Next int64 `json:"next_after,omitzero"`
}

// Intact says that nothing was found to be wrong.
func (r *Report) Intact() bool { return len(r.Findings) == 0 }

// Join adds what was found behind r.Next.
func (r *Report) Join(rest Report) {
	r.add(rest.Findings...)
	r.Omitted += rest.Omitted
	r.Seals += rest.Seals
	r.Sealed += rest.Sealed
	r.Pruned += rest.Pruned
	r.Unsealed, r.UnsealedSince, r.Next = rest.Unsealed, rest.UnsealedSince, rest.Next
	if rest.Head != nil {
		r.Head = rest.Head
	}
}

// add keeps findings while there is room.
func (r *Report) add(found ...Finding) {
	kept := min(len(found), maxFindings-len(r.Findings))
	r.Findings = append(r.Findings, found[:kept]...)
	r.Omitted += int64(len(found) - kept)
}

// Options say which part of a chain is verified. The zero value is all of it.
type Options struct {
	// After is the seal to begin behind; it and what is before is taken as it
	// is. One that is not there is fault.NotFound. Zero is the beginning.
	After int64
	// Until is the seal to end with; zero is the last.
	Until int64
	// Most is about how many events are looked at; zero is all.
	Most int64
	// Noted is the hash of a head that was noted at some time, which the
	// chain must still hold; the zero Hash is none.
	Noted Hash
}

// Verify compares a tenant's events with its seals, and each seal with the one
// before. It reads one seal and a few hundred events at a time, and each with
// a statement of its own, so that it holds up nothing. What happens meanwhile
// it takes for what it is, if tx is READ COMMITTED.
func Verify(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, opt Options) (Report, error) {
	v := verification{tx: tx, tenant: tenant, last: genesis(), report: Report{Findings: []Finding{}}}
	var err error
	if opt.After > 0 {
		if err = v.goTo(ctx, opt.After); err != nil {
			return Report{}, err
		}
	}
	if v.pruned, err = prunedThrough(ctx, tx, tenant); err != nil {
		return Report{}, err
	}
	err = v.run(ctx, opt)
	return v.report, err
}

// verification is a walk along a chain.
type verification struct {
	tx     pgx.Tx
	tenant envelope.TenantID
	last   link
	// pruned is the last seal whose events retention took.
	pruned int64
	report Report
}

// goTo goes on from behind a seal, which was verified before.
func (v *verification) goTo(ctx context.Context, no int64) error {
	s, ok, err := nextSeal(ctx, v.tx, v.tenant, no-1)
	if err != nil {
		return err
	}
	if !ok || s.no != no {
		return fault.New(fault.NotFound, "there is no seal %d", no)
	}
	computed := s.hash(v.tenant)
	if !v.fits(&s) {
		v.mend(&s)
	}
	v.last = link{s.no, s.until, s.stored, computed[:]}
	return nil
}

func (v *verification) run(ctx context.Context, opt Options) error {
	after, seen := opt.After, int64(0)
	s, ok, err := nextSeal(ctx, v.tx, v.tenant, after)
	for err == nil && ok {
		if opt.Until > 0 && s.no > opt.Until {
			return nil
		}
		if opt.Most > 0 && seen >= opt.Most {
			v.report.Next = after
			return nil
		}
		// By its number in the row, which is mended below.
		after = s.no
		var next seal
		if next, ok, err = nextSeal(ctx, v.tx, v.tenant, after); err == nil {
			err = v.seal(ctx, &s, next.prev)
		}
		seen += int64(s.events)
		s = next
	}
	if err != nil {
		return err
	}
	return v.end(ctx, opt.Noted)
}

// end looks at what is behind the last seal, and for a head that was noted.
func (v *verification) end(ctx context.Context, head Hash) error {
	var err error
	v.report.Unsealed, v.report.UnsealedSince, err = unsealed(ctx, v.tx, v.tenant, v.last.until)
	if err != nil || head == (Hash{}) {
		return err
	}
	no, err := noted(ctx, v.tx, v.tenant, head)
	if err == nil && no == 0 {
		v.report.add(Finding{Kind: ChainBroken, What: "the head that was noted is in no seal: the chain was rewritten, or cut off"})
	}
	return err
}

// seal verifies one seal and the events that it covers. follower is the hash
// by which the seal behind it names it; nil if there is none.
func (v *verification) seal(ctx context.Context, s *seal, follower []byte) error {
	computed := s.hash(v.tenant)
	changed := ""
	switch {
	case v.fits(s):
	case bytes.Equal(computed[:], follower):
		changed = "hash"
	default:
		changed = v.mend(s)
	}
	whole := v.follows(s)
	events, err := v.events(ctx, s, whole)
	if err != nil {
		return err
	}
	if changed == unclear {
		changed = v.mendFrom(s, &events)
	}
	switch {
	case changed == unclear && (follower == nil || s.no <= v.pruned):
		v.report.add(Finding{Kind: SealChanged, Seal: s.no, What: "its contents do not have its hash; which column was changed cannot be told"})
	case changed == unclear:
		v.report.add(Finding{Kind: SealChanged, Seal: s.no, What: "its sealed_at, or more than one column, was changed"})
	case changed != "":
		v.report.add(Finding{Kind: SealChanged, Seal: s.no, What: "its " + changed + " was changed"})
	}
	v.report.add(events.found...)
	v.report.Omitted += events.omitted
	v.report.Seals++
	v.report.Sealed += events.sealed
	v.report.Pruned += events.pruned
	computed = s.hash(v.tenant)
	v.report.Head = &Head{s.no, computed}
	if s.until.Compare(v.last.until) < 0 {
		s.until = v.last.until
	}
	v.last = link{s.no, s.until, s.stored, computed[:]}
	return nil
}

// unclear stands for what no single column explains.
const unclear = "?"

// mend finds the one column that explains why a seal does not have its hash,
// and puts it right, so that its events can still be verified.
func (v *verification) mend(s *seal) string {
	ends := []Place{s.from, s.until}
	count := s.events
	if leaves, ok := leavesOf(s.leaves); ok {
		ends = []Place{leaves[0].place, leaves[len(leaves)-1].place}
		count = int32(len(leaves))
	}
	for _, try := range []struct {
		column string
		put    func(*seal)
	}{
		{"prev_hash", func(s *seal) { s.prev = v.last.stored }},
		{"seal_no", func(s *seal) { s.no = v.last.no + 1 }},
		{"version", func(s *seal) { s.version = sealVersion }},
		{"from", func(s *seal) { s.from = ends[0] }},
		{"until", func(s *seal) { s.until = ends[1] }},
		{"events", func(s *seal) { s.events = count }},
	} {
		mended := *s
		try.put(&mended)
		if v.fits(&mended) {
			*s = mended
			return try.column
		}
	}
	return unclear
}

// mendFrom is mend with what the events themselves say. If it is the leaves
// that were changed, then nothing is wrong with the events.
func (v *verification) mendFrom(s *seal, events *covered) string {
	for _, try := range []struct {
		column string
		put    func(*seal)
	}{
		{"oldest_at", func(s *seal) { s.oldest = events.actual.oldest }},
		{"newest_at", func(s *seal) { s.newest = events.actual.newest }},
		{"leaves", func(s *seal) { s.leaves = events.actual.leaves }},
	} {
		mended := *s
		try.put(&mended)
		if v.fits(&mended) {
			*s = mended
			if try.column == "leaves" {
				events.found, events.omitted = nil, 0
			}
			return try.column
		}
	}
	return unclear
}

func (v *verification) fits(s *seal) bool {
	hash := s.hash(v.tenant)
	return bytes.Equal(hash[:], s.stored)
}

// follows verifies that a seal follows the last one. It is false if seals are
// missing in between.
func (v *verification) follows(s *seal) bool {
	switch {
	case s.no == v.last.no+2:
		v.report.add(Finding{Kind: ChainBroken, Seal: s.no, What: fmt.Sprintf("seal %d before it is missing", v.last.no+1)})
		return false
	case s.no > v.last.no+2:
		v.report.add(Finding{Kind: ChainBroken, Seal: s.no, What: fmt.Sprintf("the seals %d to %d before it are missing", v.last.no+1, s.no-1)})
		return false
	case !bytes.Equal(s.prev, v.last.stored) && !bytes.Equal(s.prev, v.last.computed):
		v.report.add(Finding{Kind: ChainBroken, Seal: s.no, What: "it does not follow the seal before, which was replaced"})
	}
	return true
}
