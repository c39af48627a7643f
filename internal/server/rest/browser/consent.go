package browser

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

const (
	// consentSuffix is the part of the names of cookies that bind consents.
	consentSuffix = "_connect_"
	// consentFor is how long a person may take to consent.
	consentFor = 10 * time.Minute
	// maxConsents bounds the consents that one browser has begun.
	maxConsents = 5
)

// BeginConsent binds the request of a program to the browser that brought it, with a
// cookie of its own. It returns the digest of the cookie, which belongs to the request.
// The cookie is Lax, since browsers come from the program's site.
func (b *Browser) BeginConsent(w http.ResponseWriter, r *http.Request) string {
	prefix := b.cookieName(r) + consentSuffix
	begun := 0
	for _, cookie := range r.Cookies() {
		if strings.HasPrefix(cookie.Name, prefix) {
			begun++
		}
	}
	if begun >= maxConsents {
		for _, cookie := range r.Cookies() {
			if strings.HasPrefix(cookie.Name, prefix) {
				b.setCookie(w, r, &http.Cookie{Name: cookie.Name, SameSite: http.SameSiteLaxMode})
			}
		}
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails: it ends the process rather than give less
	value := base64.RawURLEncoding.EncodeToString(secret)
	digest := consentDigest(value)
	b.setCookie(w, r, &http.Cookie{Name: prefix + digest[:8], Value: value, MaxAge: int(consentFor.Seconds()), SameSite: http.SameSiteLaxMode})
	return digest
}

// BeganConsent reports whether the browser of a request began the consent of a digest.
func (b *Browser) BeganConsent(r *http.Request, digest string) bool {
	if len(digest) < 8 {
		return false
	}
	found := r.CookiesNamed(b.cookieName(r) + consentSuffix + digest[:8])
	return len(found) == 1 && subtle.ConstantTimeCompare([]byte(consentDigest(found[0].Value)), []byte(digest)) == 1
}

// EndConsent removes the cookie of a consent, so that it is for one answer.
func (b *Browser) EndConsent(w http.ResponseWriter, r *http.Request, digest string) {
	b.setCookie(w, r, &http.Cookie{Name: b.cookieName(r) + consentSuffix + digest[:8], SameSite: http.SameSiteLaxMode})
}

func consentDigest(value string) string {
	sum := sha256.Sum256([]byte(value))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
