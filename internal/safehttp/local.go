package safehttp

import (
	"net/netip"
	"net/url"
	"strings"
)

// Local reports whether the name of a host, without a port, is that of this
// machine: localhost, or a loopback address. Nobody can read on the way to it.
func Local(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// Protected reports whether nobody between can read or answer requests to an
// address: it is https, or http to this machine.
func Protected(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && Local(u.Hostname())
}
