package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
)

// pingTimeout bounds the ping of a child after a timed-out call; without an
// answer the child is replaced.
const pingTimeout = 2 * time.Second

const (
	// steadyAfter is the run time after which the end of a child is not early.
	steadyAfter = time.Minute
	// maxRestarts bounds the consecutive restarts of a child that ends early.
	maxRestarts = 8
)

// session is one MCP session and its connection.
type session struct {
	sdk  *sdk.ClientSession
	conn *watchedConn
	// suspect is set when a call over stdio timed out. A ping distinguishes a
	// slow tool from a hanging child.
	suspect atomic.Bool
	retired bool // guarded by Source.mu
}

// close ends the session and waits for calls that still use it.
func (s *session) close() error { return s.sdk.Close() }

// connectError is the error of opening a session.
type connectError struct {
	// seen is the data of the last request of the handshake, if it was HTTP.
	seen seen
	// started is set if the child was started, and words is its status.
	started bool
	words   string
	cause   error
}

func (e *connectError) Error() string { return e.cause.Error() }
func (e *connectError) Unwrap() error { return e.cause }

// session returns the current session, or opens one that concurrent callers
// share. The error is a *connectError, or the cause of ctx's end.
func (s *Source) session(ctx context.Context) (*session, error) {
	s.mu.Lock()
	sess := s.current
	s.mu.Unlock()
	if sess != nil && !sess.suspect.Load() {
		return sess, nil
	}
	// The dial outlives the context of its first caller.
	dialed := s.dials.DoChan("", func() (any, error) {
		dialCtx, end, ok := s.calls.Start(context.WithoutCancel(ctx), s.cfg.ListTimeout)
		if !ok {
			return nil, source.ErrClosed
		}
		defer end()
		return s.renew(dialCtx)
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r := <-dialed:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*session), nil
	}
}

// renew returns the current session if it works, and replaces it otherwise. Only
// one renew runs at a time.
func (s *Source) renew(ctx context.Context) (*session, error) {
	s.mu.Lock()
	sess := s.current
	s.mu.Unlock()
	if sess != nil {
		if alive(ctx, sess) {
			return sess, nil
		}
		s.log.WarnContext(ctx, "mcp server does not answer a ping and is replaced")
		sess.conn.kill()
		s.retire(sess)
	}
	sess, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.current = sess
	}
	s.mu.Unlock()
	if closed {
		sess.conn.closeChild()
		return nil, errors.Join(source.ErrClosed, sess.close())
	}
	s.calls.Go(func() { s.watch(sess) })
	return sess, nil
}

// alive clears the suspicion of a session, with a ping if necessary. An error
// that the server itself sent shows that it answers.
func alive(ctx context.Context, sess *session) bool {
	if !sess.suspect.Load() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err := sess.sdk.Ping(ctx, nil)
	if _, answered := errors.AsType[*jsonrpc.Error](err); err != nil && !answered {
		return false
	}
	sess.suspect.Store(false)
	return true
}

// connect opens a session.
func (s *Source) connect(ctx context.Context) (*session, error) {
	var p probe
	ctx = withProbe(ctx, ofHandshake, &p)
	conn := &watchedConn{pending: make(map[jsonrpc.ID]*probe)}
	var transport sdk.Transport
	if s.cfg.Transport == TransportStdio {
		transport = &stdioTransport{source: s}
	} else {
		transport = &sdk.StreamableClientTransport{
			Endpoint: s.cfg.URL,
			HTTPClient: safehttp.NewClient(&roundTripper{
				base: s.authorized(), header: s.cfg.Header, limit: s.frameLimit(), version: conn.protocolVersion,
			}, 0),
			// A broken stream with numbered events is resumed, so that the
			// answer of a slow call still arrives.
			MaxRetries:           2,
			DisableStandaloneSSE: true,
			MaxEventSize:         -1, // roundTripper bounds every body
		}
	}
	cs, err := s.client.Connect(ctx, &watchedTransport{inner: transport, conn: conn}, nil)
	if err != nil {
		words := conn.childStatus()
		conn.kill()
		if cause := context.Cause(ctx); errors.Is(cause, source.ErrClosed) {
			err = source.ErrClosed
		}
		return nil, &connectError{seen: p.seen(), started: conn.child() != nil, words: words, cause: fmt.Errorf("connect: %w", printable(err))}
	}
	return &session{sdk: cs, conn: conn}, nil
}

// watch waits for a session's end and retires it.
func (s *Source) watch(sess *session) {
	began := time.Now()
	err := sess.sdk.Wait()
	s.mu.Lock()
	closed, replaced := s.closed, s.current != nil && s.current != sess
	s.mu.Unlock()
	if !closed && err != nil {
		s.log.Warn("mcp session ended", slog.String("cause", sess.conn.fault()))
	}
	s.retire(sess)
	if !closed && !replaced && s.cfg.Transport == TransportStdio {
		s.restart(time.Since(began))
	}
}

// restart restarts a child that ended after lived: immediately, and then after
// growing waits while it ends early or does not start. After maxRestarts
// consecutive restarts it leaves that to the next call.
func (s *Source) restart(lived time.Duration) {
	for {
		s.mu.Lock()
		wait := time.Duration(0)
		if s.restarts == nil || lived > steadyAfter {
			growing := backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithMaxInterval(time.Minute), backoff.WithMaxElapsedTime(0))
			s.restarts = backoff.WithMaxRetries(growing, maxRestarts)
		} else {
			wait = s.restarts.NextBackOff()
		}
		s.mu.Unlock()
		if wait == backoff.Stop {
			s.log.Warn("mcp program ends early and waits for the next call")
			return
		}
		s.log.Info("mcp program is started again", slog.Duration("after", wait))
		if s.startAfter(wait) {
			return
		}
		lived = 0
	}
}

// startAfter opens a session after a wait. It returns true if there is one, or
// if the source is closed.
func (s *Source) startAfter(wait time.Duration) bool {
	ctx, end, ok := s.calls.Start(context.Background(), max(wait, 0)+s.cfg.ListTimeout)
	if !ok {
		return true
	}
	defer end()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-timer.C:
	}
	_, err := s.session(ctx)
	return err == nil || errors.Is(err, source.ErrClosed)
}

// retire removes a session from use. It is closed when its running calls have
// ended.
func (s *Source) retire(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == sess {
		s.current = nil
	}
	if sess.retired || s.closed {
		return
	}
	sess.retired = true
	s.calls.Go(func() {
		if err := sess.close(); err != nil {
			s.log.Debug("mcp session not closed cleanly", slog.String("error", printable(err).Error()))
		}
	})
}

// printable reduces an error of the SDK to its loggable part: addresses,
// statuses and codes, but neither the source's URL, which may contain a secret,
// nor untrusted text from the server.
func printable(err error) error {
	for _, known := range []error{source.ErrClosed, errTooMany, errMalformed, errOversized} {
		if errors.Is(err, known) {
			return known
		}
	}
	if refused, ok := errors.AsType[*connectError](err); ok {
		return refused.cause // printable already
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path
	}
	if command, ok := errors.AsType[*exec.Error](err); ok {
		return command
	}
	for _, known := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, known) {
			return known
		}
	}
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Errorf("json-rpc error %d", answer.Code)
	}
	return errors.New("session failed")
}
