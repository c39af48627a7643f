package mail

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
)

const (
	// idleTime is how long an idle connection stays open.
	idleTime = time.Minute
	// maxWaiting bounds the calls that wait for their turn, since each occupies
	// a slot of the worker. maxWait bounds their wait, so that time is left for
	// the call itself. Further calls are retried after comeAgain.
	maxWaiting = 32
	maxWait    = 10 * time.Second
	comeAgain  = 2 * time.Second
)

// account is a mailbox with at most one connection, which is used by one call at
// a time.
type account struct {
	Account
	// turn contains a token while a call uses the fields below.
	turn chan struct{}
	// waiting counts the calls that wait for turn.
	waiting atomic.Int32

	writer mailbox.Writer // nil while disconnected
	idle   *time.Timer
	closed bool
}

func newAccount(of Account) *account { return &account{Account: of, turn: make(chan struct{}, 1)} }

// session is an account during one call.
type session struct {
	*account
	source *Source
	// broken is set if the connection is no longer usable.
	broken bool
}

// do runs a call after the previous ones have ended.
func (a *account) do(ctx context.Context, s *Source, run func(*session) source.Observation) source.Observation {
	if !a.takeTurn(ctx) {
		if code := source.EndedCode(ctx); ctx.Err() != nil && code != source.CodeTimeout {
			return source.Observation{Code: code}
		}
		// Not a failure of the mailbox: other calls took the time.
		return source.Observation{
			Held: true, Code: source.CodeRateLimited, RetryAfter: comeAgain, Message: s.name + ": other calls of the account are before this one",
		}
	}
	defer func() { <-a.turn }()
	if a.closed {
		return source.Observation{Code: source.CodeClosed}
	}
	defer a.watchIdle()
	for reused := a.writer != nil; ; reused = false {
		o, broken := a.try(ctx, s, run)
		if broken && reused && !o.Written && ctx.Err() == nil {
			continue // the connection broke since the previous call, and this one has changed nothing
		}
		return o
	}
}

// takeTurn waits for the previous calls. It returns false if that takes too long
// or too many are waiting.
func (a *account) takeTurn(ctx context.Context) bool {
	defer a.waiting.Add(-1)
	if a.waiting.Add(1) > maxWaiting {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	select {
	case a.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// try runs a call once, and reports whether the connection broke. The caller has
// the turn.
func (a *account) try(ctx context.Context, s *Source, run func(*session) source.Observation) (o source.Observation, broken bool) {
	on := &session{account: a, source: s}
	if a.writer == nil {
		w, err := a.Open(ctx)
		if err != nil {
			return on.failed(ctx, err, false), true
		}
		a.writer = w
	}
	o = run(on)
	if on.broken {
		_ = a.writer.Close() // the error that broke it is more specific
		a.writer = nil
	}
	return o, on.broken
}

// watchIdle closes the connection when it has been idle for a while. The caller
// has the turn.
func (a *account) watchIdle() {
	if a.idle != nil {
		a.idle.Stop()
		a.idle = nil
	}
	if a.writer == nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(idleTime, func() {
		a.turn <- struct{}{}
		defer func() { <-a.turn }()
		if a.idle == timer && a.writer != nil {
			_ = a.writer.Close() // the connection is idle
			a.writer, a.idle = nil, nil
		}
	})
	a.idle = timer
}

// close closes the connection for good. No call may be running.
func (a *account) close() error {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	a.closed = true
	if a.idle != nil {
		a.idle.Stop()
	}
	if a.writer == nil {
		return nil
	}
	w := a.writer
	a.writer = nil
	return w.Close()
}

// failed returns the observation for an error of the mailbox. written is set if
// the call may have changed something. The server's text is not shown, since it
// is untrusted.
func (s *session) failed(ctx context.Context, err error, written bool) source.Observation {
	refuse := s.source.refuse
	switch {
	case errors.Is(err, safehttp.ErrForbidden): // takes precedence
		return source.Forbidden()
	case errors.Is(err, mailbox.ErrGone):
		return refuse(source.CodeNotFound, "no such message in the folder of the call, or elsewhere by its Message-ID")
	case errors.Is(err, mailbox.ErrChanged):
		return refuse(source.CodeChanged, "the message is being changed by someone else")
	case errors.Is(err, mailbox.ErrNoFolder):
		return refuse(source.CodeNotFound, "the account has no folder of this name")
	case errors.Is(err, mailbox.ErrUnsupported):
		return refuse(source.CodeUnsupported, "the mailbox cannot hold these keywords, or cannot move the message safely")
	case errors.Is(err, mailbox.ErrInvalid):
		return refuse(source.CodeInvalidArgs, "the mailbox cannot store the values of the arguments")
	case errors.Is(err, mailbox.ErrTooLarge):
		return refuse(source.CodeOversized, "the message is larger than the account's limit")
	case errors.Is(err, mailbox.ErrDenied):
		return refuse(source.CodeUnauthorized, "the mailbox denies this: check the credentials, their rights and the server's certificate; without TLS only the worker's machine is reached")
	case errors.Is(err, mailbox.ErrBusy):
		return source.Observation{Code: source.CodeRateLimited, RetryAfter: min(mailbox.RetryAfter(err), source.MaxRetryAfter)}
	}
	s.broken = true
	switch {
	case ctx.Err() != nil:
		return source.Observation{Written: written, Code: source.EndedCode(ctx)}
	case written:
		return source.Observation{Written: true, Code: source.CodeLost}
	}
	return source.Observation{Code: source.CodeUnreachable}
}

// folder returns the folder of a use: the configured one, or the first one that
// the account has for one of the uses. The error is mailbox.ErrNoFolder if it
// does not exist.
func (s *session) folder(ctx context.Context, uses ...mailbox.Use) (string, error) {
	all, err := s.writer.Folders(ctx)
	if err != nil {
		return "", err
	}
	if name := s.Folders[uses[0]]; name != "" {
		if slices.ContainsFunc(all, func(f mailbox.Folder) bool { return f.Name == name }) {
			return name, nil
		}
		return "", mailbox.ErrNoFolder
	}
	for _, use := range uses {
		if i := slices.IndexFunc(all, func(f mailbox.Folder) bool { return f.Use == use }); i >= 0 {
			return all[i].Name, nil
		}
	}
	return "", mailbox.ErrNoFolder
}
