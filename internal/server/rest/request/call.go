package request

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/openapi"
	"github.com/countersign-dev/countersign/internal/server/rest/browser"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Call is a request that was admitted and checked against the contract.
type Call struct {
	*Backend
	W     http.ResponseWriter
	R     *http.Request
	By    identity.Principal
	Query url.Values
	Body  []byte
	// WaitFor is the time that the caller wants to wait for an action's end.
	WaitFor time.Duration
	// Compress reports whether the response may be compressed.
	Compress bool
	// Detail and Note are part of the event of a change of configuration: the new
	// value, without secrets, and the reason.
	Detail map[string]any
	Note   string
}

// errAudience is the error for a token of a program's login, which is for /mcp.
var errAudience = identity.TokenError("the token is for /mcp alone; make one for the API: countersign token create")

// Authenticate returns who sent the request, by its token or by the session of
// its browser, never by both. A session counts only for pages of this server. The
// error is ErrNoToken, or that of identity.Authenticator.
func (c *Call) Authenticate() (identity.Principal, error) {
	session, err := c.Browser.Secret(c.R)
	if err != nil {
		return identity.Principal{}, err
	}
	if session == "" {
		_, by, err := c.AuthenticateToken(c.R)
		if err == nil && by.Resource != "" {
			err = errAudience
		}
		return by, err
	}
	if c.R.Header.Get("Authorization") != "" {
		return identity.Principal{}, browser.ErrTwoCredentials()
	}
	if err := c.Browser.SameSite(c.R); err != nil {
		return identity.Principal{}, err
	}
	ctx, cancel := context.WithTimeout(c.R.Context(), WorkTimeout)
	defer cancel()
	return c.Auth.AuthenticateSession(ctx, session, time.Now())
}

// AuthenticateToken returns the token of a request and its sender. Use it where
// browser sessions are not accepted. The error is ErrNoToken, or that of
// identity.Authenticator.
func (b *Backend) AuthenticateToken(r *http.Request) (token string, by identity.Principal, err error) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", by, ErrNoToken
	}
	ctx, cancel := context.WithTimeout(r.Context(), WorkTimeout)
	defer cancel()
	by, err = b.Auth.Authenticate(ctx, token, time.Now())
	return token, by, err
}

// ReadBody reads a body of at most limit bytes and checks it against the
// operation, unless the handler's own parser, which is stricter, does. A body
// that may be left out and was is "{}".
func (c *Call) ReadBody(op *openapi.Operation, limit int64, ownParser bool) error {
	body, err := ReadAll(c.W, c.R, limit)
	if err != nil {
		return err
	}
	if len(body) == 0 && !op.BodyRequired {
		c.Body = []byte("{}")
		return nil
	}
	if !op.HasMedia(c.R) {
		return &mediaError{op.Media}
	}
	c.Body = body
	if ownParser {
		return nil
	}
	return op.CheckBody(c.R.Context(), body)
}

// ReadAll reads a body of at most limit bytes. The server has set the deadline
// for reading. The error is an *http.MaxBytesError or fault.Invalid.
func ReadAll(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	var text bytes.Buffer
	from := http.MaxBytesReader(w, r.Body, limit)
	text.Grow(int(min(max(r.ContentLength, 0), limit, firstRead)) + bytes.MinRead)
	_, err := io.CopyN(&text, from, firstRead)
	if err == nil {
		if left := min(r.ContentLength, limit) - firstRead; left > 0 {
			text.Grow(int(left) + bytes.MinRead) // growing step by step copies it again and again
		}
		_, err = text.ReadFrom(from)
	}
	if err == io.EOF {
		err = nil
	}
	body := text.Bytes()
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); err != nil && !tooLarge {
		err = fault.Wrap(err, fault.Invalid, "the body could not be read")
	}
	return body, err
}

// Decode decodes the body, which was checked against the contract, into v.
func (c *Call) Decode(v any) error { return Decode(c.Body, v) }

// Decode decodes a body that was checked against the contract.
func Decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return fault.Wrap(err, fault.Invalid, "the body does not match the operation's schema")
	}
	return nil
}

// ActionID returns the {id} in the path.
func (c *Call) ActionID() (envelope.ActionID, error) {
	var id envelope.ActionID
	return id, id.UnmarshalText([]byte(c.R.PathValue("id")))
}

// UUID returns the {id} in the path of a resource whose ids are UUIDs.
func (c *Call) UUID() (uuid.UUID, error) {
	id, err := uuid.Parse(c.R.PathValue("id"))
	if err != nil {
		return id, Invalid("/path/id", envelope.RuleFormat, "must be a UUID")
	}
	return id, nil
}

// Named returns a list with only the value of a name in the path, for functions
// that read all items without one; nil if the path has no such name.
func (c *Call) Named(name string) []string {
	if value := c.R.PathValue(name); value != "" {
		return []string{value}
	}
	return nil
}

// Tool returns the {tool} in the path, as source:name; the zero key if the path
// has none.
func (c *Call) Tool() policy.Key {
	key, _ := policy.ParseKey(c.R.PathValue("tool")) // WithTool refuses any other
	return key
}

// Employee returns the employee that the query names, if there is one.
func (c *Call) Employee() (id envelope.EmployeeID, given bool, err error) {
	text := c.Query.Get("employee_id")
	if text == "" {
		return id, false, nil
	}
	if id.UnmarshalText([]byte(text)) != nil {
		return id, true, Invalid("/query/employee_id", envelope.RuleFormat, "must be a UUID")
	}
	return id, true, nil
}

// Several returns the words of a query that takes several, with commas between; nil
// if it was left out.
func Several[T ~string](c *Call, name string) []T {
	text := c.Query.Get(name)
	if text == "" {
		return nil
	}
	return Map(strings.Split(text, ","), func(word string) T { return T(word) })
}

// QueryTime returns a date-time in the query; the zero time if it was left out.
func (c *Call) QueryTime(name string) (time.Time, error) {
	text := c.Query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, Invalid("/query/"+name, envelope.RuleFormat, "must be a date-time, such as 2026-01-02T03:04:05Z")
	}
	return at, nil
}

// QueryRange returns the times since and until of the query, zero if left out.
// It is an error if until is not later than since.
func (c *Call) QueryRange() (since, until time.Time, err error) {
	if since, err = c.QueryTime("since"); err != nil {
		return since, until, err
	}
	if until, err = c.QueryTime("until"); err == nil && !until.IsZero() && !since.Before(until) {
		err = Invalid("/query/until", "range", "must be later than since")
	}
	return since, until, err
}

// Submitter returns the caller as an intake.Submitter.
func (c *Call) Submitter() intake.Submitter {
	by := access.Submitter(c.By)
	by.Origin = Origin(c.R.Context(), execution.ViaAPI)
	return by
}

// InTx runs fn in a transaction of the caller's tenant.
func (c *Call) InTx(fn func(ctx context.Context, tx pgx.Tx) error) error {
	return inTx(c.R.Context(), c.Backend, postgres.API(c.By.Tenant), fn)
}

// InOwnTx is InTx with a deadline of its own, for requests without a deadline.
func (c *Call) InOwnTx(fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(c.R.Context(), WorkTimeout)
	defer cancel()
	return inTx(ctx, c.Backend, postgres.API(c.By.Tenant), fn)
}

func inTx(ctx context.Context, s *Backend, as postgres.Scope, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return slot.Briefly(ctx, 0, func(ctx context.Context) error {
		return postgres.InTx(ctx, s.DB, as, func(tx pgx.Tx) error { return fn(ctx, tx) })
	})
}

// JSON writes an answer.
func (c *Call) JSON(status int, v any) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	c.Write(status, openapi.JSON, body.Bytes())
	return nil
}

// SetLocation sets the header with the path of a created resource.
func (c *Call) SetLocation(path string) { c.W.Header().Set("Location", path) }

// NoContent answers 204.
func (c *Call) NoContent() error {
	c.W.WriteHeader(http.StatusNoContent)
	return nil
}

// Write writes an answer of a media type.
func (c *Call) Write(status int, media string, body []byte) {
	writeBody(c.W, status, media, c.compressed(media, body))
}

// writeBody ignores the error of a caller who has left.
func writeBody(w http.ResponseWriter, status int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
