package lookalike

import (
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// DomainOf returns the domain of an address, or "".
func DomainOf(addr string) string {
	at := strings.LastIndexByte(addr, '@')
	if at < 0 {
		return ""
	}
	return strings.TrimSuffix(addr[at+1:], ".")
}

// LocalOf returns the local part of an address.
func LocalOf(addr string) string {
	at := strings.LastIndexByte(addr, '@')
	if at < 0 {
		return addr
	}
	return addr[:at]
}

// Registrable returns the registrable domain of a host: one label and its
// public suffix. A host without one, such as an IP address, is returned
// unchanged.
func Registrable(host string) string {
	if host == "" || Numeric(host) {
		return host
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return domain
}

// LabelOf returns a registrable domain without its public suffix.
func LabelOf(domain string) string {
	label, _, _ := strings.Cut(domain, ".")
	return label
}

// TopLevel returns the last label of a domain.
func TopLevel(domain string) string { return domain[strings.LastIndexByte(domain, '.')+1:] }

// Numeric reports whether a host is an IP address in any form that browsers
// accept.
func Numeric(host string) bool {
	if strings.HasPrefix(host, "[") || strings.Contains(host, ":") {
		return true
	}
	last := TopLevel(host)
	if last == "" {
		return false
	}
	if strings.HasPrefix(last, "0x") {
		return true
	}
	return strings.Trim(last, "0123456789") == ""
}

// PublicTop reports whether a text ends in a public suffix that a registry
// manages, with a label before it, so that it is a host and not a file name.
func PublicTop(host string) bool {
	if Numeric(host) {
		return false
	}
	suffix, managed := publicsuffix.PublicSuffix(host)
	return managed && len(suffix) < len(host)
}

// Shown returns a host as programs display it, with letters instead of
// punycode.
func Shown(host string) string {
	if !strings.Contains(host, "xn--") {
		return host
	}
	if letters, err := idna.ToUnicode(host); err == nil || letters != "" {
		return letters
	}
	return host
}
