package identity

import (
	"encoding/base64"
	"testing"
	"time"
)

// FuzzSignedToken checks that parsing ends for every input, and that no claim is
// accepted without a key.
func FuzzSignedToken(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"alg":"RS256","kid":"a"}`, `{"iss":"https://i","aud":"a","sub":"s","exp":1}`},
		{`{"alg":"none"}`, `{"iss":"https://i","aud":["a"],"sub":"s"}`},
		{`{"alg":"ES256","typ":"at+jwt","crit":["b64"],"b64":false}`, `{"iss":"https://i","aud":[1],"exp":1e400}`},
		{`{"alg":"EdDSA","jwk":{}}`, `[]`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]), []byte("signature"))
	}
	f.Fuzz(func(t *testing.T, header, payload, signature []byte) {
		encode := base64.RawURLEncoding.EncodeToString
		token, err := parseSigned(encode(header) + "." + encode(payload) + "." + encode(signature))
		if err != nil {
			return
		}
		if len(token.claims.audience) == 0 || token.claims.issuer == "" {
			t.Errorf("a token for nobody, or of nobody, was read")
		}
		p := &Provider{Issuer: token.claims.issuer, Audience: token.claims.audience[0]}
		if _, err := token.verify(t.Context(), p, nil, time.Unix(0, 0)); err == nil {
			t.Errorf("a token was believed without a key")
		}
	})
}

// FuzzClaims checks that claims of any form give texts or nothing, and that
// names contain only visible characters.
func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"realm_access":{"roles":["a",1,null]},"name":"A\u202eb\n","email":"a@b","email_verified":"true"}`), "/realm_access/roles")
	f.Add([]byte(`{"a":[["x"]]}`), "/a/0/0")
	f.Add([]byte(`{"https://acme.com/roles":"x"}`), "https://acme.com/roles")
	f.Fuzz(func(t *testing.T, payload []byte, at string) {
		c, err := readClaims(payload)
		if err != nil {
			return
		}
		_ = c.texts(at)
		if name := c.shownName(); name == "" || len(name) > maxName || Plain(name, maxName) != name {
			t.Errorf("shownName() = %q", name)
		}
		if role, _ := (&Provider{RoleClaim: at, Roles: map[string]Role{"a": RoleAdmin}, DefaultRole: RoleViewer}).roleOf(c); role.rank() < RoleViewer.rank() {
			t.Error("a claim took the default role away")
		}
	})
}
