// Package source owns the contract of calling tools: the interface of a source,
// the contents of a call, and the outcomes of an attempt. It is independent of
// the database, policy, and retries over time: it describes one attempt, and
// other packages decide when to make the next one.
//
// Adapters are in the packages below this one and do not import each other. They
// report an Observation, and Classify returns the kind of the outcome, so that
// the rule "unknown is never retried blindly" is written once.
package source

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Source is an origin of tools: an MCP server, a REST gateway, the built-in
// tools. A Source is safe for concurrent use.
type Source interface {
	// List returns all current tools of the source. It is bounded in time by the
	// source's own limit and by ctx.
	List(ctx context.Context) ([]Tool, error)
	// Execute makes one attempt at a call and returns its outcome. It never
	// retries a call that may have reached the other side.
	Execute(ctx context.Context, call Call) Outcome
	// Close cancels running calls and releases the resources of the source. It
	// may be called more than once. Later calls are not executed and end in
	// KindRetry.
	Close() error
}

// SkipsLines is implemented by sources that skip invalid output lines.
type SkipsLines interface {
	// SkippedLines returns the number of lines skipped since the source was
	// opened.
	SkippedLines() int
}

// SkippedLines returns the number of lines that a source skipped; 0 if it does
// not implement SkipsLines.
func SkippedLines(src Source) int {
	for {
		if skips, ok := src.(SkipsLines); ok {
			return skips.SkippedLines()
		}
		wrapper, ok := src.(interface{ Unwrap() Source })
		if !ok {
			return 0
		}
		src = wrapper.Unwrap()
	}
}

// Tool is the definition of one tool by its source.
type Tool struct {
	Name        string
	Title       string
	Description string
	// InputSchema and OutputSchema are JSON Schemas. OutputSchema is nil if the
	// source declares none.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Hints        Hints
	// Effect is the effect class, if the adapter can determine it; empty if
	// there are only claims of the source.
	Effect envelope.Effect
	// Reversal is the reversing call, if the adapter can determine it; else nil.
	// Claims of the source never set it.
	Reversal *Reversal
	// Unusable is the reason, in Countersign's words, why a listed tool cannot
	// be called; empty if it can. The catalog omits unusable tools and counts
	// them.
	Unusable string
}

// Reversal is a call of another tool of the same source that reverts a call.
type Reversal struct {
	// Tool is the name of the reversing tool.
	Tool string
	// Args are its arguments, a JSON object with references to the inputs
	// ($inputs/path) and the outputs ($outputs/path) of the reverted call.
	Args json.RawMessage
}

// Hints are a source's claims about a tool, in MCP's terms. No check may be
// relaxed because of a claim. A nil pointer means no claim.
type Hints struct {
	ReadOnly    bool
	Idempotent  bool
	Destructive *bool
	OpenWorld   *bool
	// Given is set if the source gave hints at all, so that missing ones have
	// MCP's default. It is neither stored nor compared.
	Given bool `json:"-"`
}

// Call is one attempt at executing an envelope.
type Call struct {
	// Key is the idempotency key: the same for every attempt of one envelope.
	Key string
	// Repeat counts how often a person has the same message sent again, under the
	// key of its first delivery; 0 for the first.
	Repeat int
	// Tool is the name of the tool at the source.
	Tool string
	// Args is a JSON object; empty means {}.
	Args json.RawMessage
	// Effect is the tool's effect class. An unknown one is treated as
	// envelope.EffectOnce.
	Effect envelope.Effect
	// Attempt is the number of the attempt, from 1.
	Attempt int
	// Unsure is set if an earlier attempt may have had its effect: it was sent
	// and got no usable answer, or its worker died.
	Unsure bool
	// Timeout bounds the time without an answer or progress; 0 means the default
	// of the source. No call takes longer than MaxTimeout.
	Timeout time.Duration
}

// MaxTimeout is the upper bound of every call.
const MaxTimeout = time.Hour

// Kind is the kind of an attempt's outcome.
type Kind string

// The kinds.
const (
	// KindDone means that the tool ran and answered.
	KindDone Kind = "done"
	// KindConflict means that the effect exists already.
	KindConflict Kind = "conflict"
	// KindRefused means that the same call will fail again.
	KindRefused Kind = "refused"
	// KindRetry means that another attempt is safe.
	KindRetry Kind = "retry"
	// KindUnknown means that the effect may or may not have happened, and that
	// another attempt could double it.
	KindUnknown Kind = "unknown"
)

// Outcome is the outcome of one attempt.
type Outcome struct {
	Kind Kind
	// Result is the JSON of the tool's answer; nil if none arrived. It is
	// untrusted and may contain any data.
	Result json.RawMessage
	// ProviderID is the source's id of the created object, if any.
	ProviderID string
	// Code is one of the Code constants, for operators and metrics; empty if
	// there is nothing to report.
	Code string
	// Message is one line of at most MaxMessageBytes that is safe to store: no
	// payload, no secret, no text from the source.
	Message string
	// Unsure is set if the call may have had its effect: the request was sent
	// and no usable answer arrived. It is used with KindRetry, if another
	// attempt is safe for other reasons.
	Unsure bool
	// RetryAfter is the minimum wait before another attempt; 0 if the source
	// requested none.
	RetryAfter time.Duration
	// Deferred is set if the call was not sent, for a reason that does not count
	// as an attempt, such as an open circuit breaker.
	Deferred bool
	// ToolHeld is set, with Deferred, if the reason concerns only the tool:
	// other tools of the source may be called.
	ToolHeld bool
	// Return is the later call that ends the effect of this one; else nil.
	Return *Return
}

// Return is a call of another tool of the same source that ends the temporary
// effect of a call, at a time that the arguments of that call name. It is part of
// the call: the approval of one is that of the other. Only adapters of
// Countersign make one.
type Return struct {
	Tool string
	Args json.RawMessage
	At   time.Time
}

// MaxMessageBytes bounds Outcome.Message.
const MaxMessageBytes = 300
