package imap

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
)

// loginTimeout bounds connecting and logging in together.
const loginTimeout = time.Minute

// socket counts the reads that returned data.
type socket struct {
	net.Conn
	reads atomic.Int64
	// broken reports whether the network failed, and silent whether the server
	// sent nothing for too long.
	broken, silent atomic.Bool
}

// Read implements net.Conn.
func (s *socket) Read(buffer []byte) (int, error) {
	n, err := s.Conn.Read(buffer)
	if n > 0 {
		s.reads.Add(1)
	}
	if err != nil {
		s.broken.Store(true)
	}
	return n, err
}

// Write implements net.Conn.
func (s *socket) Write(buffer []byte) (int, error) {
	n, err := s.Conn.Write(buffer)
	if err != nil {
		s.broken.Store(true)
	}
	return n, err
}

// closeWhenSilent closes the socket when nothing arrives for a while, until
// stop is called. The library itself waits forever.
func (s *socket) closeWhenSilent(patience time.Duration) (stop func()) {
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(patience)
		defer tick.Stop()
		for before := s.reads.Load(); ; {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			now := s.reads.Load()
			if now == before {
				s.silent.Store(true)
				s.Close()
			}
			before = now
		}
	})
	return func() {
		close(done)
		watching.Wait()
	}
}

// connection is an authenticated connection.
type connection struct {
	config Config
	socket *socket
	client *imapclient.Client
	caps   imap.CapSet
	opened opened
	// unusable belongs to the Reader.
	unusable unusable
	// begun reports whether a change has begun, which is then completed
	// regardless of the quota.
	begun bool
}

// connect opens a connection and logs in.
func (c Config) connect(ctx context.Context, handler *imapclient.UnilateralDataHandler) (*connection, error) {
	if err := c.Quota.Take(ctx, quota.Command); err != nil {
		return nil, err
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	dialed, err := c.dial(ctx)
	if err != nil {
		return nil, cmp.Or(caller.Err(), err)
	}
	socket := &socket{Conn: dialed}
	// The library has no contexts: close the socket when ctx ends.
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	defer stop()
	conn := &connection{config: c, socket: socket}
	options := &imapclient.Options{UnilateralDataHandler: handler, TLSConfig: c.tlsConfig()}
	if c.Security == StartTLS {
		conn.client, err = imapclient.NewStartTLS(socket, options)
		if _, refused := errors.AsType[*imap.Error](err); err != nil && !refused {
			err = c.dialFault(err)
		}
	} else {
		conn.client = imapclient.New(socket, options)
		err = conn.client.WaitGreeting()
	}
	if err == nil && conn.client.State() != imap.ConnStateAuthenticated {
		err = c.login(ctx, conn.client)
	}
	if err == nil {
		if conn.caps = conn.client.Caps(); conn.caps == nil {
			err = errConnection
		}
	}
	if err != nil {
		socket.Close()
		if ctx.Err() != nil {
			err = errConnection
		}
		return nil, cmp.Or(caller.Err(), c.fault("connect", err))
	}
	return conn, nil
}

func (c Config) dial(ctx context.Context) (net.Conn, error) {
	transport := c.guard().Transport()
	socket, err := transport.DialContext(ctx, "tcp", c.Address)
	if err != nil {
		return nil, c.dialFault(err)
	}
	if c.Security != TLS {
		return socket, nil
	}
	secure := tls.Client(socket, c.tlsConfig())
	if err := secure.HandshakeContext(ctx); err != nil {
		socket.Close()
		return nil, c.dialFault(err)
	}
	return secure, nil
}

func (c Config) tlsConfig() *tls.Config {
	config := new(tls.Config)
	if c.TLSConfig != nil {
		config = c.TLSConfig.Clone()
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(c.Address)
	}
	return config
}

// close ends the connection without waiting for the server.
func (conn *connection) close() {
	if conn != nil {
		conn.socket.Close()
	}
}

// do sends one command and waits until it completes or ctx ends.
func (conn *connection) do(ctx context.Context, doing string, command func() error) error {
	if !conn.begun {
		if err := conn.config.Quota.Take(ctx, quota.Command); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { conn.socket.Close() })
	defer conn.socket.closeWhenSilent(conn.config.Timeout)()
	err := command()
	if !stop() && ctx.Err() != nil {
		return ctx.Err() // the socket is closed
	}
	return conn.config.fault(doing, err)
}

// dialer keeps one connection and replaces it when it fails.
type dialer struct {
	config Config
	conn   *connection
	// unusable belongs to the Reader; a Writer has none.
	unusable unusable
}

// run calls a function with a connection, and again with a new one if that
// failed. The function must be idempotent.
func (d *dialer) run(ctx context.Context, call func(*connection) error) error {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(d.config.Backoff), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(time.Minute), backoff.WithMaxElapsedTime(0),
	)
	for attempt := 1; ; attempt++ {
		kept := d.conn != nil
		err := d.try(ctx, call)
		if failed, ok := errors.AsType[*fetchError](err); ok && failed.unparsed {
			return err // a retry would fail alike
		}
		if kept && attempt == 1 && (errors.Is(err, errConnection) || errors.Is(err, mailbox.ErrNoFolder)) {
			// An idle connection was closed, as is usual, or does not find a
			// folder that was recreated: this is no fault of the server.
			d.close()
			continue
		}
		if err == nil || !errors.Is(err, errConnection) || attempt >= d.config.Attempts {
			return err
		}
		timer := time.NewTimer(wait.NextBackOff())
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

func (d *dialer) try(ctx context.Context, call func(*connection) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.conn == nil {
		conn, err := d.config.connect(ctx, nil)
		if err != nil {
			return err
		}
		conn.unusable = d.unusable
		d.conn = conn
	}
	err := call(d.conn)
	if errors.Is(err, errConnection) || ctx.Err() != nil {
		d.close()
	}
	return err
}

func (d *dialer) close() {
	d.conn.close()
	d.conn = nil
}
