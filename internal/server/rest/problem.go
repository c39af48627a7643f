package rest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// problem is an error as the outside sees it (RFC 9457).
type problem struct {
	Type     string                `json:"type"`
	Title    string                `json:"title"`
	Status   int                   `json:"status"`
	Detail   string                `json:"detail,omitzero"`
	Instance string                `json:"instance"`
	Errors   []envelope.FieldError `json:"errors,omitempty"`
	Action   *action               `json:"action,omitempty"`
	// Execution is what is on record of a call of a tool that was not done.
	Execution *invocation `json:"execution,omitempty"`
}

// The errors that only HTTP knows. They are their own detail.
var (
	errNoToken = errors.New("show a token: Authorization: Bearer cs_…")
	errNoRoute = errors.New("there is nothing at this path; GET /api/v1/openapi.yaml lists what there is")
)

// mediaError says that the body is to be of another media type.
type mediaError struct{ want string }

func (e *mediaError) Error() string { return "send the body as Content-Type: " + e.want }

// methodError says that a path takes other methods.
type methodError struct{ allowed []string }

func (e *methodError) Error() string {
	return "this path takes " + strings.Join(e.allowed, ", ")
}

// deniedError says that policy denied a proposal, which is on record.
type deniedError struct{ view outbox.View }

func (e *deniedError) Error() string {
	return "policy denies this action: " + policy.Denial(e.view.ModeSource, policy.Denying(e.view.Trace))
}

func (e *deniedError) Unwrap() error { return fault.Denied }

// writeProblem is the only place where an error becomes HTTP. Only an error of
// a known kind shows its text; the cause of any other goes to the log alone.
func (s *Server) writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := describe(err)
	p.Instance = requestID(r.Context())
	if p.Status == http.StatusInternalServerError || p.Status == http.StatusServiceUnavailable {
		s.cfg.Log.ErrorContext(r.Context(), "request failed", slog.String("request_id", p.Instance),
			slog.String("route", r.Pattern), slog.Any("error", err))
	}
	h := w.Header()
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="countersign"`)
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", "1")
	case http.StatusTooManyRequests:
		h.Set("Retry-After", strconv.Itoa(waitSeconds(err)))
	case http.StatusMethodNotAllowed:
		if e, ok := errors.AsType[*methodError](err); ok {
			h.Set("Allow", strings.Join(e.allowed, ", "))
		}
	}
	body, err := json.Marshal(p)
	if err != nil {
		s.cfg.Log.ErrorContext(r.Context(), "problem not written", slog.String("request_id", p.Instance), slog.Any("error", err))
		w.WriteHeader(p.Status)
		return
	}
	writeBody(w, p.Status, "application/problem+json", body)
}

// describe finds the problem that an error is.
func describe(err error) problem {
	switch {
	case errors.Is(err, errNoToken), errors.Is(err, identity.ErrToken):
		return problemOf("unauthorized", http.StatusUnauthorized, "The token is missing or not valid", err.Error())
	case errors.Is(err, subscription.ErrSignature):
		return problemOf("unauthorized", http.StatusUnauthorized, "The signature is missing or not valid", err.Error())
	case errors.Is(err, errNoRoute):
		return problemOf("not_found", http.StatusNotFound, "Not found", err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problemOf("busy", http.StatusServiceUnavailable, "Busy", "it took too long; try again")
	}
	if e, ok := errors.AsType[*undoneError](err); ok {
		return e.problem()
	}
	if e, ok := errors.AsType[*mediaError](err); ok {
		return problemOf("unsupported_media_type", http.StatusUnsupportedMediaType, "The body is of another media type", e.Error())
	}
	if e, ok := errors.AsType[*methodError](err); ok {
		return problemOf("method_not_allowed", http.StatusMethodNotAllowed, "The path does not take this method", e.Error())
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problemOf("too_large", http.StatusRequestEntityTooLarge, "The body is too large",
			"the body may be "+strconv.FormatInt(e.Limit, 10)+" bytes long")
	}
	return describeFault(err)
}

func describeFault(err error) problem {
	switch fault.KindOf(err) {
	case fault.NotFound:
		return problemOf("not_found", http.StatusNotFound, "Not found", detail(err))
	case fault.Invalid:
		p := problemOf("invalid", http.StatusBadRequest, "The request is not valid", detail(err))
		if e, ok := errors.AsType[*envelope.InvalidError](err); ok {
			p.Detail, p.Errors = "the request breaks the rules that errors lists", e.Fields
		}
		return p
	case fault.Conflict:
		return problemOf("conflict", http.StatusConflict, "Not possible as things stand", detail(err))
	case fault.Denied:
		p := problemOf("denied", http.StatusForbidden, "Not allowed", detail(err))
		if e, ok := errors.AsType[*deniedError](err); ok {
			p.Detail, p.Action = e.Error(), new(actionFromView(e.view))
		}
		return p
	case fault.Busy:
		return problemOf("busy", http.StatusServiceUnavailable, "Busy", detail(err))
	case fault.Limited:
		return problemOf("limited", http.StatusTooManyRequests, "Too many requests", detail(err))
	case fault.Gone:
		return problemOf("gone", http.StatusGone, "Too late", detail(err))
	}
	return problemOf("internal", http.StatusInternalServerError, "Internal error", "")
}

func problemOf(kind string, status int, title, detail string) problem {
	return problem{Type: "urn:countersign:problem:" + kind, Title: title, Status: status, Detail: detail}
}

// detail is the text of a fault that is fit for the caller's eyes.
func detail(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e.Text
	}
	return ""
}

// waitSeconds is how long to wait before the next try, in whole seconds and
// at least one.
func waitSeconds(err error) int {
	e, _ := errors.AsType[*fault.Error](err)
	if e == nil {
		return 1
	}
	return max(1, int((e.After+time.Second-1)/time.Second))
}
