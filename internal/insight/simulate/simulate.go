// Package simulate tries a changed policy on past actions: it reads the actions
// of a time range in pages, and compares the decision of then about each with
// those of the current and the changed policy. It reads in sets and decides
// without a transaction. It stores nothing, and leaves out actions whose tool
// does not exist any more.
package simulate

import (
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MaxPage is the most envelopes that a page examines.
const MaxPage = 2000

// Request is a page of a range of past actions.
type Request struct {
	// From and To bound when an envelope was proposed: at or after From, and
	// before To.
	From, To time.Time
	// Tool is a pattern that ParsePattern of policy reads.
	Tool policy.Key
	// Before is the envelope below which the page begins; the zero id is at the
	// latest one.
	Before envelope.ActionID
	// Limit is how many envelopes the page examines, 1 to MaxPage, including
	// those of other tools.
	Limit int
	// Overrides are risks and effect classes of tools that the changed policy
	// is tried with; empty fields stay as they are.
	Overrides map[policy.Key]catalog.Overrides
}

// Page is a page of past envelopes, in the form in which policy decides.
type Page struct {
	// Snapshot is the catalog and the policy of now.
	Snapshot *settings.Settings

	past     []past
	examined int
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
	// asked is the risk of the envelope as it is stored.
	asked envelope.Risk
	// overridden and changed are the tool and the proposal with the overrides
	// of the request.
	overridden *catalog.Tool
	changed    settings.Proposal
	// examined is how many envelopes the page went through up to this one.
	examined int
}

// Report is the comparison of a page, without its cursor.
type Report struct {
	wire.SimulationPage

	// Next is the envelope below which there is more; nil at the end.
	Next *envelope.ActionID `json:"-"`
}

// Passed are the past envelopes of a page that a grant would have let through,
// the latest first.
type Passed struct {
	// Examined is how many envelopes were read, and Compared how many of them were
	// of the tool. Complete reports whether that was the whole range.
	Examined, Compared int
	Complete           bool
	Calls              []Call
}

// Call is a past envelope with the arguments that were proposed.
type Call struct {
	Action envelope.ActionID
	At     time.Time
	Args   json.RawMessage
}
