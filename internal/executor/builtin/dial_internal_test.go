package builtin

import (
	"net/netip"
	"net/url"
	"path"
	"strings"
	"testing"
)

func TestGuardPermits(t *testing.T) {
	t.Parallel()
	closed, err := newGuard(nil)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := newGuard([]netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("fd12::/16"),
	})
	if err != nil {
		t.Fatal(err)
	}
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
		if got := closed.permits(netip.MustParseAddr(addr)); got != want.closed {
			t.Errorf("permits(%s) = %t, want %t", addr, got, want.closed)
		}
		if got := opened.permits(netip.MustParseAddr(addr)); got != want.opened {
			t.Errorf("permits(%s) with networks opened = %t, want %t", addr, got, want.opened)
		}
	}
}

func FuzzCovers(f *testing.F) {
	e, err := newEntry(Allowed{Prefix: "https://api.example.com/v1"})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		"https://api.example.com/v1/x?y=z", "https://API.example.com:443/v1", "https://api.example.com/v1/../admin",
		"https://api.example.com/v1/%2e%2e/admin", "https://api.example.com@evil/v1", `https://api.example.com\@evil/v1`,
		"https://api.example.com/v1%2f..%2fadmin", "//api.example.com/v1", "https://api.example.com/v1/..;/x", "https://api.example.com./v1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := url.Parse(address)
		if err != nil || !plain(u) || !e.covers(u) {
			return
		}
		// Read anew, as whoever makes the request does.
		again, err := url.Parse(u.String())
		if err != nil {
			t.Fatalf("%q is covered and cannot be read again: %v", address, err)
		}
		clean := path.Clean(again.Path)
		if again.Scheme != "https" || !strings.EqualFold(again.Hostname(), "api.example.com") || again.User != nil ||
			again.Port() != "" && again.Port() != "443" || clean != "/v1" && !strings.HasPrefix(clean, "/v1/") {
			t.Errorf("%q is covered, and is %s", address, again)
		}
	})
}
