package message

import (
	"net/netip"
	neturl "net/url"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// newLink returns a link with the host of its URL. The URL stays as sent,
// including user information and numeric hosts.
func newLink(text, url string) Link {
	l := Link{Text: text, URL: url}
	l.Host = hostOf(url)
	l.Domain = registrable(l.Host)
	return l
}

// hostOf returns the host of a web address in lower case and ASCII, as browsers
// parse it: after the last @ between the slashes, which may be backslashes.
// Other addresses have no host.
func hostOf(url string) string {
	rest := url
	if !strings.HasPrefix(url, "//") && !strings.HasPrefix(url, `\\`) {
		scheme, after, ok := strings.Cut(url, ":")
		if !ok {
			return ""
		}
		switch strings.ToLower(strings.TrimSpace(scheme)) {
		case "http", "https", "ftp":
		default:
			return ""
		}
		rest = after
	}
	rest = strings.TrimLeft(rest, `/\`)
	if i := strings.IndexAny(rest, `/\?#`); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && !strings.HasSuffix(rest, "]") {
		rest = rest[:i]
	}
	if decoded, err := neturl.PathUnescape(rest); err == nil {
		rest = decoded
	}
	host := strings.ToLower(strings.Trim(strings.ToValidUTF8(rest, ""), "[]. \t"))
	if strings.ContainsAny(host, "\x00/\\@ ") {
		return ""
	}
	if isASCII(host) {
		return host
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil {
		if ascii, err = idna.Punycode.ToASCII(host); err != nil {
			return ""
		}
	}
	return ascii
}

// registrable returns the registrable domain of a host, or the host itself if
// it is a number or has none.
func registrable(host string) string {
	if host == "" {
		return ""
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return domain
}

// plainLinks appends the web addresses in a text.
func plainLinks(links []Link, text string) []Link {
	const most = 2000
	for rest := text; len(links) < most; {
		i := indexURL(rest)
		if i < 0 {
			break
		}
		rest = rest[i:]
		end := strings.IndexAny(rest, " \t\r\n<>\"")
		if end < 0 {
			end = len(rest)
		}
		const longest = 4 << 10
		shown := strings.TrimRight(rest[:end], ".,;:!?'*_|")
		if strings.HasSuffix(shown, ")") && !strings.Contains(shown, "(") || strings.HasSuffix(shown, "]") && !strings.Contains(shown, "[") {
			shown = strings.TrimRight(shown[:len(shown)-1], ".,;:!?")
		}
		shown = cutTo(shown, longest)
		url := shown
		if !strings.Contains(url, "://") {
			url = "http://" + url
		}
		links = append(links, newLink(shown, url))
		rest = rest[end:]
	}
	return links
}

// indexURL returns the index of the first web address, or -1.
func indexURL(text string) int {
	for from := 0; from < len(text); {
		i := strings.IndexAny(text[from:], ":wW")
		if i < 0 {
			return -1
		}
		i += from
		if text[i] == ':' {
			if strings.HasPrefix(text[i:], "://") {
				for _, scheme := range []string{"https", "http", "ftp"} {
					if start := i - len(scheme); start >= from && strings.EqualFold(text[start:i], scheme) {
						return start
					}
				}
			}
		} else if len(text) > i+5 && strings.EqualFold(text[i:i+4], "www.") && (i == 0 || !letter(text[i-1])) && letter(text[i+4]) {
			return i
		}
		from = i + 1
	}
	return -1
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '/' || c == '.' || c == '@' || c >= 0x80
}
