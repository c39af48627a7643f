package listen

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientOf returns the address of a request's client, or the zero address if
// there is none, as in a test. Only the part of X-Forwarded-For that trusted
// proxies wrote counts: the client is the last address that is not a trusted
// proxy.
func ClientOf(r *http.Request, trusted []netip.Prefix) netip.Addr {
	client := addressOf(r.RemoteAddr)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && within(client, trusted); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break // not written by a proxy
		}
		client = next.Unmap().WithZone("")
	}
	return client
}

// addressOf returns the address of host:port without a zone, or the zero
// address.
func addressOf(remote string) netip.Addr {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

func within(addr netip.Addr, prefixes []netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}
