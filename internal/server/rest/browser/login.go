package browser

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const (
	// loginFor is the time that a person has at the issuer.
	loginFor = 10 * time.Minute
	// loginSuffix is appended to the name of the session cookie for the login
	// cookie. loginContext is the context of its encryption. No source can have
	// this name.
	loginSuffix  = "-login"
	loginContext = "login in a browser"
)

// PendingLogin is the content of the cookie of a login in progress.
type PendingLogin struct {
	identity.Login
	// To is the page that the person wanted, Until the end of the login.
	To    string
	Until time.Time
	// Session is the secret of the browser's previous session, or empty: its own
	// cookie is Strict, and is not sent on the way back from the issuer's site.
	Session string
}

// loginCipher returns the cipher for login cookies: the cipher of sources, or one
// for this process only if that has no key.
func loginCipher(vault connection.Cipher) (connection.Cipher, error) {
	if vault.HasKey() {
		return vault, nil
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: it ends the process rather than give less
	return connection.NewCipher(base64.StdEncoding.EncodeToString(key))
}

// KeepLogin stores a login in progress in the browser of a request. Its cookie
// is Lax, since the browser returns from the issuer's site.
func (b *Browser) KeepLogin(w http.ResponseWriter, r *http.Request, in identity.Login, to string) error {
	session, _ := b.Secret(r) // of two cookies neither counts
	text, err := json.Marshal(PendingLogin{in, to, time.Now().Add(loginFor), session})
	if err != nil {
		return err
	}
	encrypted, err := b.cipher.Encrypt(envelope.TenantID{}, loginContext, text)
	if err != nil {
		return err
	}
	b.setCookie(w, r, &http.Cookie{
		Name: b.cookieName(r) + loginSuffix, Value: base64.RawURLEncoding.EncodeToString(encrypted), MaxAge: int(loginFor.Seconds()), SameSite: http.SameSiteLaxMode,
	})
	return nil
}

// errNoLogin is the error for a browser that returns from a login that it did
// not begin here, or began too long ago.
var errNoLogin = fault.Coded(wire.CodeLoginExpired, fault.Denied, "unknown or expired login in this browser; log in again")

// TakeLogin returns the login that the browser of a request has begun with a
// state. The browser forgets it.
func (b *Browser) TakeLogin(w http.ResponseWriter, r *http.Request, state string) (kept PendingLogin, err error) {
	name := b.cookieName(r) + loginSuffix
	found := r.CookiesNamed(name)
	if len(found) != 1 || state == "" {
		return PendingLogin{}, errNoLogin
	}
	b.setCookie(w, r, &http.Cookie{Name: name, SameSite: http.SameSiteLaxMode})
	encrypted, err := base64.RawURLEncoding.DecodeString(found[0].Value)
	if err != nil {
		return PendingLogin{}, errNoLogin
	}
	text, err := b.cipher.Decrypt(envelope.TenantID{}, loginContext, encrypted)
	if err != nil {
		return PendingLogin{}, errNoLogin
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		return PendingLogin{}, err
	}
	if subtle.ConstantTimeCompare([]byte(kept.State), []byte(state)) != 1 || !time.Now().Before(kept.Until) {
		return PendingLogin{}, errNoLogin
	}
	return kept, nil
}
