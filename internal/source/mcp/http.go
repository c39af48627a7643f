package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/countersign-dev/countersign/internal/source"
)

const (
	headerProtocolVersion = "Mcp-Protocol-Version"
	headerSessionID       = "Mcp-Session-Id"
)

// endSessionTimeout bounds the request that ends a session. Some servers answer
// it only after the session's last call has ended.
const endSessionTimeout = time.Second

// errOversized and errMalformed end an unusable response.
var (
	errOversized = errors.New("message is larger than allowed")
	errMalformed = errors.New("message is not valid JSON-RPC")
)

// roundTripper adds the source's headers, bounds every body, and passes on only
// valid answers to a tools/call. It converts invalid ones to errors of that
// request: the SDK would treat them as the end of the session and of all its
// calls.
type roundTripper struct {
	base    http.RoundTripper
	header  http.Header
	limit   int
	version func() string
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	req = req.Clone(ctx)
	for name, values := range t.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if v := t.version(); v != "" && req.Header.Get(headerProtocolVersion) == "" {
		req.Header.Set(headerProtocolVersion, v)
	}
	if req.Method == http.MethodDelete {
		return t.endSession(req)
	}
	p := probeOf(ctx, onWire)
	if p == nil || req.Method != http.MethodPost {
		return t.pass(req, p)
	}

	ctx, watch := source.WatchWrite(ctx)
	p.sent(watch, req.Header.Get(headerSessionID) != "")
	resp, err := t.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if code := source.LoginCode(err); code != "" {
			p.update(func(s *seen) { s.fault, s.failed = code, err })
		}
		return nil, err
	}
	recordStatus(p, resp)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		t.readError(resp, p)
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	switch mediaType(resp) {
	case "text/event-stream":
		resp.Body = newEventFilter(resp.Body, t.limit, p.setFault)
		return resp, nil
	case "application/json":
		if err := t.buffer(resp, p); err != nil {
			return nil, err
		}
		return resp, nil
	}
	_ = resp.Body.Close() // the body is not used
	p.setFault(source.CodeMalformed)
	return nil, errMalformed
}

// maxErrorBody bounds the body of an error.
const maxErrorBody = 64 << 10

// readError reads the body of an answer with an error status. The answer with a
// 4xx to a request without a session may be a JSON-RPC error, which is then the
// answer; with a session it may concern the session.
func (t *roundTripper) readError(resp *http.Response, p *probe) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close() // the rest of the body is not used
	if err != nil || resp.StatusCode < 400 || resp.StatusCode > 499 || mediaType(resp) != "application/json" {
		return
	}
	var answer struct {
		Error *jsonrpc.Error `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error == nil || answer.Error.Code == 0 {
		return
	}
	p.update(func(s *seen) {
		if !s.sessionID {
			s.rpcError = answer.Error
		}
	})
}

// pass sends any request other than tools/call. The probe of a handshake records
// the outcome of its last request. A resumed stream is watched like the original
// one.
func (t *roundTripper) pass(req *http.Request, wire *probe) (*http.Response, error) {
	handshake := probeOf(req.Context(), ofHandshake)
	if handshake != nil {
		handshake.update(func(s *seen) { *s = seen{} })
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		if handshake != nil {
			handshake.update(func(s *seen) { s.failed = err })
		}
		return nil, err
	}
	if handshake != nil {
		recordStatus(handshake, resp)
	}
	if wire != nil && mediaType(resp) == "text/event-stream" {
		resp.Body = newEventFilter(resp.Body, t.limit, wire.setFault)
		return resp, nil
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: t.limit}
	return resp, nil
}

// endSession ends a session. The body of the answer is not read.
func (t *roundTripper) endSession(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), endSessionTimeout)
	defer cancel()
	resp, err := t.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	err = resp.Body.Close()
	resp.Body = http.NoBody
	return resp, err
}

func recordStatus(p *probe, resp *http.Response) {
	p.update(func(s *seen) {
		s.status = resp.StatusCode
		s.retryAfter = source.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
	})
}

// buffer reads and checks a complete JSON answer, so that an invalid one is an
// error of this request.
func (t *roundTripper) buffer(resp *http.Response, p *probe) error {
	body, err := io.ReadAll(&boundedBody{ReadCloser: resp.Body, left: t.limit})
	_ = resp.Body.Close() // read to the end, or given up
	if errors.Is(err, errOversized) {
		p.setFault(source.CodeOversized)
	}
	if err != nil {
		return err
	}
	msg, err := jsonrpc.DecodeMessage(body)
	if _, ok := msg.(*jsonrpc.Response); err != nil || !ok {
		p.setFault(source.CodeMalformed)
		return errMalformed
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func mediaType(resp *http.Response) string {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

// boundedBody fails, rather than ends, at its limit.
type boundedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errOversized
	}
	if len(p) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= n
	if b.left < 0 {
		return n - 1, errOversized
	}
	return n, err
}
