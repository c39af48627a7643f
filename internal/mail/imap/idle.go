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
	// answerTimeout is how long a server may take to answer an idling
	// connection before it counts as dead.
	answerTimeout = 30 * time.Second
	// pushedInterval bounds a Wait for folders whose changes the server pushes,
	// in case one is lost.
	pushedInterval = 10 * time.Minute
)

// Wait waits for a notification of the idling connections, one for each of the
// first folders. It also returns after the interval if there are more folders,
// the server has no IDLE, or a connection failed.
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

// idle begins to idle on a folder, if the limit allows, and reports whether the
// server pushes its changes.
func (r *Reader) idle(folder string) bool {
	if waiting := r.idlers[folder]; waiting != nil {
		return waiting.pushed.Load()
	}
	if len(r.idlers) >= r.config.Idle || r.idling.Err() != nil {
		return false
	}
	waiting := &idler{config: r.config, folder: folder, changed: r.changed}
	waiting.pushed.Store(true) // until the connection fails
	r.idlers[folder] = waiting
	r.running.Go(func() { waiting.run(r.idling) })
	return true
}

// idler keeps a connection that idles on one folder. The Reader closes it.
type idler struct {
	config  Config
	folder  string
	changed chan<- struct{}
	// pushed reports whether the server pushes changes.
	pushed atomic.Bool
}

// note notifies the Reader of a possible change.
func (i *idler) note() {
	select {
	case i.changed <- struct{}{}:
	default: // already notified
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
		i.note() // changes may have been missed, and Wait must use the interval
		if errors.Is(err, mailbox.ErrUnsupported) || errors.Is(err, mailbox.ErrDenied) || errors.Is(err, mailbox.ErrNoFolder) {
			return // the calls of the Reader return the reason
		}
		timer := time.NewTimer(max(wait.NextBackOff(), mailbox.RetryAfter(err)))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// hold opens a connection and idles on it until it fails. It calls connected
// after the server sent its state.
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
	i.note() // of changes before the connection
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

// idle sends IDLE and ends it after the renewal interval. A missing answer then
// reveals a dead connection.
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
