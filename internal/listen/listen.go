// Package listen serves HTTP/1.1 to clients that may be slow, silent or hostile.
// It owns the deadlines of reading requests and sending answers, the bounds on
// open connections, and the order in which a server stops. It refuses
// connections over a bound, and does not decide about requests: handlers do, and
// have deadlines of their own for their work.
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
	// drainFor bounds how long running requests may take to end by default.
	drainFor = 10 * time.Second
	// headerTimeout bounds how long the header of a request may take to arrive,
	// idleTimeout how long a connection stays open without a request.
	headerTimeout = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	// maxHeaderBytes bounds the header of a request.
	maxHeaderBytes = 64 << 10
)

// Limits bound what clients can hold that send or read nothing. A zero field
// means its default.
type Limits struct {
	// Read bounds how long a request may take to arrive, header and body; 30 s by
	// default.
	Read time.Duration
	// Write bounds how long an answer may take to be sent, or one piece of an answer
	// that is flushed piece by piece; 15 s by default.
	Write time.Duration
	// Connections bounds all connections that are open at once; 5000 by default.
	Connections int
	// AddressConnections bounds the connections of one address on which no caller
	// was authenticated; 200 by default. The addresses of a /64 network of IPv6
	// count as one.
	AddressConnections int
	// CallerConnections bounds the connections of one caller; 400 by default. A
	// tenant has five times as many.
	CallerConnections int
	// TrustedProxies are the proxies whose header X-Forwarded-For counts. Their
	// connections carry requests of many clients. So each request counts as a
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
	// Address is the address to listen on, and Setting the setting that holds it.
	Address, Setting string
	Handler          http.Handler
	Limits           Limits
	// Refused is called with the bound that a refused connection or request
	// exceeds: all, address, caller or tenant. It must not block; nil counts
	// nothing.
	Refused func(bound string)
	// Linger is for how long requests are answered as before after the context has
	// ended. Each of these answers ends its connection, so that the client's next
	// request goes to another process.
	Linger time.Duration
	// End is called after that, if not nil. It ends the requests that would not end
	// by themselves.
	End func()
	// Drain bounds how long the other requests may take to end after that; 10 s by
	// default.
	Drain time.Duration
	Log   *slog.Logger
}

// Open listens on an address. Its error names the address and the setting that
// changes it.
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

// Serve is Run for a listener, which it closes. No connection is open when it
// has returned.
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
