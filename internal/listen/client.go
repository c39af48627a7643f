package listen

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// ClientOf returns the address of a request's client; the zero address if there
// is none, as in a test. The header X-Forwarded-For counts as far as trusted
// proxies wrote it: read from its end, the first address that is not that of a
// trusted proxy is the client's.
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

// addressOf returns the address of host:port without a zone; the zero address if
// it has none.
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
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
