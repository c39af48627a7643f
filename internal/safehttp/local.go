package safehttp

import (
	"net/netip"
	"net/url"
	"strings"
)

// Local reports whether a host, without a port, is localhost or a loopback
// address. Connections to it cannot be read by others.
func Local(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// Protected reports whether connections to a URL are protected from others on
// the network: https, or http to this machine.
func Protected(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && Local(u.Hostname())
}
