package imap

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
)

const (
	// answerTimeout is how long a waiting connection has for an answer before it
	// counts as dead.
	answerTimeout = 30 * time.Second
	// pushedInterval bounds a Wait for folders of whose changes the server tells,
	// in case it does not.
	pushedInterval = 10 * time.Minute
)

// Wait waits for the notes of the connections that idle, one for each of the
// first folders, and for the interval if there are more, if the server has no
// IDLE, or if a connection failed.
func (r *Reader) Wait(ctx context.Context, folders []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	pushed := true
	for _, folder := range folders {
		pushed = r.idle(folder) && pushed
	}
	interval := r.config.Interval
	if pushed {
		interval = max(interval, pushedInterval)
	}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.changed:
	case <-timer.C:
	}
	return nil
}

// idle starts to wait for a folder, if it may, and reports whether the server
// tells of changes of it.
func (r *Reader) idle(folder string) bool {
	if waiting := r.idlers[folder]; waiting != nil {
		return waiting.pushed.Load()
	}
	if len(r.idlers) >= r.config.Idle || r.idling.Err() != nil {
		return false
	}
	waiting := &idler{config: r.config, folder: folder, changed: r.changed}
	waiting.pushed.Store(true) // until the server says otherwise
	r.idlers[folder] = waiting
	r.running.Go(func() { waiting.run(r.idling) })
	return true
}

// idler keeps a connection that waits for changes of one folder. Its Reader
// ends it.
type idler struct {
	config  Config
	folder  string
	changed chan<- struct{}
	// pushed says that the server tells of changes.
	pushed atomic.Bool
}

// note tells the Reader that something may have changed.
func (i *idler) note() {
	select {
	case i.changed <- struct{}{}:
	default: // it knows already
	}
}

// run waits until ctx ends, on a new connection whenever one fails.
func (i *idler) run(ctx context.Context) {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(i.config.Backoff), backoff.WithMaxInterval(5*time.Minute), backoff.WithMaxElapsedTime(0),
	)
	for ctx.Err() == nil {
		err := i.hold(ctx, wait.Reset)
		i.pushed.Store(false)
		i.note() // of what nobody waited for, and so that Wait goes by the interval
		if errors.Is(err, mailbox.ErrUnsupported) || errors.Is(err, mailbox.ErrDenied) || errors.Is(err, mailbox.ErrNoFolder) {
			return // the calls of the Reader say why
		}
		timer := time.NewTimer(max(wait.NextBackOff(), mailbox.RetryAfter(err)))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// hold makes a connection and idles on it until it fails. It calls connected
// when the server told of its state.
func (i *idler) hold(ctx context.Context, connected func()) error {
	conn, err := i.config.connect(ctx, i.handler())
	if err != nil {
		return err
	}
	defer conn.close()
	if !conn.caps.Has(imap.CapIdle) {
		return mailbox.ErrUnsupported
	}
	if _, err := conn.examine(ctx, i.folder); err != nil {
		return err
	}
	connected()
	i.pushed.Store(true)
	i.note() // of what came before the connection
	for {
		if err := conn.idle(ctx, i.config.IdleRenewal); err != nil {
			return err
		}
	}
}

func (i *idler) handler() *imapclient.UnilateralDataHandler {
	return &imapclient.UnilateralDataHandler{
		Expunge: func(uint32) { i.note() },
		Mailbox: func(*imapclient.UnilateralDataMailbox) { i.note() },
		Fetch: func(data *imapclient.FetchMessageData) {
			for data.Next() != nil {
			}
			i.note()
		},
	}
}

// idle sends IDLE and ends it after a while, which renews it and shows that the
// server is still there: one that went without a word is found by the answer
// that does not come.
func (conn *connection) idle(ctx context.Context, renewal time.Duration) error {
	stop := context.AfterFunc(ctx, func() { conn.socket.Close() })
	defer stop()
	if err := conn.config.Quota.Take(ctx, quota.Command); err != nil {
		return err
	}
	began := time.AfterFunc(answerTimeout, func() { conn.socket.Close() })
	command, err := conn.client.Idle()
	began.Stop()
	if err != nil {
		return conn.config.fault("IDLE", err)
	}
	timer := time.NewTimer(renewal)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-conn.client.Closed():
	case <-timer.C:
	}
	answered := time.AfterFunc(answerTimeout, func() { conn.socket.Close() })
	defer answered.Stop()
	if err := command.Close(); err != nil {
		return errConnection
	}
	if err := command.Wait(); err != nil {
		return errConnection
	}
	return ctx.Err()
}
