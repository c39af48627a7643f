package mcp

import (
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// authorized returns the transport of requests, which adds the token of a login.
func (s *Source) authorized() http.RoundTripper {
	if s.cfg.Tokens == nil {
		return s.base
	}
	return &bearer{base: s.base, tokens: s.cfg.Tokens}
}

// calledTool is the context key of the tool of a tools/call.
type calledTool struct{}

// bearer sends every request with a token. If the server rejects it, which is before
// the request is executed, the request is sent once more with another one. A request
// that needs more scopes fails.
type bearer struct {
	base   http.RoundTripper
	tokens Tokens
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := b.tokens.Token(req.Context(), "")
	if err != nil {
		return nil, err
	}
	resp, err := b.base.RoundTrip(withToken(req, token))
	if err == nil && resp.StatusCode == http.StatusUnauthorized && (req.Body == nil || req.GetBody != nil) {
		discard(resp)
		if token, err = b.tokens.Token(req.Context(), token); err != nil {
			return nil, err
		}
		again := withToken(req, token)
		if req.GetBody != nil {
			if again.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err = b.base.RoundTrip(again)
	}
	if err != nil || resp.StatusCode != http.StatusForbidden || req.Method != http.MethodPost {
		return resp, err
	}
	scopes := demanded(resp)
	if len(scopes) == 0 {
		return resp, nil
	}
	tool, _ := req.Context().Value(calledTool{}).(string)
	if err := b.tokens.NeedScopes(req.Context(), token, tool, scopes); err != nil {
		discard(resp)
		return nil, err
	}
	return resp, nil
}

// discard reads the rest of a small answer, so that the connection can be used again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody)
	_ = resp.Body.Close()
}

// demanded returns the scopes of a challenge insufficient_scope (RFC 6750).
func demanded(resp *http.Response) []string {
	all, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil
	}
	for _, of := range all {
		if of.Scheme == "bearer" && of.Params["error"] == "insufficient_scope" {
			return strings.Fields(of.Params["scope"])
		}
	}
	return nil
}

func withToken(req *http.Request, token string) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return req
}
