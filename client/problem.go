package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
)

// The kinds of problems. Test for one with errors.Is(err, client.ErrNotFound).
var (
	// ErrNotFound means that the thing does not exist, or that the caller may not
	// see it.
	ErrNotFound = errors.New("not found")
	// ErrInvalid means that the request breaks a rule; do not repeat it.
	ErrInvalid = errors.New("invalid")
	// ErrConflict means that the state of the thing does not allow the request.
	ErrConflict = errors.New("conflict")
	// ErrChanged means that the thing has changed since the caller read it.
	ErrChanged = errors.New("changed")
	// ErrDenied means that policy, or the rights of the caller, do not allow it.
	ErrDenied = errors.New("denied")
	// ErrUnauthorized means that the token is missing or not accepted.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrBusy means that the request may work later.
	ErrBusy = errors.New("busy")
	// ErrGone means that it is too late for the request.
	ErrGone = errors.New("gone")
	// ErrLimited means that the caller has reached a limit for now.
	ErrLimited = errors.New("limited")
)

// Problem is an answer that is not a success. errors.Is matches its kind.
type Problem struct {
	wire.Problem

	// RetryAfter is the wait that the server asks for; zero if none.
	RetryAfter time.Duration `json:"-"`
}

// Error returns the problem in one line, and the fields in lines below.
func (p *Problem) Error() string {
	var text strings.Builder
	if p.Detail == "" || len(p.Errors) > 0 {
		text.WriteString(strings.ToLower(p.Title))
	} else {
		text.WriteString(p.Detail)
	}
	for _, f := range p.Errors {
		at := f.Pointer
		at = cmp.Or(at, "the body")
		fmt.Fprintf(&text, "\n  %s: %s", at, f.Message)
	}
	if p.Status == http.StatusInternalServerError && p.Instance != "" {
		fmt.Fprintf(&text, " (request %s in the server's log)", p.Instance)
	}
	return text.String()
}

// Unwrap returns the kind of the problem, or nil if it has none.
func (p *Problem) Unwrap() error {
	return kinds[strings.TrimPrefix(p.Type, "urn:countersign:problem:")]
}

// kinds are the kinds of problems by the end of their type.
var kinds = map[string]error{
	"not_found": ErrNotFound, "conflict": ErrConflict, "denied": ErrDenied, "unauthorized": ErrUnauthorized,
	"busy": ErrBusy, "gone": ErrGone, "limited": ErrLimited,
	"precondition_failed": ErrChanged, "precondition_required": ErrChanged,
	"invalid": ErrInvalid, "too_large": ErrInvalid, "unsupported_media_type": ErrInvalid, "method_not_allowed": ErrInvalid,
}

// readProblem reads a response that is not a success, including one from a
// proxy that is not a problem document.
func readProblem(answer *http.Response) *Problem {
	const limit = 1 << 20
	p := &Problem{}
	text, err := io.ReadAll(io.LimitReader(answer.Body, limit))
	if err != nil || !isJSON(answer) || json.Unmarshal(text, p) != nil || p.Title == "" {
		p = &Problem{Problem: wire.Problem{
			Type: "about:blank", Title: http.StatusText(answer.StatusCode),
			Detail: fmt.Sprintf("the answer is %s, and not from a Countersign API; check the URL", answer.Status),
		}}
	}
	p.Status = answer.StatusCode
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}

func isJSON(answer *http.Response) bool {
	media, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && (media == "application/json" || media == "application/problem+json")
}

// UnreachableError means that no answer came from the server.
type UnreachableError struct {
	// URL is the server's.
	URL   string
	Cause error
}

// Error names the server and the cause.
func (e *UnreachableError) Error() string {
	cause := e.Cause
	if wrapped, ok := errors.AsType[*url.Error](cause); ok {
		cause = wrapped.Err
	}
	return fmt.Sprintf("no answer from %s: %v", e.URL, cause)
}

// asProblem returns the problem that an error is.
func asProblem(err error) (*Problem, bool) { return errors.AsType[*Problem](err) }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Cause }
