// Package oauth is the authorization server for programs: an MCP client that is
// given only the URL of /mcp finds it, registers, sends a person to the consent on
// the operator's page, and fetches and renews the secrets of an agent's token
// (OAuth 2.1, RFC 7591, 7636, 8414, 8707, 9207 and 9728). It keeps no client secret:
// every program is a public client with PKCE. Consents and tokens are
// identity's; it does not decide who may consent.
package oauth

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/web"
)

const (
	// resourcePath is the path of the MCP server, and metadataPath of its metadata.
	resourcePath = "/mcp"
	metadataPath = "/.well-known/oauth-protected-resource"
	serverPath   = "/.well-known/oauth-authorization-server"

	// refreshScope asks for a refresh token. Every login has one.
	refreshScope = "offline_access"

	// maxForm bounds the body of a request in bytes.
	maxForm = 16 << 10
)

// Tokens are the logins of programs; *identity.Authenticator has them.
type Tokens interface {
	RedeemProgramCode(ctx context.Context, r identity.Redemption) (identity.ProgramTokens, error)
	RefreshProgram(ctx context.Context, refresh, clientID, resource string) (identity.ProgramTokens, error)
	EndProgram(ctx context.Context, token string) error
	ProgramIsUsed(ctx context.Context, clientID string) (bool, error)
}

// Config configures a Server. Base and Cipher are required.
type Config struct {
	// Base is where programs and people reach the API. It is the issuer.
	Base web.Base
	// Cipher encrypts registrations and pending consents; it is the same in all
	// replicas.
	Cipher connection.Cipher
	// Networks are where metadata documents of programs may be, besides the public
	// internet.
	Networks []netip.Prefix
	// TrustedProxies are the proxies whose headers about a client's address count.
	TrustedProxies []netip.Prefix
	// Bind binds a pending consent to the browser of a request, and returns the text by
	// which the browser is known again.
	Bind func(w http.ResponseWriter, r *http.Request) string
	Log  *slog.Logger
}

// Server answers the paths of Paths. It is safe for concurrent use.
type Server struct {
	cfg       Config
	tokens    Tokens
	documents *documents
	limits    *limits
	mux       *http.ServeMux
}

// New returns a Server.
func New(tokens Tokens, cfg Config) *Server {
	guard := safehttp.Guard{Networks: cfg.Networks}
	s := &Server{
		cfg: cfg, tokens: tokens, limits: newLimits(), mux: http.NewServeMux(),
		documents: newDocuments(safehttp.NewClient(guard.Transport(), documentTimeout)),
	}
	s.mux.HandleFunc("GET "+metadataPath, s.resourceMetadata)
	s.mux.HandleFunc("GET "+metadataPath+resourcePath, s.resourceMetadata)
	s.mux.HandleFunc("GET "+serverPath, s.serverMetadata)
	s.mux.HandleFunc("GET /oauth/authorize", s.limited(s.authorize))
	s.mux.HandleFunc("POST /oauth/register", s.limited(s.register))
	s.mux.HandleFunc("POST /oauth/token", s.limited(s.token))
	s.mux.HandleFunc("POST /oauth/revoke", s.limited(s.revoke))
	return s
}

// Paths returns the patterns below which the Server answers.
func Paths() []string { return []string{metadataPath, metadataPath + "/", serverPath, "/oauth/"} }

// Resource returns the address of the MCP server, which is the audience of tokens.
func (s *Server) Resource() string { return string(s.cfg.Base) + resourcePath }

// Challenge returns the WWW-Authenticate header of an answer 401 at Resource: where
// a program finds the authorization server, and the scopes that it needs. invalid
// reports whether the request had a token.
func (s *Server) Challenge(invalid bool) string {
	parts := []string{`resource_metadata="` + string(s.cfg.Base) + metadataPath + resourcePath + `"`, `scope="` + scopeText(identity.AgentScopes()) + `"`}
	if invalid {
		parts = append([]string{`error="invalid_token"`}, parts...)
	}
	return "Bearer " + strings.Join(parts, ", ")
}

// ServeHTTP answers a request. Every page may read the answers: they depend on no
// cookie, and those to a page set none.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, POST")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, MCP-Protocol-Version")
		h.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// resourceMetadata is RFC 9728.
func (s *Server) resourceMetadata(w http.ResponseWriter, _ *http.Request) {
	cacheable(w)
	writeJSON(w, http.StatusOK, map[string]any{
		"resource": s.Resource(), "authorization_servers": []string{string(s.cfg.Base)}, "resource_name": "Countersign",
		"scopes_supported": identity.AgentScopes(), "bearer_methods_supported": []string{"header"},
	})
}

// serverMetadata is RFC 8414.
func (s *Server) serverMetadata(w http.ResponseWriter, _ *http.Request) {
	cacheable(w)
	base := string(s.cfg.Base)
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer": base, "authorization_endpoint": base + "/oauth/authorize", "token_endpoint": base + "/oauth/token",
		"registration_endpoint": base + "/oauth/register", "revocation_endpoint": base + "/oauth/revoke",
		"scopes_supported":         append([]string{refreshScope}, strings.Fields(scopeText(identity.AgentScopes()))...),
		"response_types_supported": []string{"code"}, "response_modes_supported": []string{"query"},
		"grant_types_supported":                 []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported": []string{"none"}, "revocation_endpoint_auth_methods_supported": []string{"none"},
		"code_challenge_methods_supported": []string{"S256"}, "client_id_metadata_document_supported": true,
		"authorization_response_iss_parameter_supported": true,
	})
}

func scopeText(all []identity.Scope) string {
	texts := make([]string, len(all))
	for i, scope := range all {
		texts[i] = string(scope)
	}
	return strings.Join(texts, " ")
}

// granted returns the scopes of a request that an agent may have: those named, or
// all where none is. Others are left out, as OAuth allows.
func granted(text string) []identity.Scope {
	var found []identity.Scope
	asked := strings.Fields(text)
	for _, scope := range identity.AgentScopes() {
		if slices.Contains(asked, string(scope)) {
			found = append(found, scope)
		}
	}
	if found == nil {
		return identity.AgentScopes()
	}
	return found
}

func cacheable(w http.ResponseWriter) { w.Header().Set("Cache-Control", "public, max-age=300") }

// writeJSON writes an answer. The error of a client that has left is ignored.
func writeJSON(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// refusal is an error of OAuth (RFC 6749, section 5.2).
type refusal struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (e refusal) Error() string { return e.Code + ": " + e.Description }

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := err.(refusal)
	status := http.StatusBadRequest
	switch {
	case !ok:
		s.cfg.Log.ErrorContext(r.Context(), "oauth request failed", slog.String("path", r.URL.Path), slog.Any("error", err))
		e, status = refusal{"server_error", "try again later"}, http.StatusInternalServerError
	case e.Code == "invalid_client":
		status = http.StatusUnauthorized
	}
	writeJSON(w, status, e)
}

// encrypt encrypts a value for later requests, also to other replicas.
func (s *Server) encrypt(purpose string, v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	encrypted, err := s.cfg.Cipher.Encrypt(noTenant, purpose, text)
	return encode(encrypted), err
}

// decrypt decrypts a value that encrypt encrypted for the same purpose.
func (s *Server) decrypt(purpose, text string, v any) bool {
	encrypted, err := decode(text)
	if err != nil {
		return false
	}
	plain, err := s.cfg.Cipher.Decrypt(noTenant, purpose, encrypted)
	return err == nil && json.Unmarshal(plain, v) == nil
}

const documentTimeout = 5 * time.Second
