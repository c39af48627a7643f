package reader

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// maxJudged limits the copies that a decision names. Each further copy that
// differs is judged when it is read.
const maxJudged = 16

// countedOf returns a digest of the header fields and the authentication that
// decisions use. The identity of a message covers its other fields and its
// text.
func countedOf(m *mail) string {
	facts := fmt.Sprintf("%s %q %#v %#v %v", signal.Header(m.message), m.values.List, decide.HeadersOf(m.message), m.authentication, m.item.Built)
	digest := sha256.Sum256([]byte(facts))
	return hex.EncodeToString(digest[:16])
}

// takeCopy judges a copy of a known message that differs from the judged
// copies. Otherwise a forged copy that arrives first would be judged instead of
// the genuine message.
func (c *chunk) takeCopy(m *mail, identity string) error {
	due, ok := c.joins[identity]
	if !ok || c.folder.Use == mailbox.UseSent || slices.Contains(due.judged, m.counted) {
		return nil
	}
	due.earlier.Touched = due.earlier.Touched || slices.Contains(c.brought, due.ID) // the owner moved another copy back
	return c.redecide(m, &due)
}

// join joins a decision with the stored one if copies of the message differ,
// because it is about one of them only.
func (d *Stored) join(with decide.Decision) decide.Decision {
	if !d.joins() {
		return with
	}
	return decide.Join(*d.Decision, with)
}

func (d *Stored) joins() bool {
	return d != nil && d.Decision != nil && (d.reason == reasonCopied || len(d.judged) > 1)
}

// narrowed reports whether a decision about a further copy wants less than the
// decision before, so that pending proposals may not be allowed by all copies.
func (d *Stored) narrowed(now decide.Decision) bool {
	return d.reason == reasonCopied && d.Decision != nil && slices.ContainsFunc(d.Decision.Wants, func(w decide.Want) bool {
		n := now.Want(w.Action)
		return n == nil || n.Confirm && !w.Confirm || w.Action == decide.Label && now.Category != d.Decision.Category
	})
}

// judgedWith returns the copies that a decision joins. A copy that is read
// again for another reason was judged before.
func judgedWith(judged []string, counted string, cause reason) []string {
	if len(judged) > 0 && cause != reasonCopied || len(judged) >= maxJudged || slices.Contains(judged, counted) {
		return judged
	}
	return append(slices.Clone(judged), counted)
}
