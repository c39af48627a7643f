package listen_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-dev/countersign/internal/listen"
)

const linger = 5 * time.Second

// fixture is a server, which stop shuts down, and its client.
type fixture struct {
	t      *testing.T
	stop   context.CancelFunc
	ended  chan error
	client *http.Client
	// release answers requests of /slow; End of the server does so for /stream.
	release, streams chan struct{}
	endedAfter       time.Duration
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &fixture{t: t, stop: stop, ended: make(chan error, 1), release: make(chan struct{}), streams: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/slow", func(http.ResponseWriter, *http.Request) { <-f.release })
	mux.HandleFunc("/stream", func(http.ResponseWriter, *http.Request) { <-f.streams })
	listener, start := newMemory(), time.Now()
	f.client = &http.Client{Transport: &http.Transport{DialContext: listener.from("192.0.2.1")}}
	t.Cleanup(f.client.CloseIdleConnections)
	go func() { // every test receives from ended
		f.ended <- listen.Serve(ctx, listener, listen.Config{Handler: mux, Linger: linger, Log: slog.New(slog.DiscardHandler), End: func() {
			f.endedAfter = time.Since(start)
			close(f.streams)
		}})
	}()
	return f
}

// get returns whether the answer closed its connection.
func (f *fixture) get(path string) (closes bool, err error) {
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://memory"+path, http.NoBody)
	if err != nil {
		return false, err
	}
	res, err := f.client.Do(req)
	if err != nil {
		return false, err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.Close, res.Body.Close()
}

func TestServerAnswersWhileLingering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		if closes, err := f.get("/"); closes || err != nil {
			t.Errorf("before the end: closes %t, %v, want an answer on a connection that stays", closes, err)
		}
		f.stop()
		synctest.Wait()
		// The first request uses the idle connection, the others new ones.
		for range 4 {
			if closes, err := f.get("/"); !closes || err != nil {
				t.Errorf("after the signal: closes %t, %v, want an answer that ends its connection", closes, err)
			}
			time.Sleep(linger / 5)
		}

		if err := <-f.ended; err != nil || f.endedAfter != linger {
			t.Errorf("Serve = %v, End was called after %v, want %v", err, f.endedAfter, linger)
		}
		if _, err := f.get("/"); !errors.Is(err, errRefused) {
			t.Errorf("after the end: %v, want a refused connection", err)
		}
	})
}

func TestLongRequestsEndInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		answers := make(chan error, 2)
		for _, path := range []string{"/stream", "/slow"} {
			go func() { _, err := f.get(path); answers <- err }() // received below
		}
		synctest.Wait()
		f.stop()

		// The stream ends with End, the other request by itself.
		if err := <-answers; err != nil || f.endedAfter != linger {
			t.Errorf("the stream ended with %v, and End was called after %v, want %v", err, f.endedAfter, linger)
		}
		close(f.release)
		if err := <-answers; err != nil {
			t.Errorf("the slow request ended with %v", err)
		}
		if err := <-f.ended; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
}

func TestEndlessRequestsAreCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		answer := make(chan error, 1)
		go func() { _, err := f.get("/slow"); answer <- err }() // received below
		synctest.Wait()
		f.stop()

		if err := <-f.ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Serve = %v, want that its time was up", err)
		}
		close(f.release)
		<-answer
	})
}

func TestAddressInUseIsAnError(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()

	address := taken.Addr().String()
	err = listen.Run(t.Context(), listen.Config{Address: address, Setting: "COUNTERSIGN_LISTEN"})
	for _, want := range []string{address + ": ", "address already in use", "stop the program", "COUNTERSIGN_LISTEN"} {
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("Run = %v, want %q once", err, want)
		}
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("Run = %v, want EADDRINUSE", err)
	}
}
