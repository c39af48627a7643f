// Package listen serves HTTP/1.1 to clients that may be slow, silent or hostile.
// It owns the deadlines of reading requests and sending answers, the bounds on
// open connections, and the order of a shutdown. It refuses connections over a
// bound. It makes no decisions about requests: handlers do, with deadlines of
// their own.
package listen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

const (
	// drainFor is the default bound on the time for running requests to end.
	drainFor = 10 * time.Second
	// headerTimeout bounds the arrival of a request's header, idleTimeout the
	// idle time of a connection.
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	// maxHeaderBytes bounds the header of a request.
	maxHeaderBytes = 64 << 10
)

// Limits bound the resources of clients that neither send nor read. A zero field
// means its default.
type Limits struct {
	// Read bounds the arrival of a request, header and body; 30 s by default.
	Read time.Duration
	// Write bounds the sending of an answer, or of each flushed piece of it; 15
	// s by default.
	Write time.Duration
	// Connections bounds all open connections; 5000 by default.
	Connections int
	// AddressConnections bounds the unauthenticated connections of one address;
	// 200 by default. A /64 network of IPv6 counts as one address.
	AddressConnections int
	// CallerConnections bounds the connections of one caller; 400 by default. A
	// tenant has five times as many.
	CallerConnections int
	// TrustedProxies are the proxies whose header X-Forwarded-For counts. Since
	// their connections carry requests of many clients, each request counts as a
	// connection of its client while it is served.
	TrustedProxies []netip.Prefix
}

func (l Limits) withDefaults() Limits {
	l.Read, l.Write = cmp.Or(l.Read, 30*time.Second), cmp.Or(l.Write, 15*time.Second)
	l.Connections = cmp.Or(l.Connections, 5000)
	l.AddressConnections = cmp.Or(l.AddressConnections, 200)
	l.CallerConnections = cmp.Or(l.CallerConnections, 400)
	return l
}

// Config configures Run.
type Config struct {
	// Address is the address to listen on, and Setting the name of its setting.
	Address, Setting string
	Handler          http.Handler
	Limits           Limits
	// Refused is called with the exceeded bound of a refused connection or
	// request: all, address, caller or tenant. It must not block. It may be nil.
	Refused func(bound string)
	// Linger is the time during which requests are still answered after the
	// context ended. Each answer closes its connection, so that the client's
	// next request reaches another process.
	Linger time.Duration
	// End, if not nil, is called after Linger. It ends requests that do not end
	// by themselves.
	End func()
	// Drain bounds the time for the remaining requests to end after End; 10 s by
	// default.
	Drain time.Duration
	Log   *slog.Logger
}

// Open listens on an address. Its error names the address and its setting.
func Open(ctx context.Context, address, setting string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		return listener, nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // which does not repeat the address
	}
	remedy := "choose another address with " + setting
	if errors.Is(err, syscall.EADDRINUSE) {
		remedy = "stop the program that listens there, or " + remedy
	}
	return nil, fmt.Errorf("cannot listen on %s: %w; %s", address, err, remedy)
}

// Run listens and serves until ctx ends, and returns when every request has been
// answered, or Drain after End.
func Run(ctx context.Context, cfg Config) error {
	listener, err := Open(ctx, cfg.Address, cfg.Setting)
	if err != nil {
		return err
	}
	cfg.Log.InfoContext(ctx, "listening", slog.String("address", listener.Addr().String()))
	return Serve(ctx, listener, cfg)
}

// Serve is Run for a listener, which it closes. When it returns, all connections
// are closed.
func Serve(ctx context.Context, listener net.Listener, cfg Config) error {
	cfg.Limits = cfg.Limits.withDefaults()
	g := newGate(cfg.Limits, cfg.Refused)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	serving := &http.Server{
		Handler: &handler{next: cfg.Handler, gate: g, stopping: ctx}, Protocols: protocols,
		ReadHeaderTimeout: min(headerTimeout, cfg.Limits.Read), ReadTimeout: cfg.Limits.Read, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ConnContext: withConnection,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- serving.Serve(&admitting{listener, g}) }() // Serve waits for it
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	cfg.Log.InfoContext(ctx, "stopping", slog.String("address", listener.Addr().String()), slog.Duration("linger", cfg.Linger))
	timer := time.NewTimer(cfg.Linger)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
	}
	if cfg.End != nil {
		cfg.End()
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(cfg.Drain, drainFor))
	defer cancel()
	err := serving.Shutdown(last)
	if err != nil {
		err = errors.Join(err, serving.Close())
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
