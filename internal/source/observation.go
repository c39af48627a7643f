package source

import (
	"encoding/json"
	"fmt"
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
	// ToolError says that the tool, or the server in its place, reports that it
	// failed, which is the answer.
	ToolError bool
	// Conflict says that the source reports that the effect exists already.
	Conflict bool
	// Permanent says that the call can never work as it is, and was not
	// executed: bad arguments, an unknown tool, no permission.
	Permanent bool
	// RetryAfter is how long the source asks to wait; 0 if it did not say.
	RetryAfter time.Duration
	// Held says that the adapter did not send the call, because others were before
	// it. It does not count as an attempt.
	Held bool

	// Code is one of the Code constants; empty when there is nothing to report.
	Code string
	// Message says in words of our own what happened; empty leaves it to Code.
	// It must hold nothing that came from the other side.
	Message string
	// Result and ProviderID are what the source answered.
	Result     json.RawMessage
	ProviderID string
}

// Refuse returns the observation of a call that was not sent and never can be.
func Refuse(code, message string) Observation {
	return Observation{Permanent: true, Code: code, Message: message}
}

// Forbidden returns the observation of a call to an address to which no
// connection may be made.
func Forbidden() Observation {
	return Refuse(CodeRejected, "the source's address is not public; COUNTERSIGN_SOURCE_NETWORKS of the workers can allow its network")
}

// Malformed returns o with an answer that cannot be read. What the status says
// of a request that failed still holds.
func (o Observation) Malformed() Observation {
	o.Answered = false
	if StatusCode(o.Status) == "" && o.Code == "" {
		o.Code = CodeMalformed
	}
	return o
}

// ToolFailed returns o with an answer in which the tool reports that it failed.
func (o Observation) ToolFailed() Observation {
	o.Answered, o.ToolError, o.Code = true, true, CodeToolError
	return o
}

// Permanently returns o with a call that was not executed and never will be.
func (o Observation) Permanently(code string) Observation {
	o.Permanent, o.Code = true, code
	return o
}

// AlreadyDone returns o with an effect that existed before the call.
func (o Observation) AlreadyDone() Observation {
	o.Conflict, o.Code = true, CodeConflict
	return o
}

// NotExecuted returns o with a call that was surely not executed and may be sent
// again.
func (o Observation) NotExecuted(code string) Observation {
	return Observation{RetryAfter: o.RetryAfter, Code: code, Message: o.Message, Result: o.Result, ProviderID: o.ProviderID}
}

// Unanswered returns o with a call of which nobody can say whether it was
// executed.
func (o Observation) Unanswered(code string) Observation {
	o = o.NotExecuted(code)
	o.Written = true
	return o
}

// Classify names the kind of outcome that an observation means for a call of
// an effect class. It is the only place that decides so.
//
// What the source said of the request comes first: a conflict, try later,
// refused. A failure that the tool or its server reports is an answer in every
// form, which another attempt would get again; so is an answer that is too
// large, after which nobody knows what it said. A call that was not written was surely not executed. What is left was
// sent and has no usable answer; whether that may be repeated depends on only
// the effect class.
func Classify(effect envelope.Effect, o Observation) Kind {
	switch {
	case o.Conflict || o.Status == http.StatusConflict:
		return KindConflict
	case tryLater(o.Status):
		return KindRetry
	case o.Permanent || o.Status >= 300 && o.Status < 500:
		return KindRefused
	case o.Status < 500 && o.Answered && o.ToolError:
		return KindRefused
	case o.Code == CodeOversized:
		if effect == envelope.EffectRead {
			return KindRefused
		}
		return KindUnknown
	case o.Status < 500 && o.Answered:
		return KindDone
	case !o.Written || repeatable(effect):
		return KindRetry
	}
	return KindUnknown
}

// Outcome returns the outcome of a call of an effect class to the source of a
// name. Where a call of class once would be unknown, one that may be repeated
// is unsure.
func (o Observation) Outcome(name string, effect envelope.Effect) Outcome {
	message := o.Message
	if message == "" && o.Code != "" {
		message = name + ": " + o.describe()
	}
	kind := Classify(effect, o)
	return Outcome{
		Kind:       kind,
		Deferred:   kind == KindRetry && o.Held,
		ToolHeld:   kind == KindRetry && o.Held,
		Unsure:     kind == KindRetry && Classify(envelope.EffectOnce, o) == KindUnknown,
		Code:       o.Code,
		Message:    oneLine(message),
		RetryAfter: o.RetryAfter,
		Result:     o.Result,
		ProviderID: o.ProviderID,
	}
}

// descriptions say in words of our own what a code means. A description that
// ends in a space goes on with when it happened.
var descriptions = map[string]string{
	CodeCancelled:     "the caller gave up ",
	CodeChanged:       "what the call is about was changed by someone else",
	CodeClosed:        "the source was closed ",
	CodeConflict:      "the effect exists already",
	CodeInputRequired: "the tool asks for input, which nobody can give",
	CodeInvalidArgs:   "the arguments do not fit the tool",
	CodeLost:          "the connection was lost ",
	CodeMalformed:     "the answer is not valid",
	CodeNegotiation:   "no session could be negotiated",
	CodeNotFound:      "the source does not know what the call names",
	CodeOversized:     "the answer is larger than allowed",
	CodeRateLimited:   "the source limits the rate of calls",
	CodeRedirected:    "the source redirects to another address",
	CodeRejected:      "the source refuses this call",
	CodeServerError:   "the source reports a failure of its own",
	CodeTimeout:       "the time limit was reached ",
	CodeToolError:     "the tool reports that it failed",
	CodeUnauthorized:  "the source does not accept the credentials for this call",
	CodeUnsupported:   "the source cannot do what the call asks",
	CodeUnknownTool:   "the source has no tool of this name",
}

// describe returns, in words of our own, what o says.
func (o Observation) describe() string {
	text, known := descriptions[o.Code]
	switch {
	case o.Status >= 300:
		return fmt.Sprintf("the source answered with status %d", o.Status)
	case !known:
		return "the source cannot be reached"
	case !strings.HasSuffix(text, " "):
		return text
	case o.Written:
		return text + "after the call was sent"
	}
	return text + "before the call was sent"
}

// ListError says in words of our own why a listing failed.
type ListError struct{ Text string }

// Error implements error.
func (e *ListError) Error() string { return e.Text }

// ListError returns why an observation is no page of a listing.
func (o Observation) ListError() error {
	if o.Answered {
		o = o.Malformed()
	}
	return &ListError{Text: o.describe()}
}

// tryLater reports whether a status says that the request was not looked at and
// may be sent again later.
func tryLater(status int) bool {
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
