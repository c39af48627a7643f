package signal

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// domainOf returns the domain of an address, or "".
func domainOf(addr string) string {
	at := strings.LastIndexByte(addr, '@')
	if at < 0 {
		return ""
	}
	return strings.TrimSuffix(addr[at+1:], ".")
}

// localOf returns the local part of an address.
func localOf(addr string) string {
	at := strings.LastIndexByte(addr, '@')
	if at < 0 {
		return addr
	}
	return addr[:at]
}

// registrable returns the registrable domain of a host: one label and its
// public suffix. A host without one, such as an IP address, is returned
// unchanged.
func registrable(host string) string {
	if host == "" || numeric(host) {
		return host
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return domain
}

// labelOf returns a registrable domain without its public suffix.
func labelOf(domain string) string {
	label, _, _ := strings.Cut(domain, ".")
	return label
}

func topLevel(domain string) string { return domain[strings.LastIndexByte(domain, '.')+1:] }

// numeric reports whether a host is an IP address in any form that browsers
// accept.
func numeric(host string) bool {
	if strings.HasPrefix(host, "[") || strings.Contains(host, ":") {
		return true
	}
	last := topLevel(host)
	if last == "" {
		return false
	}
	if strings.HasPrefix(last, "0x") {
		return true
	}
	return strings.Trim(last, "0123456789") == ""
}

// publicTop reports whether a text ends in a public suffix that a registry
// manages, with a label before it, so that it is a host and not a file name.
func publicTop(host string) bool {
	if numeric(host) {
		return false
	}
	suffix, managed := publicsuffix.PublicSuffix(host)
	return managed && len(suffix) < len(host)
}
