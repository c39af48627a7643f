package builtin

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/countersign-dev/countersign/internal/fault"
)

// Allowed is an allowed address for requests.
type Allowed struct {
	// Prefix is a URL. Scheme, host and port must be equal, and the path must
	// begin with its path, segment by segment. Requests to http rather than
	// https can be read on the network.
	Prefix string `json:"prefix"`
	// Methods are the allowed methods; empty means all methods of the tools.
	Methods []string `json:"methods,omitempty"`
	// Credentials reports whether HTTPConfig.Header is sent.
	Credentials bool `json:"credentials,omitzero"`
	// HonoursKey reports whether the host executes a request once for each value
	// of the header Idempotency-Key, which is then sent with the call's key.
	HonoursKey bool `json:"honours_key,omitzero"`
}

// entry is a parsed Allowed.
type entry struct {
	Allowed
	scheme, host, path string
}

// CheckAllowed checks an Allowed. The error is fault.Invalid.
func CheckAllowed(a Allowed) error {
	_, err := newEntry(a)
	return err
}

func newEntry(a Allowed) (entry, error) {
	u, err := url.Parse(a.Prefix)
	if err != nil || !plain(u) || u.RawQuery != "" || u.ForceQuery {
		return entry{}, fault.New(fault.Invalid, "a prefix must be an absolute http or https address without user, query, fragment and dots for folders")
	}
	for _, m := range a.Methods {
		if !slices.Contains(append(readMethods(), writeMethods()...), m) {
			return entry{}, fault.New(fault.Invalid, "a method must be GET, HEAD, POST, PUT, PATCH or DELETE")
		}
	}
	a.Methods = slices.Clone(a.Methods)
	return entry{Allowed: a, scheme: u.Scheme, host: hostPort(u), path: strings.TrimSuffix(u.EscapedPath(), "/")}, nil
}

func readMethods() []string { return []string{http.MethodGet, http.MethodHead} }

func writeMethods() []string {
	return []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

// takes reports whether a method is allowed.
func (e entry) takes(method string) bool {
	return len(e.Methods) == 0 || slices.Contains(e.Methods, method)
}

// writes reports whether any method that writes is allowed.
func (e entry) writes() bool { return slices.ContainsFunc(writeMethods(), e.takes) }

// covers reports whether a plain address is below the prefix.
func (e entry) covers(u *url.URL) bool {
	rest, below := strings.CutPrefix(u.EscapedPath(), e.path)
	return u.Scheme == e.scheme && hostPort(u) == e.host && below && (rest == "" || rest[0] == '/')
}

// plain reports whether a URL is unambiguous: the receiver must not parse
// another host or path from it than this package.
func plain(u *url.URL) bool {
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !httpguts.ValidHostHeader(u.Host) || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return false
	}
	escaped := strings.ToLower(u.EscapedPath())
	if strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%5c") || strings.ContainsAny(u.Path, "\\%\x00") {
		return false
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		// Some servers cut ";…" off a segment before they use it.
		if name, _, cut := strings.Cut(segment, ";"); cut && (name == "." || name == "..") {
			return false
		}
	}
	return u.Path == "" || u.Path == "/" || path.Clean(u.Path) == strings.TrimSuffix(u.Path, "/")
}

// hostPort returns host and port in canonical form.
func hostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return strings.ToLower(u.Hostname()) + " " + port
}
