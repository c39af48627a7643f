package listen_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-dev/countersign/internal/listen"
)

// patience is the test's timeout for events that are due much sooner.
const patience = 20 * time.Second

// start serves on a port of this machine until the test ends, and returns its
// address.
func start(t *testing.T, limits listen.Limits, handle http.HandlerFunc) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { // received below
		served <- listen.Serve(ctx, listener, listen.Config{
			Handler: handle, Limits: limits, Log: slog.New(slog.DiscardHandler), Drain: time.Millisecond,
		})
	}()
	t.Cleanup(func() {
		stop()
		<-served // with an error if the test has failed and left something open
	})
	return listener.Addr().String()
}

// dial opens a connection with a deadline.
func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// readToEnd reads until the server closes the connection.
func readToEnd(t *testing.T, c net.Conn) string {
	t.Helper()
	got, err := io.ReadAll(c)
	if wait, ok := err.(net.Error); ok && wait.Timeout() {
		t.Fatalf("the connection is still open after %q", got)
	}
	return string(got)
}

// readBody reads the body of a request. It answers 200, or 400 if the body does
// not arrive.
func readBody(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
}

// TestSilentClientsAreClosed stops sending at several places of a request.
func TestSilentClientsAreClosed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ sends, want string }{
		"nothing":                   {"", ""},
		"half a header":             {"POST / HTTP/1.1\r\nHost: x\r\nX-Long: ", ""},
		"a body announced only":     {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nx", "HTTP/1.1 400 "},
		"half a chunk":              {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nx", "HTTP/1.1 400 "},
		"chunks without an end":     {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", "HTTP/1.1 400 "},
		"a body that is asked for":  {"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 "},
		"half of a second request":  {"GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\n", "HTTP/1.1 200 "},
		"a body after another one":  {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nxPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx", "HTTP/1.1 200 "},
		"the preface of version 2":  {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 200 "},
		"an upgrade to version 2":   {"POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nContent-Length: 5\r\n\r\nx", "HTTP/1.1 400 "},
		"a method that ends a line": {"GET", ""},
	} {
		for _, half := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				address := start(t, listen.Limits{Read: 100 * time.Millisecond}, readBody)
				c := dial(t, address)
				if _, err := io.WriteString(c, test.sends); err != nil {
					t.Fatal(err)
				}
				if half {
					if err := c.CloseWrite(); err != nil {
						t.Fatal(err)
					}
				}

				// A client that has closed its side need not get an answer.
				if got := readToEnd(t, c); !strings.HasPrefix(got, test.want) && !half {
					t.Errorf("answer = %q, want %q", got, test.want)
				}
			})
		}
	}
}

// TestSlowBodyIsCutOff sends a body that keeps arriving too late.
func TestSlowBodyIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newCrowd(t, listen.Limits{Read: time.Minute})
		v := f.open("192.0.2.1")
		began, cut := time.Now(), make(chan struct{})
		go func() { // received below
			defer close(cut)
			_, err := io.WriteString(v, "POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
			for err == nil {
				time.Sleep(time.Second) // of the bubble
				_, err = io.WriteString(v, "x")
			}
		}()

		_, _ = io.Copy(io.Discard, v.answers)
		<-cut

		if took := time.Since(began); took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("the connection was closed after %v, want a minute and the time for an answer", took)
		}
	})
}

// TestEarlyAnswerDoesNotWaitForTheBody checks that an answer to an unread
// request closes the connection immediately.
func TestEarlyAnswerDoesNotWaitForTheBody(t *testing.T) {
	t.Parallel()
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	large := strings.Repeat("x", 8<<20)
	for name, test := range map[string]struct {
		header, body string
		early        bool
	}{
		"announced only":       {"Content-Length: 100000", "x", true},
		"announced chunks":     {"Transfer-Encoding: chunked", "", true},
		"asked for":            {"Expect: 100-continue\r\nContent-Length: 100000", "", true},
		"long, and being sent": {"Content-Length: 8388608", large, true},
		"no body":              {"Content-Length: 0", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := start(t, listen.Limits{Read: 10 * patience}, refuse)
			c := dial(t, address)
			go func() { // ends with the connection
				_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\n"+test.header+"\r\n\r\n"+test.body)
			}()

			from := bufio.NewReader(c)
			answer, err := http.ReadResponse(from, nil)

			if err != nil || answer.StatusCode != http.StatusUnauthorized || answer.Close != test.early {
				t.Fatalf("answer = %+v, %v, want 401 that closes: %t", answer, err, test.early)
			}
			if test.early {
				readToEnd(t, c)
				return
			}
			if second, err := http.ReadResponse(from, nil); err != nil || second.Close {
				t.Errorf("second answer = %+v, %v, want one", second, err)
			}
		})
	}
}

// TestClientsThatDoNotReadAreClosed checks that handlers end if their clients
// read nothing: of one long answer, a stream, and many answers to pipelined
// requests.
func TestClientsThatDoNotReadAreClosed(t *testing.T) {
	t.Parallel()
	piece := []byte(strings.Repeat("x", 1<<20))
	for name, test := range map[string]struct {
		requests, pieces int
		flush            bool
	}{"a long answer": {1, 1000, false}, "a stream": {1, 1000, true}, "pipelined": {1000, 1, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cut := make(chan struct{}, 1)
			address := start(t, listen.Limits{Write: 100 * time.Millisecond}, func(w http.ResponseWriter, _ *http.Request) {
				for range test.pieces {
					_, err := w.Write(piece)
					if err == nil && test.flush {
						err = http.NewResponseController(w).Flush()
					}
					if err != nil {
						cut <- struct{}{}
						return
					}
				}
			})
			c := dial(t, address)

			if _, err := io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", test.requests)); err != nil {
				t.Fatal(err)
			}

			select {
			case <-cut:
			case <-time.After(patience):
				t.Fatal("the server goes on sending")
			}
			// Read the rest of the buffers and the end of the connection only
			// now.
			if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			readToEnd(t, c)
		})
	}
}

// TestStreamThatIsReadContinues checks that a stream may outlast the write
// deadline.
func TestStreamThatIsReadContinues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newCrowd(t, listen.Limits{Read: time.Second, Write: time.Second})

		if status, _ := f.open("192.0.2.1").get("/stream"); status != http.StatusOK {
			t.Errorf("the stream = %d, want all of it", status)
		}
	})
}
