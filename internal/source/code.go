package source

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The values of Outcome.Code. They are stable: operators alert on them and
// metrics carry them as labels.
const (
	// CodeBreakerOpen means that the source's circuit breaker is open.
	CodeBreakerOpen = "breaker_open"
	// CodeCancelled means that the caller gave up.
	CodeCancelled = "cancelled"
	// CodeChanged means that what the call is about was changed by someone else.
	CodeChanged = "changed_since"
	// CodeClosed means that the source was closed.
	CodeClosed = "closed"
	// CodeConflict means that the effect exists already.
	CodeConflict = "conflict"
	// CodeGone means that the receiver wants no more messages, for good.
	CodeGone = "gone"
	// CodeInputRequired means that the tool asked a question back, which an
	// unattended worker cannot answer.
	CodeInputRequired = "input_required"
	// CodeInvalidArgs means that the arguments do not fit the tool.
	CodeInvalidArgs = "invalid_args"
	// CodeLost means that the connection, or the process behind it, went away
	// after the request was sent.
	CodeLost = "lost"
	// CodeMalformed means that the answer could not be read.
	CodeMalformed = "malformed"
	// CodeNegotiation means that no session could be agreed on.
	CodeNegotiation = "negotiation"
	// CodeNotFound means that the source does not know what the call names.
	CodeNotFound = "not_found"
	// CodeOversized means that the answer was larger than allowed.
	CodeOversized = "oversized"
	// CodeRateLimited means that the source limits the rate of calls.
	CodeRateLimited = "rate_limited"
	// CodeRedirected means that the source redirected to another address, which
	// the call did not follow.
	CodeRedirected = "redirected"
	// CodeRejected means that the source refused the request as it is.
	CodeRejected = "rejected"
	// CodeServerError means that the source answered with a 5xx.
	CodeServerError = "server_error"
	// CodeTimeout means that no answer came in time.
	CodeTimeout = "timeout"
	// CodeToolError means that the tool itself reports that it failed.
	CodeToolError = "tool_error"
	// CodeUnauthorized means that the source did not accept the credentials.
	CodeUnauthorized = "unauthorized"
	// CodeUnsupported means that the source cannot do what the call asks.
	CodeUnsupported = "unsupported"
	// CodeUnknownTool means that the source has no tool of that name.
	CodeUnknownTool = "unknown_tool"
	// CodeUnreachable means that no connection could be made.
	CodeUnreachable = "unreachable"
)

// StatusCode returns the code for an HTTP status, "" for success.
func StatusCode(status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return CodeUnauthorized
	case status == http.StatusNotFound || status == http.StatusGone:
		return CodeNotFound
	case status == http.StatusConflict:
		return CodeConflict
	case status == http.StatusTooManyRequests:
		return CodeRateLimited
	case status >= 500:
		return CodeServerError
	case status >= 300:
		return CodeRejected
	}
	return ""
}

// SourceFailed reports whether an outcome counts as a failure of the source
// for its circuit breaker: the source was unreachable, answered 5xx or nothing
// readable, timed out, or was lost.
func (o Outcome) SourceFailed() bool {
	switch o.Code {
	case CodeLost, CodeMalformed, CodeNegotiation, CodeServerError, CodeTimeout, CodeUnreachable:
		return true
	}
	return false
}

// MaxRetryAfter bounds what RetryAfter returns, so that a source cannot hold
// an envelope for good.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter reads the value of a Retry-After header, which is a number of
// seconds or an HTTP date. It returns 0 for one that is missing, malformed or
// in the past, and at most MaxRetryAfter.
func RetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, MaxRetryAfter)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), MaxRetryAfter)
}
