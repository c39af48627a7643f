// Package safehttp owns outgoing HTTP connections: the addresses to which they
// are allowed, and the transports and clients that enforce this. Every package
// that calls a server with a configurable address takes its client from here.
//
// Clients do not follow redirects, because a redirect could carry a credential
// to an address that was not configured. They use no proxies, not even those of
// the environment, because a proxy would resolve the name in place of the guard.
package safehttp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// ErrForbidden is the error of a connection to an address that is not allowed.
var ErrForbidden = errors.New("the address is not allowed")

// Guard decides to which addresses connections are allowed: the public internet
// and allowed networks. It checks the resolved address at the time of dialing,
// so that a name cannot resolve to one address for the check and to another for
// the connection. The zero Guard allows the public internet.
type Guard struct {
	// Networks are allowed in addition to the public internet. Link-local
	// addresses and the metadata addresses of clouds stay forbidden, in every
	// form of IPv6.
	Networks []netip.Prefix
	// LoopbackOnly allows only loopback addresses within Networks. It is for
	// connections without TLS.
	LoopbackOnly bool
	// NetworksOnly forbids the public internet: only Networks are allowed. It is
	// for servers that must be on the user's own machines.
	NetworksOnly bool
	// ConnectTimeout bounds connection setup; 0 means 10 seconds.
	ConnectTimeout time.Duration
	// Resolver resolves names; nil means the resolver of the machine.
	Resolver *net.Resolver
}

// Loopback returns the networks of the local machine.
func Loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// Private returns the networks that organisations use internally.
func Private() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
	}
}

// forbidden returns the networks that no configuration allows: link-local
// addresses and other addresses where clouds serve credentials.
func forbidden() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("169.254.0.0/16"),
		netip.MustParsePrefix("100.100.100.200/32"),
		netip.MustParsePrefix("168.63.129.16/32"),
		netip.MustParsePrefix("192.0.0.192/32"),
		netip.MustParsePrefix("fe80::/10"),
		netip.MustParsePrefix("fd00:ec2::/32"),       // Amazon
		netip.MustParsePrefix("fd20:ce::/64"),        // Google
		netip.MustParsePrefix("fd00:c1::/64"),        // Oracle
		netip.MustParsePrefix("fd00:42::/64"),        // Scaleway
		netip.MustParsePrefix("fd00:a9fe:a9fe::/48"), // Linode
	}
}

// isForbidden reports whether no configuration allows an address: it is one of
// forbidden, or an IPv6 address that translates or tunnels to one.
func isForbidden(addr netip.Addr) bool {
	in := func(addr netip.Addr) bool {
		return slices.ContainsFunc(forbidden(), func(p netip.Prefix) bool { return p.Contains(addr) })
	}
	return in(addr) || slices.ContainsFunc(embedded(addr), in)
}

// embedded returns the IPv4 addresses that may be embedded in an IPv6 address,
// by the prefixes reserved for translation and tunnels. The translation prefix
// 64:ff9b:1::/48 may be divided in any way of RFC 6052. A network may also use a
// translation prefix of its own, so an address with any prefix may embed the
// metadata address in its last bits.
func embedded(addr netip.Addr) []netip.Addr {
	if !addr.Is6() {
		return nil
	}
	b := addr.As16()
	at := func(w, x, y, z int) netip.Addr { return netip.AddrFrom4([4]byte{b[w], b[x], b[y], b[z]}) }
	last := at(12, 13, 14, 15)
	switch {
	case netip.MustParsePrefix("::/64").Contains(addr), netip.MustParsePrefix("64:ff9b::/96").Contains(addr),
		b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP
		return []netip.Addr{last}
	case netip.MustParsePrefix("64:ff9b:1::/48").Contains(addr):
		return []netip.Addr{at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), last}
	case netip.MustParsePrefix("2002::/16").Contains(addr):
		return []netip.Addr{at(2, 3, 4, 5)}
	case netip.MustParsePrefix("2001::/32").Contains(addr): // Teredo: the server, and the client inverted
		return []netip.Addr{at(4, 5, 6, 7), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	case slices.Contains(metadata(), last.String()):
		return []netip.Addr{last}
	}
	return nil
}

// metadata returns the IPv4 addresses at which clouds serve credentials.
func metadata() []string {
	return []string{
		"169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.0.23", "100.100.100.200", "168.63.129.16", "192.0.0.192",
	}
}

// special returns networks outside the public internet that netip does not
// report, and IPv6 networks that embed IPv4 addresses.
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

// Check returns an error if a network of the guard is invalid or has bits beyond
// its prefix length, which may be a mistake.
func (g Guard) Check() error {
	for _, p := range g.Networks {
		if !p.IsValid() || p.Masked() != p {
			return errors.New("a network must be an address prefix without bits beyond its length, such as 10.1.0.0/16")
		}
	}
	return nil
}

// Permits reports whether connections to an address are allowed.
func (g Guard) Permits(addr netip.Addr) bool {
	contains := func(p netip.Prefix) bool { return p.Contains(addr) }
	addr = addr.Unmap().WithZone("")
	switch {
	case g.LoopbackOnly && !addr.IsLoopback() || isForbidden(addr):
		return false
	case slices.ContainsFunc(g.Networks, contains):
		return true
	}
	return !g.NetworksOnly && addr.IsGlobalUnicast() && !addr.IsPrivate() && !slices.ContainsFunc(special(), contains)
}

// Transport returns a transport that makes only allowed connections. Others fail
// with ErrForbidden. Its idle connections suit many concurrent calls to one
// host.
func (g Guard) Transport() *http.Transport {
	g.Networks = slices.Clone(g.Networks)
	dialer := &net.Dialer{
		Timeout:  cmp.Or(g.ConnectTimeout, 10*time.Second),
		Resolver: g.Resolver,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !g.Permits(at.Addr()) {
				return ErrForbidden
			}
			return nil
		},
	}
	return newTransport(dialer.DialContext)
}

// UnixTransport returns a transport that connects to a Unix socket, regardless
// of the host in a URL.
func UnixTransport(path string, connectTimeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout}
	return newTransport(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", path)
	})
}

func newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:           dial,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   64,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		// Many servers drop a connection after five idle seconds. If that
		// happens while a call is written, its outcome is unknown.
		IdleConnTimeout: 4 * time.Second,
	}
}

// NewClient returns a client that does not follow redirects. With a timeout of 0
// only the context bounds a request.
func NewClient(transport http.RoundTripper, timeout time.Duration) *http.Client {
	return &http.Client{
		Transport:     transport,
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// LimitBodies returns a transport that truncates the body of each response to a
// number of bytes.
func LimitBodies(transport http.RoundTripper, limit int64) http.RoundTripper {
	return limited{transport, limit}
}

type limited struct {
	http.RoundTripper
	limit int64
}

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, l.limit), resp.Body}
	return resp, nil
}
