package audit

import (
	"bytes"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// Digests are the digests of the rows of an item, as they are after the event;
// the zero Hash means none. They let verification detect a row that was changed,
// removed or added later.
type Digests struct {
	// Args covers actions.args, in canonical form.
	Args Hash
	// Proposal covers the immutable columns of an action: the proposer, the
	// content and the limits.
	Proposal Hash
	// Decision covers the decisions of policy and of people.
	Decision Hash
	// Edits covers people's changes: approvals.edits, edited_by, editors and
	// proposed_args.
	Edits Hash
	// Vote covers a row of votes, and Attempt a row of tool_executions.
	Vote, Attempt Hash
}

// groups returns the digests in the order of their encoding.
func (d *Digests) groups() [6]*Hash {
	return [...]*Hash{&d.Args, &d.Proposal, &d.Decision, &d.Edits, &d.Vote, &d.Attempt}
}

// encodeDigests encodes the digests of the items of an event: a byte with a bit
// for each group that any item has, and for each item its digests of these
// groups. It returns nil if no item has digests.
func encodeDigests(items []Item) []byte {
	var mask byte
	for i := range items {
		for bit, h := range items[i].Digests.groups() {
			if *h != (Hash{}) {
				mask |= 1 << bit
			}
		}
	}
	if mask == 0 {
		return nil
	}
	b := append(make([]byte, 0, 1+len(items)*3*sha256.Size), mask)
	for i := range items {
		for bit, h := range items[i].Digests.groups() {
			if mask&(1<<bit) != 0 {
				b = append(b, h[:]...)
			}
		}
	}
	return b
}

// decodeDigests decodes the digests of n items. It returns false for bytes that
// encodeDigests does not write.
func decodeDigests(b []byte, n int) ([]Digests, bool) {
	all := make([]Digests, n)
	if len(b) == 0 {
		return all, true
	}
	mask, b := b[0], b[1:]
	for i := range all {
		for bit, h := range all[i].groups() {
			if mask&(1<<bit) == 0 {
				continue
			}
			if len(b) < len(h) {
				return nil, false
			}
			b = b[copy(h[:], b):]
		}
	}
	return all, len(b) == 0
}

// ActionRecord holds the columns of a row of actions that its digests cover.
// Zero values are NULL.
type ActionRecord struct {
	Tenant                                envelope.TenantID
	Action                                envelope.ActionID
	External, Session, Automation         string
	Source, Tool, ComposioApp             string
	Risk, Effect, RateBucket, Traceparent string
	ContentDigest                         []byte
	Employee, ProposedBy, Person          uuid.UUID
	Workflow                              uuid.UUID
	Bucket                                int64
	NotBefore, MustRunBefore              time.Time
	MaxAttempts                           int32
	Urgent                                bool
	// Origin is the digest of the origin in canonical form; zero for none.
	Origin Hash
	// Args is the digest of the arguments in canonical form.
	Args Hash

	Decision       uuid.UUID
	ConfigVersion  int64
	ToolDigest     []byte
	State          string
	ExpiresAt      time.Time
	DecidedAt      time.Time
	DecidedBy      string
	Note           string
	ApprovalDigest []byte
}

// Digests returns the digests of an action.
func (r *ActionRecord) Digests() Digests {
	return Digests{Args: r.Args, Proposal: r.proposal(), Decision: r.decision()}
}

func (r *ActionRecord) proposal() Hash {
	e := make(encoding, 0, usualEncoding).text("countersign proposal 1")
	e = e.tenant(r.Tenant)
	e = e.bytes(r.Action[:])
	for _, s := range [...]string{
		r.External, r.Session, r.Automation, r.Source, r.Tool, r.ComposioApp, r.Risk, r.Effect, r.RateBucket, r.Traceparent,
	} {
		e = e.text(s)
	}
	e = e.bytes(r.ContentDigest)
	for _, id := range [...]uuid.UUID{r.Employee, r.ProposedBy, r.Person, r.Workflow} {
		e = e.bytes(id[:])
	}
	e = e.number(uint64(r.Bucket))
	e = e.moment(r.NotBefore)
	e = e.moment(r.MustRunBefore)
	e = e.number(uint64(r.MaxAttempts))
	e = e.flag(r.Urgent)
	e = e.bytes(r.Origin[:])
	return e.sum()
}

func (r *ActionRecord) decision() Hash {
	e := make(encoding, 0, usualEncoding).text("countersign decision 1")
	e = e.tenant(r.Tenant)
	e = e.bytes(r.Action[:])
	e = e.bytes(r.Decision[:])
	e = e.number(uint64(r.ConfigVersion))
	e = e.bytes(r.ToolDigest)
	e = e.text(r.State)
	e = e.moment(r.ExpiresAt)
	e = e.moment(r.DecidedAt)
	e = e.text(r.DecidedBy)
	e = e.text(r.Note)
	e = e.bytes(r.ApprovalDigest)
	return e.sum()
}

// AttemptRecord holds the columns of a row of tool_executions that its digest
// covers: all of them. Zero values are NULL.
type AttemptRecord struct {
	Tenant                envelope.TenantID
	Action                envelope.ActionID
	Attempt               int
	Status, Code, Message string
	Result                []byte
	ProviderID, Worker    string
	StartedAt, FinishedAt time.Time
}

// Digest returns the digest of an attempt.
func (r *AttemptRecord) Digest() Hash {
	e := make(encoding, 0, usualEncoding).text("countersign attempt 1")
	e = e.tenant(r.Tenant)
	e = e.bytes(r.Action[:])
	e = e.number(uint64(r.Attempt))
	e = e.text(r.Status)
	e = e.text(r.Code)
	e = e.text(r.Message)
	e = e.bytes(r.Result)
	e = e.text(r.ProviderID)
	e = e.text(r.Worker)
	e = e.moment(r.StartedAt)
	e = e.moment(r.FinishedAt)
	return e.sum()
}

// DecisionID returns the id of a policy decision: the first half of a digest of
// its columns. Since actions name the decision by this id and their digests
// cover the id, a decision cannot be changed undetected.
func DecisionID(mode, source string, trace []byte) uuid.UUID {
	e := make(encoding, 0, usualEncoding).text("countersign policy 1")
	e = e.text(mode)
	e = e.text(source)
	steps := CanonicalHash(trace)
	e = e.bytes(steps[:])
	sum := e.sum()
	return uuid.UUID(sum[:16])
}

// CanonicalHash returns the hash of a JSON value in canonical form, so that it
// is the same before and after storage as jsonb. The result is the zero Hash if
// there is no value, or if Countersign does not accept its form.
func CanonicalHash(value []byte) Hash {
	if len(value) == 0 {
		return Hash{}
	}
	canonical, err := envelope.Canonical(value)
	if err != nil {
		return sha256.Sum256(append([]byte("not canonical: "), bytes.TrimSpace(value)...))
	}
	return sha256.Sum256(canonical)
}

// moment encodes an optional time.
func (e encoding) moment(t time.Time) encoding {
	if t.IsZero() {
		return e.bytes(nil)
	}
	return e.time(t)
}

func (e encoding) flag(b bool) encoding {
	if b {
		return e.number(1)
	}
	return e.number(0)
}
