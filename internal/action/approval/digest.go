package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// digestScheme is the first byte of a digest. A later scheme takes another, so
// that an approval from before it is not taken for one of something else.
const digestScheme = 2

// Digest is what people approved: digests of the arguments and of the tool with
// the address of its source, the credentials it is called with, what policy said,
// and how many people it took. It is not secret
// and not signed: it binds an approval within the database, where whoever can
// write one can write the other.
type Digest struct {
	// Args is the digest of the arguments in their canonical form.
	Args envelope.Digest
	// Decision names what policy said, by its content.
	Decision uuid.UUID
	// Needed is how many people had to agree.
	Needed int
	// Generation names the credentials of the source.
	Generation uuid.UUID
	// Tool is the tool's binding.
	ToolDigest []byte
}

// ComputeDigest returns the digest of an action as it is now, with the decision
// in it. Approving and sending both compute it, so that it differs only if
// something else differs: what applies to the proposal alone is left out.
func ComputeDigest(a *decision.Action) (Digest, policy.Decision, error) {
	args, err := envelope.Canonical(a.Args)
	if err != nil {
		return Digest{}, policy.Decision{}, err
	}
	d := a.Recheck()
	src, _ := a.Settings.Source(a.Tool.Key.Source)
	return Digest{
		Args: envelope.DigestOf(args), Decision: d.ID, Needed: a.Settings.Review(a.Tool, a.Risk).Approvals, Generation: src.Generation, ToolDigest: a.Tool.Binding,
	}, d, nil
}

const digestHeadSize = 1 + sha256.Size + 2*len(uuid.UUID{}) + 1

// Bytes returns the digest as it is stored.
func (s Digest) Bytes() []byte {
	b := make([]byte, 0, digestHeadSize+len(s.ToolDigest))
	b = append(b, digestScheme)
	b = append(b, s.Args[:]...)
	b = append(b, s.Decision[:]...)
	b = append(b, byte(s.Needed)) // at most settings.MaxApprovals
	b = append(b, s.Generation[:]...)
	return append(b, s.ToolDigest...)
}

// ParseDigest reads what Bytes wrote. It reports false for a digest of a
// scheme that this version does not know.
func ParseDigest(b []byte) (Digest, bool) {
	if len(b) < digestHeadSize || b[0] != digestScheme {
		return Digest{}, false
	}
	rest := b[1:]
	s := Digest{Args: envelope.Digest(rest[:sha256.Size])}
	rest = rest[sha256.Size:]
	s.Decision = uuid.UUID(rest[:len(s.Decision)])
	rest = rest[len(s.Decision):]
	s.Needed, rest = int(rest[0]), rest[1:]
	s.Generation, s.ToolDigest = uuid.UUID(rest[:len(s.Generation)]), bytes.Clone(rest[len(s.Generation):])
	return s, true
}

// ETag names what somebody sees of an envelope that waits for a decision: its
// arguments, its tool, what policy said, and the round of votes. Whoever sends
// it along with a decision decides about nothing else.
func ETag(v outbox.View) string {
	return etag(v.Envelope.Args, v.ToolDigest, v.DecisionID, v.Review.Round)
}

func etag(args, tool []byte, decision uuid.UUID, round int) string {
	canonical, err := envelope.Canonical(args)
	if err != nil {
		canonical = args // as stored: it is the same text each time
	}
	h := sha256.New()
	for _, part := range [][]byte{canonical, tool, decision[:], binary.BigEndian.AppendUint64(nil, uint64(max(round, 1)))} { // not negative
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}
