// Package source owns the contract of calling tools: what a source of tools is,
// what a call carries, and how an attempt can end. It does not know the
// database, policy, or retries over time: it says what is known of one attempt,
// and other packages decide when the next one is made.
//
// Adapters are in the packages below this one and do not import each other.
// They report what they saw as an Observation, and Classify names the kind of
// the outcome, so that the rule "unknown is never retried blindly" is written
// once.
package source

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Source is one place where tools live: an MCP server, a REST gateway, the
// built-in tools. A Source is safe for concurrent use.
type Source interface {
	// List returns every tool that the source offers now. It is bounded in
	// time by the source's own limit as well as by ctx.
	List(ctx context.Context) ([]Tool, error)
	// Execute makes one attempt at a call and returns how it ended. It never
	// retries a call that may have reached the other side.
	Execute(ctx context.Context, call Call) Outcome
	// Close ends running calls and frees what the source holds. It may be
	// called more than once; calls made afterwards are not executed and end in
	// KindRetry.
	Close() error
}

// SkipsLines is implemented by sources that skip lines which are no messages.
type SkipsLines interface {
	// SkippedLines returns how many lines were skipped since the source was
	// opened.
	SkippedLines() int
}

// SkippedLines returns how many lines a source skipped; 0 for one that skips
// none.
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

// Tool is the definition of one tool as its source gives it.
type Tool struct {
	Name        string
	Title       string
	Description string
	// InputSchema and OutputSchema are JSON Schemas. OutputSchema is nil when
	// the source declares none.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Hints        Hints
	// Effect is the effect class that the adapter knows the tool to have; empty
	// where the adapter only knows what the other side claims.
	Effect envelope.Effect
	// Reversal is how the adapter says that a call is reverted; nil where it does
	// not say. Only adapters set it, never what the other side claims.
	Reversal *Reversal
	// Unusable says, in words of our own, why the source cannot call the tool,
	// although it was listed; empty for one that it can. The catalog leaves such
	// a tool out, and counts it.
	Unusable string
}

// Reversal is a call of another tool of the same source that reverts a call.
type Reversal struct {
	// Tool is the name of that tool.
	Tool string
	// Args are its arguments, a JSON object with references to what the reverted
	// call was given ($inputs/path) and what it answered ($outputs/path).
	Args json.RawMessage
}

// Hints are what a source claims about a tool, in MCP's terms. Nothing may be
// relaxed because of a claim. A nil pointer means that the source did not say.
type Hints struct {
	ReadOnly    bool
	Idempotent  bool
	Destructive *bool
	OpenWorld   *bool
	// Given says that the source gave hints at all, so that what is left out has
	// MCP's default. It is no part of what is stored and compared.
	Given bool `json:"-"`
}

// Call is one attempt at executing an envelope.
type Call struct {
	// Key is the idempotency key: the same for every attempt of one envelope.
	Key string
	// Tool is the name that the source knows the tool by.
	Tool string
	// Args is a JSON object; empty stands for {}.
	Args json.RawMessage
	// Effect is the tool's effect class. An unknown one is treated as
	// envelope.EffectOnce.
	Effect envelope.Effect
	// Attempt counts from 1.
	Attempt int
	// Unsure says that an earlier attempt may have had its effect: it was sent and
	// got no usable answer, or its worker died.
	Unsure bool
	// Timeout is how long the call may go without an answer or progress; 0 leaves it to
	// the source. No call takes longer than MaxTimeout.
	Timeout time.Duration
}

// MaxTimeout bounds every call.
const MaxTimeout = time.Hour

// Kind is the way in which one attempt ended.
type Kind string

// The kinds.
const (
	// KindDone says that the tool ran and answered.
	KindDone Kind = "done"
	// KindConflict says that the effect exists already.
	KindConflict Kind = "conflict"
	// KindRefused says that the same call will fail again.
	KindRefused Kind = "refused"
	// KindRetry says that another attempt is safe.
	KindRetry Kind = "retry"
	// KindUnknown says that the effect may or may not have happened, and that
	// another attempt could double it.
	KindUnknown Kind = "unknown"
)

// Outcome is what is known after one attempt.
type Outcome struct {
	Kind Kind
	// Result is the JSON of what the tool answered; nil when nothing came. It
	// is untrusted and may hold anything that the tool was asked for.
	Result json.RawMessage
	// ProviderID is the source's own id of what the call created, if it gave one.
	ProviderID string
	// Code is one of the Code constants, for operators and metrics; empty when
	// there is nothing to report.
	Code string
	// Message is one short line of at most MaxMessageBytes that is safe to
	// store: no payload, no secret, no text from the other side.
	Message string
	// Unsure says that the call may have had its effect: the request went out
	// and no usable answer came. It goes with KindRetry, where another attempt
	// is safe for other reasons.
	Unsure bool
	// RetryAfter says not to try again sooner; 0 when the source named no time.
	RetryAfter time.Duration
	// Deferred says that the call was not sent, for a reason that must not
	// count as an attempt, such as an open circuit breaker.
	Deferred bool
	// ToolHeld says, with Deferred, that the reason is one of the tool: other
	// tools of the source may be called.
	ToolHeld bool
}

// MaxMessageBytes bounds Outcome.Message.
const MaxMessageBytes = 300
