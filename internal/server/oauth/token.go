package oauth

import (
	"errors"
	"mime"
	"net/http"
	"net/url"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// form reads the body of a request to the token or revocation endpoint.
func form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/x-www-form-urlencoded" {
		return nil, refusal{"invalid_request", "send the body as application/x-www-form-urlencoded"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return nil, refusal{"invalid_request", "the body is not a form"}
	}
	for _, values := range r.PostForm {
		if len(values) > 1 {
			return nil, refusal{"invalid_request", "a parameter is sent twice"}
		}
	}
	return r.PostForm, nil
}

// token answers POST /oauth/token.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	made, err := s.tokensFor(w, r)
	if errors.Is(err, identity.ErrGrant) {
		err = refusal{"invalid_grant", "the code or refresh token is not valid; log in again"}
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": made.Access.Text(), "token_type": "Bearer", "expires_in": int(made.ExpiresIn.Seconds()),
		"refresh_token": made.Refresh.Text(), "scope": scopeText(made.Scopes),
	})
}

func (s *Server) tokensFor(w http.ResponseWriter, r *http.Request) (identity.ProgramTokens, error) {
	f, err := form(w, r)
	if err != nil {
		return identity.ProgramTokens{}, err
	}
	if resource := f.Get("resource"); resource != "" && resource != s.Resource() {
		return identity.ProgramTokens{}, refusal{"invalid_target", "resource must be " + s.Resource()}
	}
	switch f.Get("grant_type") {
	case "authorization_code":
		return s.tokens.RedeemProgramCode(r.Context(), identity.Redemption{
			Code: f.Get("code"), ClientID: f.Get("client_id"), RedirectURI: f.Get("redirect_uri"), Resource: f.Get("resource"), Verifier: f.Get("code_verifier"),
		})
	case "refresh_token":
		return s.tokens.RefreshProgram(r.Context(), f.Get("refresh_token"), f.Get("client_id"), f.Get("resource"))
	}
	return identity.ProgramTokens{}, refusal{"unsupported_grant_type", "grant_type must be authorization_code or refresh_token"}
}

// revoke answers POST /oauth/revoke (RFC 7009). A token that is not valid is no
// error.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	f, err := form(w, r)
	if err == nil {
		err = s.tokens.EndProgram(r.Context(), f.Get("token"))
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}
