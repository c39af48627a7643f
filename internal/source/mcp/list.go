package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
)

// Bounds of one listing, far above the needs of any agent.
const (
	maxPages = 100
	maxTools = 10_000
)

// closeGrace bounds the time for a child that did not answer to exit, so that
// its status is known.
const closeGrace = 2*stopGrace + drainGrace + exitGrace

// errTooMany means that a listing exceeds these bounds.
var errTooMany = fmt.Errorf("more than %d tools or %d pages", maxTools, maxPages)

// List implements source.Source. It reads all pages within ListTimeout, and
// starts over once with a new session if the current one is dead. If the source
// is closed or unreachable, the error is fault.Busy.
func (s *Source) List(ctx context.Context) ([]source.Tool, error) {
	// Opening a session and listing have separate time limits.
	ctx, end, ok := s.calls.Start(ctx, 2*s.cfg.ListTimeout+closeGrace)
	if !ok {
		return nil, fault.Wrap(source.ErrClosed, fault.Busy, "list tools of %s", s.cfg.Name)
	}
	defer end()

	s.mu.Lock()
	reused := s.current
	s.mu.Unlock()
	tools, sess, err := s.list(ctx)
	if err != nil && sess != nil {
		s.retire(sess)
		if sess == reused && ctx.Err() == nil {
			tools, _, err = s.list(ctx)
		}
	}
	if err != nil {
		cause := printable(err)
		if refused, ok := errors.AsType[*connectError](err); ok && source.LoginCode(refused.seen.failed) != "" {
			cause = refused.seen.failed
		}
		met := &listError{error: fault.Wrap(cause, fault.Busy, "list tools of %s: %s", s.cfg.Name, s.failureText(err, sess))}
		if refused, ok := errors.AsType[*connectError](err); ok {
			met.seen = refused.seen
		}
		return nil, met
	}
	known := make(map[string]bool, len(tools))
	for _, t := range tools {
		known[t.Name] = true
	}
	s.mu.Lock()
	s.known = known
	s.mu.Unlock()
	return tools, nil
}

// listError is the error of a listing, with the data of the transport.
type listError struct {
	error
	seen seen
}

// Unwrap returns the error without the data of the transport.
func (e *listError) Unwrap() error { return e.error }

// Refused returns the HTTP status with which a server refused a listing, and
// the wait that it requested, or 0.
func Refused(err error) (status int, retryAfter time.Duration) {
	if e, ok := errors.AsType[*listError](err); ok {
		return e.seen.status, e.seen.retryAfter
	}
	return 0, 0
}

// list reads all pages over one session, which it also returns.
func (s *Source) list(ctx context.Context) (tools []source.Tool, sess *session, err error) {
	sess, err = s.session(ctx)
	if err != nil {
		return nil, nil, err
	}
	var p probe
	ctx, stop := context.WithTimeout(withProbe(ctx, ofHandshake, &p), s.cfg.ListTimeout)
	defer stop()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			err = &connectError{seen: p.seen(), started: true, cause: printable(err)}
		}
	}()
	tools = []source.Tool{}
	cursor := ""
	for range maxPages {
		page, err := sess.sdk.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, sess, err
		}
		for _, t := range page.Tools { // the catalog omits and counts unusable tools
			tool, err := convert(t)
			if err != nil {
				return nil, sess, err
			}
			tools = append(tools, tool)
		}
		if len(tools) > maxTools {
			return nil, sess, errTooMany
		}
		if page.NextCursor == "" {
			return tools, sess, nil
		}
		cursor = page.NextCursor
	}
	return nil, sess, errTooMany
}

// convert converts a tool's definition.
func convert(t *sdk.Tool) (source.Tool, error) {
	tool := source.Tool{Name: t.Name, Title: t.Title, Description: t.Description}
	if a := t.Annotations; a != nil {
		if tool.Title == "" {
			tool.Title = a.Title
		}
		tool.Hints = source.Hints{
			ReadOnly:    a.ReadOnlyHint,
			Idempotent:  a.IdempotentHint,
			Destructive: a.DestructiveHint,
			OpenWorld:   a.OpenWorldHint,
			Given:       true,
		}
	}
	var err error
	if tool.InputSchema, err = schema(t.InputSchema); err != nil {
		return source.Tool{}, fmt.Errorf("input schema of %q: %w", t.Name, err)
	}
	if tool.OutputSchema, err = schema(t.OutputSchema); err != nil {
		return source.Tool{}, fmt.Errorf("output schema of %q: %w", t.Name, err)
	}
	if tool.InputSchema == nil {
		tool.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	return tool, nil
}

// schema returns the JSON of a schema, nil if it is absent.
func schema(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	return raw, nil
}
