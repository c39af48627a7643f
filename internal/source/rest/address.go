package rest

import (
	"net/url"

	"github.com/countersign-dev/countersign/internal/fault"
)

// Base is the base address of a provider's API. The zero Base is not
// useful.
type Base struct{ at *url.URL }

// ParseBase reads an absolute http or https address without user, query and
// fragment. The error is fault.Invalid and does not repeat the address.
func ParseBase(address string) (Base, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return Base{}, fault.New(fault.Invalid, "must be an absolute http or https address without user, query and fragment")
	}
	return Base{at: u}, nil
}

// URL returns the address of a path below the base, segment by segment. A
// segment stays one whatever it holds; "." and ".." would not, and for them URL
// reports false. An empty last segment ends the path in a slash.
func (b Base) URL(query url.Values, segments ...string) (string, bool) {
	escaped := make([]string, len(segments))
	for i, s := range segments {
		if s == "." || s == ".." || s == "" && i < len(segments)-1 {
			return "", false
		}
		escaped[i] = url.PathEscape(s)
		if s == "" {
			escaped[i] = "/"
		}
	}
	u := b.at.JoinPath(escaped...)
	u.RawQuery = query.Encode()
	return u.String(), true
}
