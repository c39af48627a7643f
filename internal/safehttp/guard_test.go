package safehttp_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/safehttp"
)

func TestGuardPermits(t *testing.T) {
	t.Parallel()
	var closed safehttp.Guard
	opened := safehttp.Guard{Networks: []netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("fd12::/16"),
	}}
	for addr, want := range map[string]struct{ closed, opened bool }{
		"93.184.216.34":            {true, true},
		"2606:4700::1111":          {true, true},
		"::ffff:93.184.216.34":     {true, true},
		"10.1.2.3":                 {false, true},
		"::ffff:10.1.2.3":          {false, true},
		"172.16.0.1":               {false, true},
		"192.168.1.1":              {false, true},
		"127.0.0.1":                {false, true},
		"100.64.0.1":               {false, true},
		"0.0.0.0":                  {false, true},
		"255.255.255.255":          {false, true},
		"224.0.0.1":                {false, true},
		"fd12::1":                  {false, true},
		"fd34::1":                  {false, false},
		"::1":                      {false, false},
		"::":                       {false, false},
		"::7f00:1":                 {false, false},
		"64:ff9b::a9fe:a9fe":       {false, false},
		"2002:7f00:1::":            {false, false},
		"ff02::1":                  {false, false},
		"fe80::1%eth0":             {false, false},
		"169.254.169.254":          {false, false},
		"::ffff:169.254.169.254":   {false, false},
		"100.100.100.200":          {false, false},
		"168.63.129.16":            {false, false},
		"fd00:ec2::254":            {false, false},
		"2001:0:1::":               {false, false},
		"::ffff:0:169.254.169.254": {false, false},
	} {
		if got := closed.Permits(netip.MustParseAddr(addr)); got != want.closed {
			t.Errorf("Permits(%s) = %t, want %t", addr, got, want.closed)
		}
		if got := opened.Permits(netip.MustParseAddr(addr)); got != want.opened {
			t.Errorf("Permits(%s) with networks opened = %t, want %t", addr, got, want.opened)
		}
	}
}

func TestLoopbackOnly(t *testing.T) {
	t.Parallel()
	local := safehttp.Guard{Networks: append(safehttp.Loopback(), safehttp.Private()...), LoopbackOnly: true}
	for addr, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "::ffff:127.0.0.1": true, "10.1.2.3": false, "93.184.216.34": false, "169.254.169.254": false,
	} {
		if got := local.Permits(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Permits(%s) = %t, want %t", addr, got, want)
		}
	}
	if (safehttp.Guard{LoopbackOnly: true}).Permits(netip.MustParseAddr("127.0.0.1")) {
		t.Error("Permits(127.0.0.1) = true, want loopback only where Networks allows it")
	}
}

func TestNetworksOnly(t *testing.T) {
	t.Parallel()
	own := safehttp.Guard{Networks: append(safehttp.Loopback(), netip.MustParsePrefix("10.1.0.0/16")), NetworksOnly: true}
	for addr, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "::ffff:10.1.2.3": true, "10.1.2.3": true, "10.2.2.3": false,
		"93.184.216.34": false, "2606:4700::1111": false, "192.168.1.1": false, "169.254.169.254": false,
	} {
		if got := own.Permits(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Permits(%s) = %t, want %t", addr, got, want)
		}
	}
}

func TestUnixTransport(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "server.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host) // the client may be gone
	})}
	go server.Serve(listener) // until it is closed
	t.Cleanup(func() { _ = server.Close() })
	transport := safehttp.UnixTransport(path, time.Second)
	t.Cleanup(transport.CloseIdleConnections)

	resp, err := safehttp.NewClient(transport, 0).Get("http://elsewhere.example/")

	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "elsewhere.example" {
		t.Errorf("the socket's server answered %q, %v", body, err)
	}
}

func TestClient(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // a proxy that would refuse
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte(strings.Repeat("x", 100))) // the client may be gone
	}))
	t.Cleanup(server.Close)
	open := safehttp.Guard{Networks: safehttp.Loopback()}.Transport()
	t.Cleanup(open.CloseIdleConnections)
	client := safehttp.NewClient(safehttp.LimitBodies(open, 10), 0)

	t.Run("is refused an address that is not public", func(t *testing.T) {
		_, err := safehttp.NewClient(safehttp.Guard{}.Transport(), 0).Get(server.URL)

		if !errors.Is(err, safehttp.ErrForbidden) {
			t.Errorf("Get() = %v, want ErrForbidden", err)
		}
	})
	t.Run("follows no redirect", func(t *testing.T) {
		resp, err := client.Get(server.URL + "/away")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()

		if resp.StatusCode != http.StatusFound {
			t.Errorf("Get(/away) = %d, want 302", resp.StatusCode)
		}
	})
	t.Run("reads no more than the limit", func(t *testing.T) {
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()

		body, err := io.ReadAll(resp.Body)

		if err != nil || len(body) != 10 {
			t.Errorf("the body has %d bytes, %v, want 10", len(body), err)
		}
	})
}
