package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const (
	// readFor bounds how long a body may take to come, writeFor how long an
	// answer, or one piece of a stream, may take to go.
	readFor  = 30 * time.Second
	writeFor = 15 * time.Second
	// workFor bounds a request, not counting the time that it asked to wait.
	workFor = 30 * time.Second
)

// call is a request that was let in and held to the law.
type call struct {
	w     http.ResponseWriter
	r     *http.Request
	by    identity.Principal
	query url.Values
	body  []byte
	// wait is how long the caller wants to wait for an action's end.
	wait time.Duration
	// detail and note tell in the audit log what a change of configuration
	// set, without secrets, and why.
	detail map[string]any
	note   string
}

// serve lets requests in, holds them to the operation, and answers with a
// problem if the handler does not succeed.
func (s *Server) serve(rt route, op *operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.attempt(rt, op, w, r); err != nil {
			s.writeProblem(w, r, err)
		}
	})
}

func (s *Server) attempt(rt route, op *operation, w http.ResponseWriter, r *http.Request) error {
	c := &call{w: w, r: r}
	var err error
	if rt.roles != nil {
		if c.by, err = s.authenticate(r); err != nil {
			return err
		}
		noteCaller(r.Context(), c.by)
		if err = rt.admit(c.by); err != nil {
			return err
		}
	}
	if c.query, err = op.checkParameters(r); err != nil {
		return err
	}
	if c.wait, err = patience(c.query, rt.wait); err != nil {
		return err
	}
	if !rt.endless {
		ctx, cancel := context.WithTimeout(r.Context(), workFor+c.wait)
		defer cancel()
		c.r = r.WithContext(ctx)
	}
	if rt.maxBody == envelope.MaxManyBytes {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		default:
			return fault.New(fault.Busy, "too many batches at once; try again")
		}
	}
	if op.body != nil {
		if err := c.readBody(rt, op); err != nil {
			return err
		}
	}
	return rt.handle(s, c)
}

// authenticate finds out who sent a request.
func (s *Server) authenticate(r *http.Request) (identity.Principal, error) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return identity.Principal{}, errNoToken
	}
	ctx, cancel := context.WithTimeout(r.Context(), workFor)
	defer cancel()
	return s.auth.Authenticate(ctx, token, time.Now())
}

// readBody reads the body and, unless it has a parser of its own, holds it to
// the schema. A body that may be left out and was is "{}".
func (c *call) readBody(rt route, op *operation) error {
	// Cleared afterwards: a connection whose deadline passes is taken for one
	// that went away. What cannot have a deadline is a test's recorder.
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Now().Add(readFor))
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, rt.maxBody))
	_ = control.SetReadDeadline(time.Time{})
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return err
		}
		return fault.Wrap(err, fault.Invalid, "the body could not be read")
	}
	if len(body) == 0 && !op.bodyRequired {
		c.body = []byte("{}")
		return nil
	}
	if !declares(c.r, op.media) {
		return &mediaError{op.media}
	}
	c.body = body
	if rt.parsed {
		return nil
	}
	return op.checkBody(body)
}

// decode reads the body, which the law has been asked about, into v.
func (c *call) decode(v any) error {
	if err := json.Unmarshal(c.body, v); err != nil {
		return fault.Wrap(err, fault.Invalid, "the body does not fit")
	}
	return nil
}

// action is the id in the path.
func (c *call) action() (envelope.ActionID, error) {
	var id envelope.ActionID
	return id, id.UnmarshalText([]byte(c.r.PathValue("id")))
}

// inTx runs fn in a transaction of the caller's tenant.
func (s *Server) inTx(c *call, fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx := c.r.Context()
	return postgres.InTx(ctx, s.DB, postgres.API(c.by.Tenant), func(tx pgx.Tx) error { return fn(ctx, tx) })
}

// json writes an answer.
func (c *call) json(status int, v any) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	writeBody(c.w, status, jsonType, body.Bytes())
	return nil
}

// items writes the answer of a list that has no pages.
func items[T any](c *call, all []T) error {
	return c.json(http.StatusOK, struct {
		Items []T `json:"items"`
	}{all})
}

// nothing answers that it was done.
func (c *call) nothing() error {
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// writeBody writes an answer. What goes wrong by now, the caller has left.
func writeBody(w http.ResponseWriter, status int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// unmatched answers what no route matches: another method of a path that
// there is, or no path at all.
func (s *Server) unmatched(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		probe := &http.Request{Method: method, URL: &url.URL{Path: path.Clean("/" + r.URL.Path)}, Host: r.Host}
		if _, pattern := s.mux.Handler(probe); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		s.writeProblem(w, r, &methodError{allowed})
		return
	}
	s.writeProblem(w, r, errNoRoute)
}
