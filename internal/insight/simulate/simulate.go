// Package simulate tries a changed policy on past actions. It reads the actions
// of a time range in pages, and compares the original decision about each with
// those of the current and the changed policy. It reads in sets and decides
// without a transaction. It stores nothing, and skips actions whose tool no
// longer exists.
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

// MaxPage is the maximum number of envelopes that a page examines.
const MaxPage = 2000

// Request selects a page of a range of past actions.
type Request struct {
	// From and To bound the time of proposal: at or after From, and before To.
	From, To time.Time
	// Tool is a pattern in the syntax of policy.ParsePattern.
	Tool policy.Key
	// Before is the envelope before which the page begins; the zero id means the
	// latest.
	Before envelope.ActionID
	// Limit is the number of envelopes that the page examines, 1 to MaxPage,
	// including those of other tools.
	Limit int
	// Overrides are changed risks and effect classes of tools for the changed
	// policy; empty fields keep the current value.
	Overrides map[policy.Key]catalog.Overrides
}

// Page is a page of past envelopes as input of policy.
type Page struct {
	// Snapshot is the current catalog and policy.
	Snapshot *settings.Settings

	past     []past
	examined int
	// next is the cursor of the next page; nil at the end.
	next *envelope.ActionID
}

// past is an envelope and its original decision.
type past struct {
	action envelope.ActionID
	at     time.Time
	key    policy.Key
	then   wire.SimulatedDecision
	// tool is nil if it was deleted.
	tool     *catalog.Tool
	proposed settings.Proposal
	// asked is the stored risk of the envelope.
	asked envelope.Risk
	// overridden and changed are the tool and the proposal with the overrides of
	// the request.
	overridden *catalog.Tool
	changed    settings.Proposal
	// examined is the number of envelopes examined up to this one.
	examined int
}

// Report is the comparison of a page, without its cursor.
type Report struct {
	wire.SimulationPage

	// Next is the cursor of the next page; nil at the end.
	Next *envelope.ActionID `json:"-"`
}

// Passed are the past envelopes of a page that a grant would have allowed, the
// latest first.
type Passed struct {
	// Examined is the number of envelopes read, and Compared that of envelopes
	// of the tool. Complete reports whether the whole range was read.
	Examined, Compared int
	Complete           bool
	Calls              []Call
}

// Call is a past envelope with its proposed arguments.
type Call struct {
	Action envelope.ActionID
	At     time.Time
	Args   json.RawMessage
}

// Matched are the past envelopes of a page that a rule covers, by the result of
// its expression, each latest first.
type Matched struct {
	// Examined is the number of envelopes read, and Compared that of covered ones.
	// Complete reports whether the whole range was read.
	Examined, Compared  int
	Complete            bool
	True, False, Failed []envelope.ActionID
	// Reasons are the different reasons of the failures.
	Reasons []policy.Failure
}
