package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/propagation"

	"github.com/countersign-dev/countersign/internal/source"
)

// The keys under which a call's _meta carries what a server needs to act once.
const (
	// MetaIdempotencyKey carries source.Call.Key.
	MetaIdempotencyKey = "countersign.dev/idempotency-key"
	// MetaAttempt carries source.Call.Attempt.
	MetaAttempt = "countersign.dev/attempt"
)

// MetaOutcome is the key under which a result's _meta says source.CodeConflict,
// if the effect was there already.
const MetaOutcome = "countersign.dev/outcome"

// finding is what one attempt came to, before its kind is named.
type finding struct {
	source.Observation
	code   string
	answer answer
}

// Execute implements executor.Source. A session that the server has forgotten
// is replaced, and the call sent again, once; that happens only where the
// first request was surely not executed.
func (s *Source) Execute(ctx context.Context, call source.Call) source.Outcome {
	f := s.execute(ctx, call)
	out := source.Conclude(call.Effect, f.Observation, f.code, describe(f))
	out.Result, out.ProviderID = f.answer.result, f.answer.providerID
	return out
}

func (s *Source) execute(ctx context.Context, call source.Call) finding {
	params, err := parameters(ctx, call)
	if err != nil {
		return finding{Observation: source.Observation{Permanent: true}, code: source.CodeInvalidArgs}
	}
	ctx, leave, ok := s.enter(ctx, s.cfg.CallTimeout)
	if !ok {
		return finding{code: source.CodeClosed}
	}
	defer leave()

	sess, err := s.session(ctx)
	if err != nil {
		return unconnected(ctx, err)
	}
	saw := s.attempt(ctx, sess, params)
	if saw.sessionGone() && ctx.Err() == nil {
		s.retire(sess)
		if sess, err = s.session(ctx); err != nil {
			return unconnected(ctx, err)
		}
		saw = s.attempt(ctx, sess, params)
	}
	f := s.judge(ctx, saw, call.Tool)
	switch f.code {
	case source.CodeMalformed, source.CodeOversized, source.CodeLost:
		s.retire(sess)
	case source.CodeTimeout:
		if sess.conn.child() != nil {
			sess.suspect.Store(true)
		}
	}
	return f
}

// parameters builds the request, and fails if the arguments are no JSON object.
func parameters(ctx context.Context, call source.Call) (*sdk.CallToolParams, error) {
	args := bytes.TrimSpace(call.Args)
	if len(args) == 0 {
		args = []byte("{}")
	}
	if args[0] != '{' || !json.Valid(args) {
		return nil, errors.New("arguments are not a JSON object")
	}
	meta := sdk.Meta{MetaIdempotencyKey: call.Key, MetaAttempt: call.Attempt}
	trace := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, trace)
	for k, v := range trace {
		meta[k] = v
	}
	return &sdk.CallToolParams{Meta: meta, Name: call.Tool, Arguments: json.RawMessage(args)}, nil
}

// attempt sends the request once and returns what was seen of it. The SDK's
// own result and error say less than the probe does.
func (s *Source) attempt(ctx context.Context, sess *session, params *sdk.CallToolParams) seen {
	var p probe
	defer p.forget()
	again := *params
	again.Meta = make(sdk.Meta, len(params.Meta)+3) // the SDK adds to it
	for k, v := range params.Meta {
		again.Meta[k] = v
	}
	_, _ = sess.sdk.CallTool(withCall(ctx, &p), &again) // see above
	return p.seen()
}

// sessionGone reports whether the server answered that it does not know the
// session (404, or 400 as some servers do), or the session was dead before
// anything was written to it. Either way nothing was executed.
func (s seen) sessionGone() bool {
	if s.answered() {
		return false
	}
	if s.sessionID && (s.status == http.StatusNotFound || s.status == http.StatusBadRequest) {
		return true
	}
	return !s.written && !s.handed
}

func (s seen) answered() bool { return s.result != nil || s.rpcError != nil }

// judge turns what was seen into an observation and a code.
func (s *Source) judge(ctx context.Context, saw seen, tool string) finding {
	f := finding{Observation: source.Observation{
		Written:    saw.written,
		Status:     saw.status,
		RetryAfter: saw.retryAfter,
	}}
	switch {
	case saw.rpcError != nil:
		f.Answered = true
		s.judgeError(&f, saw.rpcError, tool)
	case len(saw.result) > s.cfg.MaxResultBytes:
		f.code = source.CodeOversized
	case saw.result != nil:
		judgeResult(&f, saw.result)
	case saw.fault != "":
		f.code = saw.fault
	case source.StatusCode(saw.status) != "":
		f.code = source.StatusCode(saw.status)
	case ctx.Err() != nil:
		f.code = ended(ctx)
	case saw.written:
		f.code = source.CodeLost
	default:
		f.code = source.CodeUnreachable
	}
	return f
}

// judgeError reads a JSON-RPC error. The codes that JSON-RPC defines speak of
// the request, which then was not executed; any other is the tool's failure.
func (s *Source) judgeError(f *finding, rpcError *jsonrpc.Error, tool string) {
	f.answer.result = errorResult(rpcError, s.cfg.MaxResultBytes)
	switch rpcError.Code {
	case jsonrpc.CodeInvalidParams:
		f.Permanent = true
		f.code = source.CodeInvalidArgs
		s.mu.Lock()
		if s.known != nil && !s.known[tool] {
			f.code = source.CodeUnknownTool
		}
		s.mu.Unlock()
	case jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParseError:
		f.Permanent = true
		f.code = source.CodeRejected
	default:
		f.ToolError = true
		f.code = source.CodeToolError
	}
}

func judgeResult(f *finding, raw json.RawMessage) {
	a, err := parse(raw)
	if err != nil {
		f.code = source.CodeMalformed
		return
	}
	f.Answered = true
	f.answer = a
	switch {
	case a.inputRequired:
		f.Permanent = true
		f.code = source.CodeInputRequired
	case a.conflict:
		f.Conflict = true
		f.code = source.CodeConflict
	case a.isError:
		f.ToolError = true
		f.code = source.CodeToolError
	}
}

// unconnected is the finding for a call that got no session.
func unconnected(ctx context.Context, err error) finding {
	if errors.Is(err, errClosed) {
		return finding{code: source.CodeClosed}
	}
	if ctx.Err() != nil {
		return finding{code: ended(ctx)}
	}
	f := finding{code: source.CodeUnreachable}
	refused, ok := errors.AsType[*connectError](err)
	if !ok {
		return f
	}
	f.Status, f.RetryAfter = refused.seen.status, refused.seen.retryAfter
	switch code := source.StatusCode(f.Status); {
	case code != "":
		f.code = code
	case f.Status != 0 || refused.started:
		f.code = source.CodeNegotiation
	}
	return f
}

// ended says why a context is over.
func ended(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errClosed):
		return source.CodeClosed
	case errors.Is(cause, context.DeadlineExceeded):
		return source.CodeTimeout
	}
	return source.CodeCancelled
}

// describe puts a finding into words of our own.
func describe(f finding) string {
	if f.code == "" {
		return ""
	}
	if f.Status >= 300 {
		return fmt.Sprintf("the mcp server answered with status %d", f.Status)
	}
	sent := "before the call was sent"
	if f.Written {
		sent = "after the call was sent"
	}
	switch f.code {
	case source.CodeCancelled:
		return "the caller gave up " + sent
	case source.CodeClosed:
		return "the source was closed " + sent
	case source.CodeInputRequired:
		return "the tool asks for input, which nobody is there to give"
	case source.CodeInvalidArgs:
		return "the arguments do not fit the tool"
	case source.CodeLost:
		return "the mcp server went away " + sent
	case source.CodeMalformed:
		return "the mcp server's answer is not valid"
	case source.CodeNegotiation:
		return "no mcp session could be agreed on"
	case source.CodeOversized:
		return "the mcp server's answer is larger than allowed"
	case source.CodeRejected:
		return "the mcp server does not take tool calls like this one"
	case source.CodeTimeout:
		return "time ran out " + sent
	case source.CodeToolError:
		return "the tool says that it failed"
	case source.CodeUnknownTool:
		return "the mcp server has no tool of this name"
	}
	return "the mcp server cannot be reached"
}
