// Package simulate tries a policy on the past before it holds: it takes the
// envelopes of some time, a page at a time, and compares what was decided
// about each then with what the policy of now and a changed one would decide.
// It reads in sets and judges without a transaction. It refuses to store
// anything, and to guess: a tool that is gone has no decision.
package simulate

import (
	"time"

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
	then   Decided
	// tool is nil if it is gone.
	tool     *catalog.Tool
	proposed settings.Proposal
	// looked is how many envelopes the page went through up to this one.
	looked int
}

// Decided is what a decision came to.
type Decided struct {
	Mode envelope.Mode `json:"mode"`
	// Source is the layer that set the mode, and those that changed it.
	Source string `json:"source"`
}

// Report is what a page came to.
type Report struct {
	// Version is that of the tenant's configuration: another one on the next
	// page means that the policy of now has changed meanwhile.
	Version int64 `json:"config_version"`
	// Looked is how many envelopes were gone through, Compared how many of them
	// were decided about again, and Gone how many were left out because their
	// tool is no more.
	Examined    int `json:"examined"`
	Compared    int `json:"compared"`
	WithoutTool int `json:"without_tool"`
	// Counts has a line for each way that the decisions about a tool came out,
	// in order of tool and modes.
	Counts []Count `json:"counts"`
	// Differences are the envelopes about which not all three say the same, the
	// latest first.
	Differences []Difference `json:"differences"`
	// Next is the envelope below which there is more; nil at the end.
	Next *envelope.ActionID `json:"-"`
}

// Count is how many envelopes of a tool were decided about in one way.
type Count struct {
	Key     string        `json:"tool"`
	Then    envelope.Mode `json:"then"`
	Now     envelope.Mode `json:"now"`
	Changed envelope.Mode `json:"changed"`
	Count   int           `json:"count"`
}

// Difference is an envelope that comes out otherwise.
type Difference struct {
	Action     envelope.ActionID `json:"action_id"`
	ProposedAt time.Time         `json:"proposed_at"`
	Key        string            `json:"tool"`
	Then       Decided           `json:"then"`
	Now        Decided           `json:"now"`
	Changed    Decided           `json:"changed"`
	// Because are the layers whose word makes the difference between Now and
	// Would; none if those have the same mode.
	Causes []Cause `json:"causes"`
}

// Cause is what one layer says by the policy of now and by the changed one;
// empty for nothing.
type Cause struct {
	Layer   string        `json:"layer"`
	Rule    string        `json:"rule,omitzero"`
	Key     string        `json:"tool,omitzero"`
	Now     envelope.Mode `json:"now,omitzero"`
	Changed envelope.Mode `json:"changed,omitzero"`
	// Detail says why, in words that hold nothing of the arguments.
	Detail string `json:"detail,omitzero"`
}
