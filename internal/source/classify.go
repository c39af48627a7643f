package source

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/envelope"
)

// Observation is what an adapter saw of one attempt. Adapters fill it in from
// status codes, typed errors and what the transport reports, never from the
// text of a message.
type Observation struct {
	// Written says that bytes of the request went out, or may have. A request
	// that was written in part counts as written.
	Written bool
	// Answered says that a final, readable answer arrived.
	Answered bool
	// Status is the HTTP status, 0 if there was none. It may come from the
	// connection that was made for the call.
	Status int
	// ToolError says that the answer is the tool's own word that it failed.
	ToolError bool
	// Conflict says that the source reports the effect as there already.
	Conflict bool
	// Permanent says that the call can never work as it is, and was not
	// executed: bad arguments, an unknown tool, no permission.
	Permanent bool
	// RetryAfter is how long the source asked to be left alone; 0 if it did
	// not say.
	RetryAfter time.Duration
}

// Classify names the kind of outcome that an observation means for a call of
// an effect class. It is the only place that decides so.
//
// What the source said of the request comes first: there already, not now,
// never. Then a call that was not written is surely not executed. What is left
// was sent and has no usable answer; whether that may be repeated depends on
// the effect class alone.
func Classify(effect envelope.Effect, o Observation) Kind {
	switch {
	case o.Conflict || o.Status == http.StatusConflict:
		return KindConflict
	case notNow(o.Status):
		return KindRetry
	case o.Permanent || o.Status >= 300 && o.Status < 500:
		return KindRefused
	case o.Status < 500 && o.Answered && o.ToolError:
		if repeatable(effect) {
			return KindRetry
		}
		return KindRefused
	case o.Status < 500 && o.Answered:
		return KindDone
	case !o.Written || repeatable(effect):
		return KindRetry
	}
	return KindUnknown
}

// Conclude returns the outcome of an observation: its kind, and a code and a
// message to go with it. The message is cut to one line of MaxMessageBytes; it
// must hold nothing that came from the other side. Where a call of class once
// would be unknown, one that may be repeated is unsure.
func Conclude(effect envelope.Effect, o Observation, code, message string) Outcome {
	kind := Classify(effect, o)
	return Outcome{
		Kind:       kind,
		Unsure:     kind == KindRetry && Classify(envelope.EffectOnce, o) == KindUnknown,
		Code:       code,
		Message:    oneLine(message),
		RetryAfter: o.RetryAfter,
	}
}

// notNow reports whether a status says that the request was not looked at and
// is welcome later.
func notNow(status int) bool {
	return status == http.StatusTooManyRequests ||
		status == http.StatusRequestTimeout ||
		status == http.StatusTooEarly
}

// repeatable reports whether a call of this class may be sent again while it
// is not known if it took effect.
func repeatable(effect envelope.Effect) bool {
	switch effect {
	case envelope.EffectRead, envelope.EffectIdempotent, envelope.EffectKeyed:
		return true
	case envelope.EffectOnce:
		return false
	}
	return false
}

// oneLine cuts a message to its first line and to MaxMessageBytes, at a rune.
func oneLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) <= MaxMessageBytes {
		return s
	}
	end := MaxMessageBytes
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
