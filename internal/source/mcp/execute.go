package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/propagation"

	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// Keys of a call's _meta with which a server can execute the call once.
const (
	// MetaIdempotencyKey carries source.Call.Key.
	MetaIdempotencyKey = "countersign.dev/idempotency-key"
	// MetaAttempt carries source.Call.Attempt.
	MetaAttempt = "countersign.dev/attempt"
)

// Keys with which a server can qualify its answer: in the _meta of a result, or
// in the data of a JSON-RPC error.
const (
	// MetaOutcome is source.CodeConflict if the effect exists already. In an
	// error it is source.CodeRateLimited if the call was not executed and may be
	// sent again.
	MetaOutcome = "countersign.dev/outcome"
	// MetaRetryAfter is the number of seconds to wait before the next attempt.
	MetaRetryAfter = "countersign.dev/retry-after"
)

// Execute implements source.Source. If the server has lost the session, Execute
// opens a new session and sends the call once more, but only if the first
// request was certainly not executed.
func (s *Source) Execute(ctx context.Context, call source.Call) source.Outcome {
	return s.execute(ctx, call).Outcome(s.cfg.Name, call.Effect)
}

func (s *Source) execute(ctx context.Context, call source.Call) source.Observation {
	params, err := parameters(ctx, call)
	if err != nil {
		return source.Refuse(source.CodeInvalidArgs, "")
	}
	ctx, end, ok := s.calls.Start(ctx, source.MaxTimeout)
	if !ok {
		return source.Observation{Code: source.CodeClosed}
	}
	defer end()
	ctx, done := s.idle.limit(ctx, params, cmp.Or(call.Timeout, s.cfg.CallTimeout))
	defer done()

	sess, err := s.session(ctx)
	if err != nil {
		return s.unconnected(ctx, err)
	}
	saw := s.attempt(ctx, sess, params)
	if saw.sessionGone() && ctx.Err() == nil {
		s.retire(sess)
		if sess, err = s.session(ctx); err != nil {
			return s.unconnected(ctx, err)
		}
		saw = s.attempt(ctx, sess, params)
	}
	o := s.observe(ctx, saw, call.Tool)
	switch o.Code {
	case source.CodeMalformed, source.CodeOversized, source.CodeLost:
		s.retire(sess)
	case source.CodeTimeout:
		if sess.conn.child() != nil {
			sess.suspect.Store(true)
		}
	}
	return o
}

// parameters returns the parameters of the request. It fails if the arguments
// are not a JSON object.
func parameters(ctx context.Context, call source.Call) (*sdk.CallToolParams, error) {
	args, ok := rest.Object(call.Args)
	if !ok {
		return nil, errors.New("arguments are not a JSON object")
	}
	meta := sdk.Meta{MetaIdempotencyKey: call.Key, MetaAttempt: call.Attempt}
	trace := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, trace)
	for k, v := range trace {
		meta[k] = v
	}
	return &sdk.CallToolParams{Meta: meta, Name: call.Tool, Arguments: args}, nil
}

// attempt sends the request once and returns the data of the probe, which is
// more precise than the SDK's result and error.
func (s *Source) attempt(ctx context.Context, sess *session, params *sdk.CallToolParams) seen {
	var p probe
	defer p.forget()
	mine := *params
	mine.Meta = maps.Clone(params.Meta) // the SDK adds to it
	ctx = context.WithValue(ctx, calledTool{}, params.Name)
	_, _ = sess.sdk.CallTool(withProbe(ctx, ofCall, &p), &mine) // see above
	return p.seen()
}

// sessionGone reports whether the server rejected the session as unknown (404,
// or 400 by some servers), or the session was dead before anything was written
// to it. Either way nothing was executed.
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

// observe returns the observation of a call of a tool.
func (s *Source) observe(ctx context.Context, saw seen, tool string) source.Observation {
	o := source.Observation{Written: saw.written, Status: saw.status, RetryAfter: saw.retryAfter}
	switch {
	case saw.rpcError != nil:
		o.Answered = true
		return s.observeError(o, saw.rpcError, tool)
	case len(saw.result) > s.cfg.MaxResultBytes:
		o.Code = source.CodeOversized
	case saw.result != nil:
		return observeResult(o, saw.result)
	case saw.fault == source.CodeLoginLost, saw.fault == source.CodeLoginUnavailable:
		return source.WithoutLogin(saw.failed, s.cfg.FailWithoutLogin)
	case saw.fault != "":
		o.Code = saw.fault
	case source.StatusCode(saw.status) != "":
		o.Code = source.StatusCode(saw.status)
	case ctx.Err() != nil:
		o.Code = source.EndedCode(ctx)
	case saw.written:
		o.Code = source.CodeLost
	default:
		o.Code = source.CodeUnreachable
	}
	return o
}

// observeError converts a JSON-RPC error, which is an answer like a result.
// JSON-RPC and MCP define no code for a call that was not executed and may be
// repeated, and servers use the codes -32000 to -32099 for different things.
// Therefore only the data of the error can report that.
func (s *Source) observeError(o source.Observation, rpcError *jsonrpc.Error, tool string) source.Observation {
	o.Result = errorResult(rpcError, s.cfg.MaxResultBytes)
	switch outcome, after := outcomeOf(rpcError.Data); outcome {
	case source.CodeConflict:
		return o.AlreadyDone()
	case source.CodeRateLimited:
		o.RetryAfter = max(o.RetryAfter, after)
		return o.NotExecuted(source.CodeRateLimited)
	}
	switch rpcError.Code {
	case jsonrpc.CodeInvalidParams:
		s.mu.Lock()
		unknown := s.known != nil && !s.known[tool]
		s.mu.Unlock()
		if unknown {
			return o.Permanently(source.CodeUnknownTool)
		}
		return o.Permanently(source.CodeInvalidArgs)
	case jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParseError:
		return o.Permanently(source.CodeRejected)
	case sdk.CodeURLElicitationRequired:
		return o.Permanently(source.CodeInputRequired)
	}
	return o.ToolFailed()
}

// observeResult converts the result of a call.
func observeResult(o source.Observation, raw json.RawMessage) source.Observation {
	r, err := parse(raw)
	if err != nil {
		o.Code = source.CodeMalformed
		return o
	}
	o.Answered, o.Result, o.ProviderID = true, r.result, r.providerID
	switch {
	case r.inputRequired:
		return o.Permanently(source.CodeInputRequired)
	case r.outcome == source.CodeConflict:
		return o.AlreadyDone()
	case r.isError && r.outcome == source.CodeRateLimited:
		o.RetryAfter = max(o.RetryAfter, r.retryAfter)
		return o.NotExecuted(source.CodeRateLimited)
	case r.isError:
		return o.ToolFailed()
	}
	return o
}

// unconnected returns the observation of a call without a session.
func (s *Source) unconnected(ctx context.Context, err error) source.Observation {
	switch {
	case errors.Is(err, source.ErrClosed):
		return source.Observation{Code: source.CodeClosed}
	case ctx.Err() != nil:
		return source.Observation{Code: source.EndedCode(ctx)}
	case errors.Is(err, safehttp.ErrForbidden):
		return source.Forbidden()
	}
	o := source.Observation{Code: source.CodeUnreachable}
	refused, ok := errors.AsType[*connectError](err)
	if !ok {
		return o
	}
	if source.LoginCode(refused.seen.failed) != "" {
		return source.WithoutLogin(refused.seen.failed, s.cfg.FailWithoutLogin)
	}
	o.Status, o.RetryAfter = refused.seen.status, refused.seen.retryAfter
	switch code := source.StatusCode(o.Status); {
	case code != "":
		o.Code = code
	case o.Status != 0 || refused.started:
		o.Code = source.CodeNegotiation
	}
	return o
}

// maxProviderID bounds the length of an id in a result.
const maxProviderID = 256

// answer is a parsed result of a tool.
type answer struct {
	result        json.RawMessage
	providerID    string
	isError       bool
	outcome       string
	retryAfter    time.Duration
	inputRequired bool
}

// errNoResult means that an answer does not have the form of a tool's result.
var errNoResult = errors.New("not the result of a tool call")

// parse parses the original bytes of the result of a tools/call and keeps its
// parts unchanged: content of any type, numbers of any size.
func parse(raw json.RawMessage) (answer, error) {
	var wire struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
		ResultType string            `json:"resultType"`
		Meta       json.RawMessage   `json:"_meta"`
	}
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || trimmed[0] != '{' {
		return answer{}, errNoResult
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return answer{}, errNoResult
	}
	for _, part := range wire.Content {
		if part = bytes.TrimSpace(part); part[0] != '{' {
			return answer{}, errNoResult
		}
	}
	if wire.Content == nil {
		wire.Content = []json.RawMessage{}
	}
	out, err := json.Marshal(struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structured,omitempty"`
	}{wire.Content, wire.Structured})
	if err != nil {
		return answer{}, errNoResult
	}
	outcome, after := outcomeOf(wire.Meta)
	return answer{
		result:        out,
		providerID:    providerID(wire.Structured),
		isError:       wire.IsError,
		outcome:       outcome,
		retryAfter:    after,
		inputRequired: wire.ResultType == "input_required",
	}, nil
}

// outcomeOf returns the server's qualification of its answer in a _meta or the
// data of an error.
func outcomeOf(meta json.RawMessage) (outcome string, after time.Duration) {
	var m map[string]any
	if json.Unmarshal(meta, &m) != nil {
		return "", 0
	}
	outcome, _ = m[MetaOutcome].(string)
	if seconds, ok := m[MetaRetryAfter].(float64); ok {
		limit := source.MaxRetryAfter.Seconds()
		after = time.Duration(min(max(seconds, 0), limit) * float64(time.Second))
	}
	return outcome, after
}

// providerID returns the "id" of the structured result if it is a string of
// reasonable length.
func providerID(structured json.RawMessage) string {
	var named struct {
		ID any `json:"id"`
	}
	if err := json.Unmarshal(structured, &named); err != nil {
		return ""
	}
	id, _ := named.ID.(string)
	if len(id) > maxProviderID {
		return ""
	}
	return id
}

// errorResult encodes a JSON-RPC error as a result, without its data if that is
// too large.
func errorResult(rpcError *jsonrpc.Error, limit int) json.RawMessage {
	type wire struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	w := wire{Code: rpcError.Code, Message: rpcError.Message, Data: rpcError.Data}
	if len(w.Message)+len(w.Data) > limit {
		w.Message, w.Data = "", nil
	}
	out, err := json.Marshal(map[string]wire{"error": w})
	if err != nil {
		return nil
	}
	return out
}
