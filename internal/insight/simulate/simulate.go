// Package simulate tries a policy on the past before it holds: it takes the
// envelopes of some time, a page at a time, and compares what was decided
// about each then with what the policy of now and a changed one would decide.
// It reads in sets and judges without a transaction. It refuses to store
// anything, and to guess: a tool that is gone has no decision.
package simulate

import (
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MaxPage is how many envelopes a page goes through at most.
const MaxPage = 2000

// Request is a part of the past.
type Request struct {
	// From and To bound when an envelope was proposed: at or after From, and
	// before To.
	From, To time.Time
	// Tool is a pattern that ParsePattern of policy reads.
	Tool policy.Key
	// Before is the envelope below which the page begins; the zero id is at the
	// latest one.
	Before envelope.ActionID
	// Most is how many envelopes the page goes through, 1 to MaxPage, of other
	// tools among them.
	Limit int
}

// Page is some envelopes of the past, as policy looks at them.
type Page struct {
	// Snapshot is the catalog and the policy of now.
	Snapshot *settings.Settings

	past   []past
	looked int
	// next is the envelope below which there is more; nil at the end.
	next *envelope.ActionID
}

// past is an envelope and what was decided about it.
type past struct {
	action envelope.ActionID
	at     time.Time
	key    policy.Key
	then   wire.SimulatedDecision
	// tool is nil if it is gone.
	tool     *catalog.Tool
	proposed settings.Proposal
	// looked is how many envelopes the page went through up to this one.
	looked int
}

// Report is the comparison of a page, without its cursor.
type Report struct {
	wire.SimulationPage

	// Next is the envelope below which there is more; nil at the end.
	Next *envelope.ActionID `json:"-"`
}
