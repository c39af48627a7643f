package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const (
	// clientPrefix is how the ids of registrations begin, and clientPurpose what they
	// are encrypted for.
	clientPrefix  = "cs_client_"
	clientPurpose = "registration of a program"
	// unusedFor is how long a registration is valid before a person consents.
	unusedFor = 24 * time.Hour

	maxRedirects = 10
	maxURL       = 1000
	// maxProgram bounds a program's name in bytes.
	maxProgram = 100
)

var noTenant envelope.TenantID

func encode(b []byte) string             { return base64.RawURLEncoding.EncodeToString(b) }
func decode(text string) ([]byte, error) { return base64.RawURLEncoding.Strict().DecodeString(text) }

// client is a program that asks for a login.
type client struct {
	ID        string    `json:"-"`
	Name      string    `json:"n"`
	Redirects []string  `json:"r"`
	At        time.Time `json:"t"`
}

// registration is the part of RFC 7591 that is used. Members of other types than
// these are an error; all others are ignored.
type registration struct {
	RedirectURIs []string `json:"redirect_uris"`
	Name         string   `json:"client_name"`
	ClientID     string   `json:"client_id"`
	AuthMethod   string   `json:"token_endpoint_auth_method"`
	Methods      []string `json:"token_endpoint_auth_methods_supported"`
}

// register answers POST /oauth/register. The id is the registration itself,
// encrypted (RFC 7591, appendix A.5.2), so that nothing is stored and nothing has to be
// deleted for programs that nobody uses.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	c, err := s.registered(w, r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	writeJSON(w, http.StatusCreated, map[string]any{
		"client_id": c.ID, "client_id_issued_at": c.At.Unix(), "client_name": c.Name, "redirect_uris": c.Redirects,
		"token_endpoint_auth_method": "none", "grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
	})
}

func (s *Server) registered(w http.ResponseWriter, r *http.Request) (client, error) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return client{}, refusal{"invalid_client_metadata", "send the body as application/json"}
	}
	var body registration
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxForm)).Decode(&body); err != nil {
		return client{}, refusal{"invalid_client_metadata", "the body is not a JSON object of client metadata"}
	}
	c, err := newClient(body)
	if err != nil {
		return client{}, err
	}
	c.At = time.Now().UTC().Truncate(time.Second)
	id, err := s.encrypt(clientPurpose, c)
	c.ID = clientPrefix + id
	return c, err
}

// newClient checks the metadata of a program.
func newClient(body registration) (client, error) {
	c := client{Name: identity.Plain(body.Name, maxProgram), Redirects: body.RedirectURIs}
	if len(c.Redirects) == 0 || len(c.Redirects) > maxRedirects {
		return client{}, refusal{"invalid_redirect_uri", "redirect_uris must have 1 to 10 addresses"}
	}
	for _, text := range c.Redirects {
		if !mayRedirect(text) {
			return client{}, refusal{"invalid_redirect_uri", "redirect addresses must be https, http to this machine, or of a private scheme, without a fragment"}
		}
	}
	return c, nil
}

// mayRedirect reports whether a program may have browsers sent to an address: https
// anywhere, http to the person's machine, or a scheme that the program registered
// with the person's system. Schemes that browsers run or open themselves are not.
func mayRedirect(text string) bool {
	u, err := url.Parse(text)
	switch {
	case err != nil, len(text) > maxURL, u.Fragment != "", strings.Contains(text, "#"), u.User != nil, u.Opaque != "":
		return false
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' || r == '*' }):
		return false
	case u.Scheme == "https":
		return u.Hostname() != ""
	case u.Scheme == "http":
		return safehttp.Local(u.Hostname())
	}
	own := []string{"", "javascript", "data", "vbscript", "file", "filesystem", "blob", "about", "view-source", "ws", "wss", "ftp", "mailto", "tel", "intent", "chrome", "resource"}
	return !slices.Contains(own, u.Scheme)
}

// redirects reports whether an address is one of the program's: the same text, or
// the same but for the port if it is http to this machine (RFC 8252, section 7.3).
func (c client) redirects(to string) bool {
	if !mayRedirect(to) {
		return false
	}
	return slices.ContainsFunc(c.Redirects, func(of string) bool { return of == to || portless(of) != "" && portless(of) == portless(to) })
}

// portless returns an http address of this machine without its port; "" for any
// other address.
func portless(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || !safehttp.Local(u.Hostname()) {
		return ""
	}
	u.Host = u.Hostname()
	return u.String()
}

// client returns the program of a client id. The error is a refusal for one that is
// unknown or has expired.
func (s *Server) client(ctx context.Context, id string) (client, error) {
	unknown := refusal{"invalid_client", "unknown client_id; register again"}
	if text, ok := strings.CutPrefix(id, clientPrefix); ok && len(id) <= maxForm {
		var c client
		if !s.decrypt(clientPurpose, text, &c) {
			return client{}, unknown
		}
		c.ID = id
		if time.Since(c.At) > unusedFor {
			used, err := s.tokens.ProgramIsUsed(ctx, id)
			if err != nil {
				return client{}, err
			}
			if !used {
				return client{}, refusal{"invalid_client", "the registration was not used for a day and has expired; register again"}
			}
		}
		return c, nil
	}
	if isDocument(id) {
		return s.documents.get(ctx, id, time.Now())
	}
	return client{}, unknown
}

// isDocument reports whether a client id is the address of a metadata document.
func isDocument(id string) bool {
	u, err := url.Parse(id)
	return err == nil && len(id) <= maxURL && u.Scheme == "https" && u.Host != "" && len(u.Path) > 1 && u.Fragment == "" && u.User == nil &&
		!strings.Contains(u.Path, "/../") && !strings.Contains(u.Path, "/./")
}

// host returns the host of the program's metadata document; "" for a registration,
// which anybody can send under any name.
func (c client) host() string {
	if u, err := url.Parse(c.ID); err == nil && isDocument(c.ID) {
		return u.Host
	}
	return ""
}

// parseDocument checks a metadata document that was found at an address.
func parseDocument(id string, from io.Reader) (client, error) {
	var body registration
	text, err := io.ReadAll(io.LimitReader(from, maxDocument+1))
	switch {
	case err != nil || len(text) > maxDocument:
		return client{}, refusal{"invalid_client", "the metadata document of the client could not be read, or is larger than 5 KB"}
	case json.Unmarshal(text, &body) != nil:
		return client{}, refusal{"invalid_client", "the metadata document of the client is not a JSON object"}
	case body.ClientID != id:
		return client{}, refusal{"invalid_client", "the client_id in the metadata document is not its address"}
	case body.AuthMethod != "" && body.AuthMethod != "none" && !slices.Contains(body.Methods, "none"):
		return client{}, refusal{"invalid_client", "the client asks for a secret; only public clients (none) are supported"}
	}
	c, err := newClient(body)
	c.ID = id
	return c, err
}
