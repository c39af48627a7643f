package source

import "errors"

// The errors of a source that logs in and has no token.
var (
	// ErrLoginLost means that somebody has to log in again.
	ErrLoginLost = errors.New("the login of the source is lost; log in again: countersign source login")
	// ErrLoginUnavailable means that a token may be had later.
	ErrLoginUnavailable = errors.New("the token of the source's login cannot be renewed now")
)

// LoginCode returns the code for an error of a source without a token, or "".
func LoginCode(err error) string {
	switch {
	case errors.Is(err, ErrLoginLost):
		return CodeLoginLost
	case errors.Is(err, ErrLoginUnavailable):
		return CodeLoginUnavailable
	}
	return ""
}

// WithoutLogin returns the observation of a call that was not executed for want of a
// token. A lost login refuses the call if fails is set; otherwise the call waits.
func WithoutLogin(code string, fails bool) Observation {
	if code == CodeLoginLost && fails {
		return Refuse(code, "")
	}
	return Observation{Code: code, Held: true}
}
