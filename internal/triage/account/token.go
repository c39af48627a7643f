package account

import (
	"encoding/json"
	"strings"

	"github.com/countersign-dev/countersign/internal/source/oauth"
)

// Login is the login of an account at an authorization server. It is stored in place of
// the password.
type Login struct {
	Server oauth.Server       `json:"server"`
	Client oauth.Registration `json:"client"`
	Tokens oauth.Tokens       `json:"tokens"`
}

// Text returns the login as the text of a secret.
func (l Login) Text() (string, error) {
	raw, err := json.Marshal(map[string]Login{loginMember: l})
	return string(raw), err
}

// loginMember names the login in the text of a secret.
const loginMember = "oauth"

// ParseLogin parses a secret; ok is false for a password or a bare token.
func ParseLogin(text string) (l Login, ok bool) {
	var of map[string]Login
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &of) != nil {
		return l, false
	}
	l, ok = of[loginMember]
	return l, ok && l.Tokens.Refresh+l.Tokens.Access != "" && l.Server.Check() == nil
}
