package mcp

import (
	"io"
	"net/http"
)

// authorized returns the transport of requests, which adds the token of a login.
func (s *Source) authorized() http.RoundTripper {
	if s.cfg.Tokens == nil {
		return s.base
	}
	return &bearer{base: s.base, tokens: s.cfg.Tokens}
}

// bearer sends every request with a token. If the server rejects it, which is before
// the request is executed, the request is sent once more with another one.
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
	if err != nil || resp.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
		return resp, err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody) // so that the connection can be used again
	_ = resp.Body.Close()
	if token, err = b.tokens.Token(req.Context(), token); err != nil {
		return nil, err
	}
	again := withToken(req, token)
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return b.base.RoundTrip(again)
}

func withToken(req *http.Request, token string) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return req
}
