package identity

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/jsonref"
)

// leeway is how far an issuer's clock may be from this one.
const leeway = time.Minute

// claims are what a signed token says. They are data: nothing is believed of
// them before the signature was verified.
type claims struct {
	issuer, subject string
	audience        audience
	// expiry, notBefore and issuedAt are in seconds since 1970.
	expiry, notBefore, issuedAt *float64
	// party and client are to whom it was issued.
	party, client string
	// events makes it a message of the issuer about somebody, such as that it
	// logged out, signed with the same keys and for the same audience.
	events json.RawMessage

	email, name, userName string
	verified              json.RawMessage

	all map[string]any
}

// audience is a text or a list of texts.
type audience []string

// UnmarshalJSON reads either form.
func (a *audience) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		*a = make(audience, 1)
		return json.Unmarshal(text, &(*a)[0])
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// readClaims reads a payload. Names are taken as they are written: the decoder
// of structures would take EMAIL, which an account may be free to set, for
// email. The error is ErrToken.
func readClaims(payload []byte) (*claims, error) {
	var c claims
	var raw map[string]json.RawMessage
	if json.Unmarshal(payload, &raw) != nil || json.Unmarshal(payload, &c.all) != nil {
		return nil, ErrToken
	}
	c.events, c.verified = raw["events"], raw["email_verified"]
	for name, into := range map[string]any{
		"iss": &c.issuer, "sub": &c.subject, "aud": &c.audience, "exp": &c.expiry, "nbf": &c.notBefore, "iat": &c.issuedAt,
		"azp": &c.party, "client_id": &c.client, "email": &c.email, "name": &c.name, "preferred_username": &c.userName,
	} {
		if text, ok := raw[name]; ok && json.Unmarshal(text, into) != nil {
			return nil, ErrToken
		}
	}
	return &c, nil
}

// check reports whether a token is for an audience, at a time. It returns when
// the token ends. The error is ErrToken.
func (c *claims) check(p *Provider, now time.Time) (until time.Time, err error) {
	const maxSubject = 255 // as OpenID Connect has it
	if c.subject == "" || plain(c.subject, maxSubject) != c.subject || len(c.events) > 0 || c.expiry == nil {
		return until, ErrToken
	}
	until, ok := instant(*c.expiry)
	if !ok || !now.Before(until.Add(leeway)) {
		return until, ErrToken
	}
	for _, begin := range []*float64{c.notBefore, c.issuedAt} {
		if begin == nil {
			continue
		}
		if at, ok := instant(*begin); !ok || now.Add(leeway).Before(at) {
			return until, ErrToken
		}
	}
	return until, c.checkParty(p)
}

// checkParty refuses a token that was issued to somebody else, who passes it
// on; and one for several audiences that does not say to whom it was issued.
func (c *claims) checkParty(p *Provider) error {
	if len(c.audience) > 1 && c.party == "" && c.client == "" {
		return ErrToken
	}
	for _, party := range []string{c.party, c.client} {
		if party != "" && party != p.Audience && !slices.Contains(p.Clients, party) {
			return ErrToken
		}
	}
	return nil
}

// instant reads seconds since 1970 that are within reason.
func instant(seconds float64) (time.Time, bool) {
	const most = 1 << 40
	if math.IsNaN(seconds) || seconds < 0 || seconds > most {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(seconds * 1000)), true
}

// verifiedEmail is the address, if the issuer says that it has verified it and
// it is one.
func (c *claims) verifiedEmail() string {
	// Some issuers write it as a text.
	if v := string(c.verified); v != "true" && v != `"true"` {
		return ""
	}
	if strings.Count(c.email, "@") != 1 || plain(c.email, maxName) != c.email || strings.ContainsAny(c.email, " \"(),:;<>[]\\") {
		return ""
	}
	return c.email
}

// shownName is what to call whom the claims are of.
func (c *claims) shownName() string {
	for _, text := range []string{c.name, c.userName, c.verifiedEmail(), c.subject} {
		if name := plain(text, maxName); name != "" {
			return name
		}
	}
	return "somebody"
}

// texts returns the text, or the texts of the list, at a claim, which is named
// by itself or by a JSON Pointer.
func (c *claims) texts(at string) []string {
	found := c.all[at]
	if path, ok := jsonref.ParsePointer(at); ok {
		found, _ = path.Find(c.all)
	}
	switch v := found.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, one := range v {
			if text, ok := one.(string); ok {
				all = append(all, text)
			}
		}
		return all
	}
	return nil
}
