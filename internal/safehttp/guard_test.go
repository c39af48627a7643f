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

// TestMetadataAddressesNeverPass checks that metadata addresses are forbidden
// with any allowed networks, and in every IPv6 form that embeds them.
func TestMetadataAddressesNeverPass(t *testing.T) {
	t.Parallel()
	everything := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	guards := map[string]safehttp.Guard{
		"everything": {Networks: everything}, "everything, of own networks": {Networks: everything, NetworksOnly: true}, "private": {Networks: safehttp.Private()},
	}
	never := []string{
		"169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fe80::a9fe:a9fe",
		"fd00:ec2::254", "fd00:ec2::23", "fd00:ec2::123", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42", "fd00:a9fe:a9fe::1",
	}
	for _, v4 := range []string{"a9fe:a9fe", "a9fe:aa02", "6464:64c8", "a83f:8110", "c000:00c0"} {
		hi, lo, _ := strings.Cut(v4, ":")
		never = append(never,
			"::ffff:"+v4, "::"+v4, "::ffff:0:"+v4, "64:ff9b::"+v4, "64:ff9b:1::"+v4, "64:ff9b:1:abcd::"+v4,
			"64:ff9b:1:"+hi+":"+lo[:2]+":"+lo[2:]+"00::",                   // a prefix of 48 bits, with byte 8 empty
			"64:ff9b:1:ab"+hi[:2]+":00"+hi[2:]+":"+lo+"::",                 // 56 bits
			"64:ff9b:1:abcd:00"+hi[:2]+":"+hi[2:]+lo[:2]+":"+lo[2:]+"00::", // 64 bits
			"2002:"+v4+"::1", "2001:0:"+v4+"::", "2606:4700::5efe:"+v4, "2606:4700::200:5efe:"+v4, // 6to4, Teredo's server, ISATAP
			"fd12:3456::"+v4, "2606:4700::"+v4, // a network's own prefix of translation
		)
		a := netip.MustParseAddr("::" + v4).As16()
		for i := 12; i < 16; i++ {
			a[i] = ^a[i]
		}
		copy(a[:], []byte{0x20, 0x01, 0, 0, 1, 1, 1, 1})
		never = append(never, netip.AddrFrom16(a).String()) // Teredo's client
	}
	for _, text := range never {
		for name, g := range guards {
			if g.Permits(netip.MustParseAddr(text)) {
				t.Errorf("%s: Permits(%s) = true, want false", name, text)
			}
		}
	}
	for _, text := range []string{"fd12:3456::1", "fd20:cf::254", "fd00:ec3::23", "64:ff9b::5db8:d822", "2002:5db8:d822::1", "2606:4700::1111", "192.0.0.8"} {
		if !guards["everything"].Permits(netip.MustParseAddr(text)) {
			t.Errorf("Permits(%s) = false where everything is allowed, want true", text)
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
