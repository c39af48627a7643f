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

// Allowed is a part of the web that requests may go to.
type Allowed struct {
	// Prefix is an address: scheme, host and port have to be the same, and the
	// path has to begin with its path, segment by segment. One of http rather
	// than https allows requests that anybody on the way can read.
	Prefix string `json:"prefix"`
	// Methods are those that are allowed; empty means all that the tools have.
	Methods []string `json:"methods,omitempty"`
	// Credentials says that HTTPConfig.Header is sent along.
	Credentials bool `json:"credentials,omitzero"`
	// HonoursKey says that the host does a request once for each value of the
	// header Idempotency-Key, which is sent with the call's key then.
	HonoursKey bool `json:"honours_key,omitzero"`
}

// entry is an Allowed, taken apart.
type entry struct {
	Allowed
	scheme, host, path string
}

// CheckAllowed says what is wrong with an Allowed, as fault.Invalid.
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

// covers reports whether an address that is plain is below the prefix.
func (e entry) covers(u *url.URL) bool {
	rest, below := strings.CutPrefix(u.EscapedPath(), e.path)
	return u.Scheme == e.scheme && hostPort(u) == e.host && below && (rest == "" || rest[0] == '/')
}

// plain reports whether an address can be read in one way only: whoever gets
// the request must not find another host or path in it than we do.
func plain(u *url.URL) bool {
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !httpguts.ValidHostHeader(u.Host) || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return false
	}
	escaped := strings.ToLower(u.EscapedPath())
	if strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%5c") || strings.ContainsAny(u.Path, "\\%\x00") {
		return false
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		// Some servers cut ";…" off a segment before they look at it.
		if name, _, cut := strings.Cut(segment, ";"); cut && (name == "." || name == "..") {
			return false
		}
	}
	return u.Path == "" || u.Path == "/" || path.Clean(u.Path) == strings.TrimSuffix(u.Path, "/")
}

// hostPort returns host and port in one way of writing them.
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
