package rest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
)

// ErrForbidden ends a dial to an address that requests may not go to.
var ErrForbidden = errors.New("address is not public")

// never are addresses that no configuration opens up: link-local ones, where
// clouds tell their secrets to whoever asks, and where they do so elsewhere.
func never() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"),
		netip.MustParsePrefix("fe80::/10"),
		netip.MustParsePrefix("fd00:ec2::254/128"),
		netip.MustParsePrefix("100.100.100.200/32"),
		netip.MustParsePrefix("168.63.129.16/32"),
	}
}

// special are addresses that are not of the public internet, beside those that
// netip knows by itself, and those of IPv6 that stand for one of IPv4: most
// begin with a byte of zero.
func special() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),
		netip.MustParsePrefix("100.64.0.0/10"),
		netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("192.0.2.0/24"),
		netip.MustParsePrefix("192.88.99.0/24"),
		netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("198.51.100.0/24"),
		netip.MustParsePrefix("203.0.113.0/24"),
		netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("::/8"),
		netip.MustParsePrefix("100::/64"),
		netip.MustParsePrefix("2001::/23"),
		netip.MustParsePrefix("2001:db8::/32"),
		netip.MustParsePrefix("2002::/16"),
		netip.MustParsePrefix("fec0::/10"),
	}
}

// Guard decides where a connection may go: to the public internet, and to
// networks that were opened on purpose. It is asked about the address that a
// name resolved to, at the moment of dialling, so that a name that resolves to
// another one the second time leads nowhere else.
type Guard struct {
	never, special, open []netip.Prefix
}

// NewGuard returns a Guard with networks opened beside the public internet.
// Link-local and other addresses at which clouds hand out credentials stay
// closed. The error is fault.Invalid.
func NewGuard(open []netip.Prefix) (Guard, error) {
	g := Guard{never: never(), special: special(), open: slices.Clone(open)}
	for _, p := range open {
		if !p.IsValid() || p.Masked() != p {
			return Guard{}, fault.New(fault.Invalid, "a network must be an address prefix without bits beyond its length")
		}
	}
	return g, nil
}

// Permits reports whether a connection may be made to an address.
func (g Guard) Permits(addr netip.Addr) bool {
	in := func(p netip.Prefix) bool { return p.Contains(addr) }
	addr = addr.Unmap().WithZone("")
	switch {
	case slices.ContainsFunc(g.never, in):
		return false
	case slices.ContainsFunc(g.open, in):
		return true
	}
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !slices.ContainsFunc(g.special, in)
}

// Dialer returns a dialer that makes only permitted connections. What it
// refuses is ErrForbidden.
func (g Guard) Dialer() *net.Dialer {
	return &net.Dialer{
		Timeout: 10 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !g.Permits(at.Addr()) {
				return ErrForbidden
			}
			return nil
		},
	}
}
