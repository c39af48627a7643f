// Package browser keeps the sessions and logins of people in the cookies of their
// browsers, and rejects requests made by pages of other sites. It does not
// validate sessions.
package browser

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/web"
)

// The names of the session cookie. Browsers accept the first over https only, and
// let no other host and no other path set it. The second is for this machine.
const (
	secureCookie = "__Host-cs"
	plainCookie  = "cs"
)

// Browser sets and reads the session cookies of browsers.
type Browser struct {
	base   web.Base
	guard  *http.CrossOriginProtection
	cipher connection.Cipher
}

// New returns a Browser for the API's public address. Login cookies are
// encrypted with the cipher; without a key they are valid in this process only.
func New(base web.Base, vault connection.Cipher) (*Browser, error) {
	cipher, err := loginCipher(vault)
	b := &Browser{base: base, guard: http.NewCrossOriginProtection(), cipher: cipher}
	if !base.Known() || err != nil {
		return b, err
	}
	return b, b.guard.AddTrustedOrigin(string(base))
}

// The errors of requests with a cookie.
var (
	errCrossSite   = fault.Coded(wire.CodeCrossSite, fault.Denied, "requests from pages of other sites are not allowed")
	errNoPublicURL = fault.Coded(wire.CodeNoPublicURL, fault.Conflict, "the API has no public address; set COUNTERSIGN_PUBLIC_URL")
)

// ErrTwoCredentials returns the error of a request with a token and a session, or with
// two sessions.
func ErrTwoCredentials() error {
	return fault.Coded(wire.CodeTwoCredentials, fault.Invalid, "send a token or a session, not both")
}

// Cipher encrypts the state that a browser or a program carries from one request to another,
// maybe of another replica.
func (b *Browser) Cipher() connection.Cipher { return b.cipher }

// Links returns the builder of public addresses, which may be unconfigured.
func (b *Browser) Links() web.Base { return b.base }

// KnownLinks is Links, with an error if the public address is not configured.
func (b *Browser) KnownLinks() (web.Base, error) {
	if !b.base.Known() {
		return "", errNoPublicURL
	}
	return b.base, nil
}

// plain reports whether a request came without TLS, from this machine to a
// loopback address. Everywhere else cookies require https.
func (b *Browser) plain(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !strings.HasPrefix(string(b.base), "http://") || r.TLS != nil {
		return false
	}
	address, err := netip.ParseAddrPort(at.String())
	return err == nil && safehttp.Local(address.Addr().String())
}

func (b *Browser) cookieName(r *http.Request) string {
	if b.plain(r) {
		return plainCookie
	}
	return secureCookie
}

// Secret returns the session secret of a request; "" for none. Two cookies of
// that name are an error: one of them may be another person's.
func (b *Browser) Secret(r *http.Request) (string, error) {
	found := r.CookiesNamed(b.cookieName(r))
	if len(found) > 1 {
		return "", ErrTwoCredentials()
	}
	if len(found) == 0 {
		return "", nil
	}
	return found[0].Value, nil
}

// SameSite returns nil for a request that was not made by a page of another
// site. Reads count too: a page of another site can measure responses that it
// cannot read.
func (b *Browser) SameSite(r *http.Request) error {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return errCrossSite
	}
	if b.guard.Check(r) != nil {
		return errCrossSite
	}
	return nil
}

// SetSession stores the secret of a session in the browser until it is closed.
// An empty secret deletes it.
func (b *Browser) SetSession(w http.ResponseWriter, r *http.Request, secret string) {
	b.setCookie(w, r, &http.Cookie{Name: b.cookieName(r), Value: secret, SameSite: http.SameSiteStrictMode})
}

// setCookie sets a cookie for this host only, which scripts cannot read. A
// cookie without a value is deleted.
func (b *Browser) setCookie(w http.ResponseWriter, r *http.Request, cookie *http.Cookie) {
	cookie.Path, cookie.HttpOnly, cookie.Secure = "/", true, !b.plain(r)
	if cookie.Value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

// OwnPath returns the path of this server's pages that a request asked to be
// redirected to. For anything else, which may be on another server, it returns
// the first page.
func OwnPath(text string) string {
	const first, most = "/", 2000
	u, err := url.Parse(text)
	switch {
	case err != nil, len(text) > most, !strings.HasPrefix(text, "/"), strings.HasPrefix(text, "//"), strings.ContainsAny(text, "\\\r\n\t"),
		u.Scheme != "", u.Host != "", u.User != nil:
		return first
	}
	return text
}
