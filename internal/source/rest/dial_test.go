package rest_test

import (
	"net/netip"
	"testing"

	"github.com/countersign-dev/countersign/internal/source/rest"
)

func TestGuardPermits(t *testing.T) {
	t.Parallel()
	closed, err := rest.NewGuard(nil)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := rest.NewGuard([]netip.Prefix{
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
		if got := closed.Permits(netip.MustParseAddr(addr)); got != want.closed {
			t.Errorf("Permits(%s) = %t, want %t", addr, got, want.closed)
		}
		if got := opened.Permits(netip.MustParseAddr(addr)); got != want.opened {
			t.Errorf("Permits(%s) with networks opened = %t, want %t", addr, got, want.opened)
		}
	}
}
