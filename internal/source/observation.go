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

// Observation is an adapter's observation of one attempt. Adapters fill it in
// from status codes, typed errors and reports of the transport, never from the
// text of a message.
type Observation struct {
	// Written is set if bytes of the request were or may have been sent. A
	// partly written request counts as written.
	Written bool
	// Answered is set if a final, readable answer arrived.
	Answered bool
	// Status is the HTTP status, or 0. It may come from the setup of the
	// connection.
	Status int
	// ToolError is set if the answer is a failure reported by the tool, or by
	// the server in its place.
	ToolError bool
	// Conflict is set if the source reports that the effect exists already.
	Conflict bool
	// Permanent is set if the call was not executed and can never succeed: bad
	// arguments, an unknown tool, no permission.
	Permanent bool
	// RetryAfter is the wait that the source requested; 0 if none.
	RetryAfter time.Duration
	// Held is set if the adapter did not send the call, because others were
	// before it. It does not count as an attempt.
	Held bool

	// Code is one of the Code constants; empty if there is nothing to report.
	Code string
	// Message describes the attempt in Countersign's words; empty means the
	// description of Code. It must not contain text from the source.
	Message string
	// Result and ProviderID are those of the source's answer.
	Result     json.RawMessage
	ProviderID string
	// Return is the later call that ends the effect of this one; else nil.
	Return *Return
}

// Refuse returns the observation of a call that was not sent and can never be
// sent.
func Refuse(code, message string) Observation {
	return Observation{Permanent: true, Code: code, Message: message}
}

// Forbidden returns the observation of a call to a forbidden address.
func Forbidden() Observation {
	return Refuse(CodeRejected, "the source's address is not public; COUNTERSIGN_SOURCE_NETWORKS of the workers can allow its network")
}

// Malformed returns o with an unreadable answer. The status of a failed request
// still counts.
func (o Observation) Malformed() Observation {
	o.Answered = false
	if StatusCode(o.Status) == "" && o.Code == "" {
		o.Code = CodeMalformed
	}
	return o
}

// ToolFailed returns o with an answer in which the tool reports a failure.
func (o Observation) ToolFailed() Observation {
	o.Answered, o.ToolError, o.Code = true, true, CodeToolError
	return o
}

// Permanently returns o with a call that was not executed and can never succeed.
func (o Observation) Permanently(code string) Observation {
	o.Permanent, o.Code = true, code
	return o
}

// AlreadyDone returns o with an effect that existed before the call.
func (o Observation) AlreadyDone() Observation {
	o.Conflict, o.Code = true, CodeConflict
	return o
}

// NotExecuted returns o with a call that was certainly not executed and may be
// sent again.
func (o Observation) NotExecuted(code string) Observation {
	return Observation{RetryAfter: o.RetryAfter, Code: code, Message: o.Message, Result: o.Result, ProviderID: o.ProviderID}
}

// Unanswered returns o with a call that may or may not have been executed.
func (o Observation) Unanswered(code string) Observation {
	o = o.NotExecuted(code)
	o.Written = true
	return o
}

// Classify returns the kind of outcome for an observation of a call of an effect
// class. No other code decides this.
//
// A definite response comes first: a conflict, try later, refused. A failure
// that the tool or its server reports is an answer, which another attempt would
// get again; so is an answer that is too large, whose contents are unknown. A
// call that was not written was certainly not executed. All remaining calls were
// sent and have no usable answer; only the effect class decides whether they may
// be repeated.
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

// Outcome returns the outcome of a call of an effect class to the named source.
// If it would be unknown for class once, an outcome that may be repeated is
// unsure.
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
		Return:     o.Return,
	}
}

// descriptions describe codes in Countersign's words. A description that ends in
// a space continues with the phase of the call.
var descriptions = map[string]string{
	CodeCancelled:        "the caller gave up ",
	CodeChanged:          "the object of the call was changed by someone else",
	CodeClosed:           "the source was closed ",
	CodeConflict:         "the effect exists already",
	CodeInputRequired:    "the tool requires input, which a worker cannot give",
	CodeInvalidArgs:      "the arguments do not fit the tool",
	CodeLoginLost:        "the login of the source is lost; log in again",
	CodeLoginUnavailable: "the token of the source's login cannot be renewed now",
	CodeLost:             "the connection was lost ",
	CodeMalformed:        "the answer is not valid",
	CodeNegotiation:      "no session could be negotiated",
	CodeNotFound:         "the source does not know what the call names",
	CodeOversized:        "the answer is larger than allowed",
	CodeRateLimited:      "the source limits the rate of calls",
	CodeRedirected:       "the source redirects to another address",
	CodeRejected:         "the source refuses this call",
	CodeServerError:      "the source reports a failure of its own",
	CodeThirdParty:       "another server that the call leads to did not confirm",
	CodeTimeout:          "the time limit was reached ",
	CodeToolError:        "the tool reports that it failed",
	CodeUnauthorized:     "the source does not accept the credentials for this call",
	CodeUnsupported:      "the source cannot do what the call asks",
	CodeUnknownTool:      "the source has no tool of this name",
}

// describe returns a description of o in Countersign's words.
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

// ListError describes a failed listing in Countersign's words.
type ListError struct{ Text string }

// Error implements error.
func (e *ListError) Error() string { return e.Text }

// ListError returns the reason why an observation is not a page of a listing.
func (o Observation) ListError() error {
	if o.Answered {
		o = o.Malformed()
	}
	return &ListError{Text: o.describe()}
}

// tryLater reports whether a status means that the request was not processed and
// may be sent again later.
func tryLater(status int) bool {
	return status == http.StatusTooManyRequests ||
		status == http.StatusRequestTimeout ||
		status == http.StatusTooEarly
}

// repeatable reports whether a call of this class may be sent again while its
// effect is unknown.
func repeatable(effect envelope.Effect) bool {
	switch effect {
	case envelope.EffectRead, envelope.EffectIdempotent, envelope.EffectKeyed:
		return true
	case envelope.EffectOnce:
		return false
	}
	return false
}

// oneLine truncates a message to its first line and to MaxMessageBytes, at a
// rune.
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
