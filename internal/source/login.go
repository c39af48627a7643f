package source

import (
	"errors"
	"strings"
)

// The errors of a source that logs in and has no token.
var (
	// ErrLoginLost means that somebody has to log in again.
	ErrLoginLost = errors.New("the login of the source is lost; log in again: countersign source login")
	// ErrLoginUnavailable means that a token may be had later.
	ErrLoginUnavailable = errors.New("the token of the source's login cannot be renewed now")
)

// ScopeError is ErrLoginLost of a login that lacks scopes which the source demands.
type ScopeError struct {
	Scopes []string
}

// Error implements error.
func (e *ScopeError) Error() string {
	return "the login of the source lacks the scopes " + strings.Join(e.Scopes, " ") + "; log in again: countersign source login"
}

// Is reports whether target is ErrLoginLost.
func (e *ScopeError) Is(target error) bool { return target == ErrLoginLost }

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
// token, or whose token lacks a scope. A lost login refuses the call if fails is set;
// otherwise the call waits.
func WithoutLogin(err error, fails bool) Observation {
	o := Observation{Code: LoginCode(err)}
	if lacking, ok := errors.AsType[*ScopeError](err); ok {
		o.Message = lacking.Error()
	}
	o.Permanent = o.Code == CodeLoginLost && fails
	o.Held = !o.Permanent
	return o
}
