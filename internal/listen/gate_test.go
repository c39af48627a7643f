package listen_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/listen"
)

// crowd is a server with few connections, and its clients.
type crowd struct {
	t        *testing.T
	listener *memory
	refused  []string
}

// newCrowd serves / to all, /as to the caller and the tenant in the path, keeps
// /hold open until its client has left, and sends /stream in pieces a minute
// apart. Everything ends with the bubble of synctest.
func newCrowd(t *testing.T, limits listen.Limits) *crowd {
	t.Helper()
	f := &crowd{t: t, listener: newMemory()}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("/read", readBody)
	mux.HandleFunc("/stream", func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			if _, err := io.WriteString(w, strings.Repeat("piece", 10_000)); err != nil || http.NewResponseController(w).Flush() != nil {
				t.Errorf("the stream ended: %v", err)
				return
			}
			time.Sleep(time.Minute) // of the bubble
		}
	})
	mux.HandleFunc("/hold", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/as/{tenant}/{caller}", func(w http.ResponseWriter, r *http.Request) {
		if err := listen.SetCaller(r.Context(), r.PathValue("caller"), r.PathValue("tenant")); err != nil {
			w.Header().Set("Retry-After", fmt.Sprint(fault.RetryAfter(err)))
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // received below
		ended <- listen.Serve(ctx, f.listener, listen.Config{
			Handler: mux, Limits: limits, Log: slog.New(slog.DiscardHandler),
			Refused: func(bound string) { f.refused = append(f.refused, bound) },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	return f
}

// visitor is a connection.
type visitor struct {
	t *testing.T
	net.Conn
	answers *bufio.Reader
}

// open opens a connection from an address.
func (f *crowd) open(addr string) *visitor {
	f.t.Helper()
	c, err := f.listener.from(addr)(f.t.Context(), "", "")
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	return &visitor{f.t, c, bufio.NewReader(c)}
}

// get returns the status of an answer, or 0, and whether it has a Retry-After.
// A refused connection is answered before the request is sent.
func (v *visitor) get(path string, headers ...string) (status int, later bool) {
	v.t.Helper()
	go func() { // ends with the write, at the latest when the connection is closed
		_, _ = io.WriteString(v, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"+strings.Join(append(headers, "\r\n"), "\r\n"))
	}()
	answer, err := http.ReadResponse(v.answers, nil)
	if err != nil {
		return 0, false
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode, answer.Header.Get("Retry-After") != ""
}

// wants gets a path and compares the status.
func (v *visitor) wants(status int, path string, headers ...string) {
	v.t.Helper()
	got, later := v.get(path, headers...)
	if got != status || later != (status == http.StatusServiceUnavailable) {
		v.t.Errorf("%s = %d, Retry-After %t, want %d", path, got, later, status)
	}
}

func (f *crowd) wantsRefused(want ...string) {
	f.t.Helper()
	if !slices.Equal(f.refused, want) {
		f.t.Errorf("refused = %v, want %v", f.refused, want)
	}
}

func TestUnauthenticatedConnectionsAreBoundedByAddress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ first, second, third, other string }{
		"version four": {"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"},
		"four in six":  {"192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2"},
		"version six":  {"2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::3", "2001:db8:0:1::1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newCrowd(t, listen.Limits{AddressConnections: 2})
				one, two := f.open(test.first), f.open(test.second)
				one.wants(http.StatusOK, "/")

				f.open(test.third).wants(http.StatusServiceUnavailable, "/")
				f.open(test.other).wants(http.StatusOK, "/")
				_ = two.Close()
				synctest.Wait()
				f.open(test.third).wants(http.StatusOK, "/")

				f.wantsRefused("address")
			})
		})
	}
}

// TestCallersHaveConnectionsOfTheirOwn checks that callers and tenants are
// counted independently of their addresses, and that an address then has
// capacity for others.
func TestCallersHaveConnectionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newCrowd(t, listen.Limits{AddressConnections: 1, CallerConnections: 2})
		for i := range 10 { // the tenant has five times two
			f.open("192.0.2.1").wants(http.StatusOK, fmt.Sprintf("/as/acme/%d", i/2))
		}

		f.open("192.0.2.2").wants(http.StatusServiceUnavailable, "/as/acme/0")
		synctest.Wait() // it is closed
		f.open("192.0.2.2").wants(http.StatusServiceUnavailable, "/as/acme/9")
		other := f.open("192.0.2.1")
		other.wants(http.StatusOK, "/as/other/0-other")
		other.wants(http.StatusOK, "/as/other/0-other") // is counted once
		f.open("192.0.2.1").wants(http.StatusOK, "/")

		f.wantsRefused("caller", "tenant")
	})
}

// TestConnectionOfARefusedCallerIsClosed checks that the connection of a caller
// with too many connections is closed after the answer.
func TestConnectionOfARefusedCallerIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newCrowd(t, listen.Limits{CallerConnections: 1})
		f.open("192.0.2.1").wants(http.StatusOK, "/as/acme/0")
		second := f.open("192.0.2.1")
		second.wants(http.StatusServiceUnavailable, "/as/acme/0")

		if _, err := second.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection of a refused caller: %v, want it closed", err)
		}
	})
}

func TestAllConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newCrowd(t, listen.Limits{Connections: 3, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
		f.open("192.0.2.1").wants(http.StatusOK, "/")
		f.open("192.0.2.2").wants(http.StatusOK, "/as/acme/0")
		f.open("10.0.0.1").wants(http.StatusOK, "/as/acme/0", "X-Forwarded-For: 192.0.2.3")

		f.open("192.0.2.4").wants(http.StatusServiceUnavailable, "/")
		f.open("10.0.0.1").wants(http.StatusServiceUnavailable, "/")

		f.wantsRefused("all", "all")
	})
}

// TestProxiedClientsAreCountedByRequest checks that a client behind a trusted
// proxy is counted by its requests, and by the address that the proxy wrote, not
// one that the client wrote.
func TestProxiedClientsAreCountedByRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newCrowd(t, listen.Limits{AddressConnections: 2, CallerConnections: 1, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
		hold := func(as string) {
			v := f.open("10.0.0.1")
			go v.get("/hold", "X-Forwarded-For: "+as) // ends with the bubble
			synctest.Wait()
		}
		hold("198.51.100.1, 192.0.2.1")
		hold("198.51.100.2, 192.0.2.1")

		proxy := f.open("10.0.0.1")
		proxy.wants(http.StatusServiceUnavailable, "/", "X-Forwarded-For: 198.51.100.3, 192.0.2.1")
		proxy.wants(http.StatusOK, "/", "X-Forwarded-For: 192.0.2.1, 192.0.2.9")
		for range 3 { // sequential; each ends with its answer
			proxy.wants(http.StatusOK, "/as/acme/0", "X-Forwarded-For: 192.0.2.9")
		}
		proxy.wants(http.StatusOK, "/")
		f.wantsRefused("address")

		f.open("192.0.2.1").wants(http.StatusServiceUnavailable, "/") // is the same client
		f.open("192.0.2.5").wants(http.StatusOK, "/", "X-Forwarded-For: 192.0.2.1")
	})
}

// TestRefusedClientThatDoesNotReadIsClosed checks that a connection over a bound
// does not delay others, even if its client does not read the answer.
func TestRefusedClientThatDoesNotReadIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newCrowd(t, listen.Limits{AddressConnections: 1})
		first := f.open("192.0.2.1")
		f.open("192.0.2.1") // which reads nothing

		began := time.Now()
		first.wants(http.StatusOK, "/")
		f.open("192.0.2.2").wants(http.StatusOK, "/")

		if waited := time.Since(began); waited > time.Second {
			t.Errorf("others waited for %v, want a second at most", waited)
		}
	})
}
