package source

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Values of Outcome.Code. They are stable: operators alert on them and metrics
// have them as labels.
const (
	// CodeBreakerOpen means that the source's circuit breaker is open.
	CodeBreakerOpen = "breaker_open"
	// CodeCancelled means that the caller gave up.
	CodeCancelled = "cancelled"
	// CodeChanged means that the object of the call was changed by someone else.
	CodeChanged = "changed_since"
	// CodeClosed means that the source was closed.
	CodeClosed = "closed"
	// CodeConflict means that the effect exists already.
	CodeConflict = "conflict"
	// CodeGone means that the receiver permanently rejects messages.
	CodeGone = "gone"
	// CodeInputRequired means that the tool requires further input, which a
	// worker cannot give.
	CodeInputRequired = "input_required"
	// CodeInvalidArgs means that the tool rejects the arguments.
	CodeInvalidArgs = "invalid_args"
	// CodeLoginLost means that the login of the source is lost, and the call was not
	// executed.
	CodeLoginLost = "login_lost"
	// CodeLoginUnavailable means that the token of the source's login cannot be
	// renewed now, and the call was not executed.
	CodeLoginUnavailable = "login_unavailable"
	// CodeLost means that the connection or the process ended after the request
	// was sent.
	CodeLost = "lost"
	// CodeMalformed means that the answer could not be read.
	CodeMalformed = "malformed"
	// CodeNegotiation means that no session could be established.
	CodeNegotiation = "negotiation"
	// CodeNotFound means that the source does not have the object named by the
	// call.
	CodeNotFound = "not_found"
	// CodeOversized means that the answer was larger than allowed.
	CodeOversized = "oversized"
	// CodeRateLimited means that the source limits the rate of calls.
	CodeRateLimited = "rate_limited"
	// CodeRedirected means that the source redirected to another address, which
	// was not followed.
	CodeRedirected = "redirected"
	// CodeRejected means that the source refused the request.
	CodeRejected = "rejected"
	// CodeServerError means that the source answered with a 5xx status.
	CodeServerError = "server_error"
	// CodeThirdParty means that a server that the call leads to, and that is not
	// the source's, failed or did not confirm.
	CodeThirdParty = "third_party"
	// CodeTimeout means that no answer came in time.
	CodeTimeout = "timeout"
	// CodeToolError means that the tool reports a failure.
	CodeToolError = "tool_error"
	// CodeUnauthorized means that the source rejected the credentials.
	CodeUnauthorized = "unauthorized"
	// CodeUnsupported means that the source does not support the requested
	// operation.
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

// SourceFailed reports whether an outcome counts as a failure of the source for
// its circuit breaker: the source was unreachable, timed out, was lost, or
// returned 5xx or an unreadable answer.
func (o Outcome) SourceFailed() bool {
	switch o.Code {
	case CodeLost, CodeMalformed, CodeNegotiation, CodeServerError, CodeTimeout, CodeUnreachable:
		return true
	}
	return false
}

// MaxRetryAfter bounds the result of RetryAfter, so that a source cannot delay
// an envelope forever.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter parses the value of a Retry-After header, a number of seconds or an
// HTTP date. It returns 0 if the value is missing, malformed or in the past, and
// at most MaxRetryAfter.
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
