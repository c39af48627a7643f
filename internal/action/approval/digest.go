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

// digestScheme is the first byte of a digest. A later scheme uses another
// value, so that digests of different schemes never match.
const digestScheme = 2

// Digest identifies an approved version of an action: digests of the arguments
// and of the tool with its source's address, the source's credentials, the policy
// decision, and the number of people required. It is neither secret nor signed:
// it binds an approval within the database, and a login that can write one of the
// two can write the other.
type Digest struct {
	// Args is the digest of the arguments in their canonical form.
	Args envelope.Digest
	// Decision identifies the policy decision by its content.
	Decision uuid.UUID
	// Needed is the number of people required.
	Needed int
	// Alone reports whether one person sufficed, whatever the review rules require
	// (ApproveAlone).
	Alone bool
	// Generation names the credentials of the source.
	Generation uuid.UUID
	// Tool is the tool's binding.
	ToolDigest []byte
}

// ComputeDigest returns the digest of the current version of an action, and the
// decision that it contains. Approve and the worker both compute it from the
// same input: checks that apply to the proposal alone are left out.
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

// aloneBit marks the number of people in a stored digest that is Alone. The number
// is at most settings.MaxApprovals.
const aloneBit = 0x80

const digestHeadSize = 1 + sha256.Size + 2*len(uuid.UUID{}) + 1

// Bytes returns the digest as it is stored.
func (s Digest) Bytes() []byte {
	b := make([]byte, 0, digestHeadSize+len(s.ToolDigest))
	b = append(b, digestScheme)
	b = append(b, s.Args[:]...)
	b = append(b, s.Decision[:]...)
	needed := byte(s.Needed) // at most settings.MaxApprovals
	if s.Alone {
		needed |= aloneBit
	}
	b = append(b, needed)
	b = append(b, s.Generation[:]...)
	return append(b, s.ToolDigest...)
}

// ParseDigest parses the output of Bytes. It returns false if the scheme is
// unknown.
func ParseDigest(b []byte) (Digest, bool) {
	if len(b) < digestHeadSize || b[0] != digestScheme {
		return Digest{}, false
	}
	rest := b[1:]
	s := Digest{Args: envelope.Digest(rest[:sha256.Size])}
	rest = rest[sha256.Size:]
	s.Decision = uuid.UUID(rest[:len(s.Decision)])
	rest = rest[len(s.Decision):]
	s.Needed, s.Alone, rest = int(rest[0]&^aloneBit), rest[0]&aloneBit != 0, rest[1:]
	s.Generation, s.ToolDigest = uuid.UUID(rest[:len(s.Generation)]), bytes.Clone(rest[len(s.Generation):])
	return s, true
}

// ETag identifies the version of a pending envelope that a person sees: its
// arguments, tool, policy decision and round of votes. A decision sent with
// the ETag applies to that version only.
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
