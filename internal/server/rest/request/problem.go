package request

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Describer is an error that is a problem of its own kind.
type Describer interface {
	error
	Problem() wire.Problem
}

// Errors of HTTP itself. Their text is the detail.
var (
	// ErrSignature is the error of a request without a valid signature or with a
	// wrong time.
	ErrSignature = errors.New("the signature of the request is missing, invalid or too old")
	ErrNoToken   = errors.New("send a token: Authorization: Bearer cs_…")
	ErrNoRoute   = errors.New("unknown path; GET /api/v1/openapi.yaml lists the operations")
)

// mediaError is the error for a body of the wrong media type.
type mediaError struct{ want string }

func (e *mediaError) Error() string { return "send the body as Content-Type: " + e.want }

// MethodError is the error for a path that does not support the method.
type MethodError struct{ Allowed []string }

// Error lists the methods of the path.
func (e *MethodError) Error() string {
	return "this path takes " + strings.Join(e.Allowed, ", ")
}

// WriteProblem is the only place where an error becomes HTTP. Only an error of
// a known kind shows its text; the cause of any other goes only to the log.
func WriteProblem(log *slog.Logger, w http.ResponseWriter, r *http.Request, err error) {
	p := ProblemOf(err)
	p.Instance = ID(r.Context())
	if p.Status == http.StatusInternalServerError || p.Status == http.StatusServiceUnavailable {
		log.ErrorContext(r.Context(), "request failed", slog.String("request_id", p.Instance),
			slog.String("route", r.Pattern), slog.Any("error", err))
	}
	h := w.Header()
	switch p.Status {
	case http.StatusUnauthorized:
		if h.Get("WWW-Authenticate") == "" {
			h.Set("WWW-Authenticate", `Bearer realm="countersign"`)
		}
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		h.Set("Retry-After", strconv.Itoa(fault.RetryAfter(err)))
		if e, ok := errors.AsType[*fault.Error](err); ok && e.Quota != nil {
			SetRateLimit(h, *e.Quota)
		}
	case http.StatusMethodNotAllowed:
		if e, ok := errors.AsType[*MethodError](err); ok {
			h.Set("Allow", strings.Join(e.Allowed, ", "))
		}
	}
	body, err := json.Marshal(p)
	if err != nil {
		log.ErrorContext(r.Context(), "problem not written", slog.String("request_id", p.Instance), slog.Any("error", err))
		w.WriteHeader(p.Status)
		return
	}
	writeBody(w, p.Status, "application/problem+json", body)
}

// ProblemOf returns the problem of an error.
func ProblemOf(err error) wire.Problem {
	p := problemOf(err)
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Code != "" {
		p.Code = wire.ProblemCode(e.Code)
	}
	return p
}

func problemOf(err error) wire.Problem {
	switch {
	case errors.Is(err, identity.ErrSession):
		p := NewProblem("unauthorized", http.StatusUnauthorized, "The session has ended", err.Error())
		p.Code = wire.CodeSessionEnded
		return p
	case errors.Is(err, ErrNoToken), errors.Is(err, identity.ErrToken):
		return NewProblem("unauthorized", http.StatusUnauthorized, "Missing or invalid token", err.Error())
	case errors.Is(err, ErrSignature):
		return NewProblem("unauthorized", http.StatusUnauthorized, "Missing or invalid signature", err.Error())
	case errors.Is(err, ErrNoRoute):
		return NewProblem("not_found", http.StatusNotFound, "Not found", err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return NewProblem("busy", http.StatusServiceUnavailable, "Busy", "it took too long; try again")
	}
	if e, ok := errors.AsType[Describer](err); ok {
		return e.Problem()
	}
	if e, ok := errors.AsType[*mediaError](err); ok {
		return NewProblem("unsupported_media_type", http.StatusUnsupportedMediaType, "Unsupported media type", e.Error())
	}
	if e, ok := errors.AsType[*MethodError](err); ok {
		return NewProblem("method_not_allowed", http.StatusMethodNotAllowed, "Method not allowed", e.Error())
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return NewProblem("too_large", http.StatusRequestEntityTooLarge, "Body too large",
			"the body may be "+strconv.FormatInt(e.Limit, 10)+" bytes long")
	}
	return problemOfFault(err)
}

func problemOfFault(err error) wire.Problem {
	switch fault.KindOf(err) {
	case fault.NotFound:
		return NewProblem("not_found", http.StatusNotFound, "Not found", Detail(err))
	case fault.Invalid:
		p := NewProblem("invalid", http.StatusBadRequest, "Invalid request", Detail(err))
		if _, ok := errors.AsType[*envelope.InvalidError](err); ok {
			p.Detail = "the request breaks the rules that errors lists"
		}
		return withFields(p, err)
	case fault.Conflict:
		return withFields(NewProblem("conflict", http.StatusConflict, "Not possible in this state", Detail(err)), err)
	case fault.Stale:
		return NewProblem("precondition_failed", http.StatusPreconditionFailed, "Changed since it was read", Detail(err))
	case fault.Unconditional:
		return NewProblem("precondition_required", http.StatusPreconditionRequired, "If-Match is required", Detail(err))
	case fault.Denied:
		return withFields(NewProblem("denied", http.StatusForbidden, "Not allowed", Detail(err)), err)
	case fault.Busy:
		return NewProblem("busy", http.StatusServiceUnavailable, "Busy", Detail(err))
	case fault.Limited:
		return NewProblem("limited", http.StatusTooManyRequests, "Too many requests", Detail(err))
	case fault.Gone:
		return NewProblem("gone", http.StatusGone, "Too late", Detail(err))
	}
	return NewProblem("internal", http.StatusInternalServerError, "Internal error", "")
}

// withFields adds to a problem the fields that an error is about.
func withFields(p wire.Problem, err error) wire.Problem {
	p.Errors = check.Fields(err)
	return p
}

// NewProblem returns a problem of the type urn:countersign:problem:kind. Its code
// is the kind, unless a more exact one is set.
func NewProblem(kind string, status int, title, detail string) wire.Problem {
	return wire.Problem{Type: "urn:countersign:problem:" + kind, Title: title, Status: status, Detail: detail, Code: wire.ProblemCode(kind)}
}

// Detail returns the text of a fault, which is written for the caller; "" for
// any other error.
func Detail(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e.Text
	}
	return ""
}
