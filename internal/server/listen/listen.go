// Package listen serves HTTP until its context ends, and then stops in the
// order in which no request is refused: it first goes on answering while load
// balancers learn that it ends, then ends the requests that would last, and at
// last lets the others finish. It does not know what is served.
package listen

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// drainFor bounds how long running requests may take to end.
const drainFor = 10 * time.Second

// Config configures Run.
type Config struct {
	// Address is where to listen.
	Address string
	Handler http.Handler
	// Linger is for how long requests are answered as before after the context has
	// ended. Each of these answers ends its connection, so that the client's next
	// request goes to another process.
	Linger time.Duration
	// End is called after that. It ends the requests that would not end by
	// themselves.
	End func()
	Log *slog.Logger
}

// Run listens and serves until ctx ends, and returns when every request has been
// answered, or drainFor after End.
func Run(ctx context.Context, cfg Config) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Address)
	if err != nil {
		return err
	}
	cfg.Log.InfoContext(ctx, "listening", slog.String("address", listener.Addr().String()))
	return Serve(ctx, listener, cfg)
}

// Serve is Run for a listener, which it closes.
func Serve(ctx context.Context, listener net.Listener, cfg Config) error {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		cfg.Handler.ServeHTTP(w, r)
	})
	// Bodies and answers have deadlines of their own, by what they are.
	serving := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- serving.Serve(listener) }() // Serve waits for it
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	cfg.Log.InfoContext(ctx, "stopping", slog.Duration("linger", cfg.Linger))
	timer := time.NewTimer(cfg.Linger)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
	}
	cfg.End()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	err := serving.Shutdown(last)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
