package oauth

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
)

// The ways in which a client proves its secret.
const (
	methodNone  = "none"
	methodPost  = "client_secret_post"
	methodBasic = "client_secret_basic"
)

// The grants of a client.
const (
	grantRefresh = "refresh_token"
	grantCode    = "authorization_code"
	grantDevice  = "urn:ietf:params:oauth:grant-type:device_code"
)

// Registration is a client of an authorization server.
type Registration struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitzero"`
	// Method is how the client proves its secret.
	Method string `json:"method,omitzero"`
	// RedirectURI is where logins come back; empty for devices.
	RedirectURI string `json:"redirect_uri,omitzero"`
	// ExpiresAt is the end of the secret; zero if it has none.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// Expired reports whether the secret of a client has ended.
func (r Registration) Expired(now time.Time) bool {
	return !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
}

// Configured returns a client that a person registered.
func (s Server) Configured(id, secret, redirect string) Registration {
	r := Registration{ID: id, Secret: secret, Method: methodNone, RedirectURI: redirect}
	if secret != "" {
		r.Method = methodBasic // the default of RFC 8414
		if len(s.Methods) > 0 && !slices.Contains(s.Methods, methodBasic) {
			r.Method = methodPost
		}
	}
	return r
}

// Metadata returns the metadata of Countersign as a client: for a registration, and
// for a metadata document.
func Metadata(redirect string) oauthex.ClientRegistrationMetadata {
	m := oauthex.ClientRegistrationMetadata{
		ClientName: "Countersign", GrantTypes: []string{grantCode, grantRefresh}, ResponseTypes: []string{"code"},
		TokenEndpointAuthMethod: methodNone, ApplicationType: "web", RedirectURIs: []string{redirect},
	}
	if u, err := url.Parse(redirect); err == nil {
		m.ClientURI = u.Scheme + "://" + u.Host
		if safehttp.Local(u.Hostname()) {
			m.ApplicationType = "native"
		}
	}
	return m
}

// Document returns the metadata document of an address (Client ID Metadata Document).
func Document(id, redirect string) any {
	m := Metadata(redirect)
	m.GrantTypes = append(m.GrantTypes, grantDevice)
	return struct {
		ClientID string `json:"client_id"`
		oauthex.ClientRegistrationMetadata
	}{id, m}
}

// Register registers a client. The redirect is empty for a device.
func (c *Client) Register(ctx context.Context, s Server, redirect string, device bool) (Registration, error) {
	if s.RegisterURL == "" {
		return Registration{}, fault.New(fault.Conflict, "%s registers no clients; register Countersign there, and name the client with --client-id", host(s.Issuer))
	}
	m := Metadata(redirect)
	if device {
		// Servers want an address nonetheless. Nothing is sent to it.
		m = Metadata("http://127.0.0.1/")
		m.GrantTypes, m.ClientURI = append(m.GrantTypes, grantDevice), ""
	}
	if len(s.Methods) > 0 && !slices.Contains(s.Methods, methodNone) {
		for _, method := range []string{methodPost, methodBasic} {
			if slices.Contains(s.Methods, method) {
				m.TokenEndpointAuthMethod = method
			}
		}
	}
	made, err := oauthex.RegisterClient(ctx, s.RegisterURL, &m, c.http)
	if refused, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
		return Registration{}, fault.Wrap(&Refused{code(refused.ErrorCode)}, fault.Conflict, "%s refuses to register Countersign: %s", host(s.Issuer), code(refused.ErrorCode))
	}
	if err != nil {
		return Registration{}, unavailable(s.RegisterURL, err)
	}
	r := Registration{ID: made.ClientID, Secret: made.ClientSecret, Method: made.TokenEndpointAuthMethod, RedirectURI: redirect}
	switch {
	case r.ID == "" || len(r.ID) > maxURL || len(r.Secret) > maxURL:
		return Registration{}, fault.New(fault.Conflict, "%s answers a registration with an invalid client", host(s.Issuer))
	case r.Secret == "":
		r.Method = methodNone
	case r.Method != methodPost:
		r.Method = methodBasic
	}
	if r.Secret != "" && made.ClientSecretExpiresAt.Unix() > 0 {
		r.ExpiresAt = made.ClientSecretExpiresAt
	}
	return r, nil
}

// Device is a login without a browser: a person enters the code at an address.
type Device struct {
	// Code is the secret of the device, UserCode the code that the person enters.
	Code      string        `json:"code"`
	UserCode  string        `json:"user_code"`
	URL       string        `json:"url"`
	Interval  time.Duration `json:"interval"`
	ExpiresAt time.Time     `json:"expires_at"`
}

// StartDevice begins a login without a browser (RFC 8628).
func (c *Client) StartDevice(ctx context.Context, s Server, client Registration, now time.Time) (Device, error) {
	if s.DeviceURL == "" {
		return Device{}, fault.New(fault.Conflict, "%s has no logins for devices; log in without --device", host(s.Issuer))
	}
	form := url.Values{}
	if s.Resource != "" {
		form.Set("resource", s.Resource)
	}
	if s.Scope != "" {
		form.Set("scope", s.Scope)
	}
	var answer struct {
		DeviceCode string  `json:"device_code"`
		UserCode   string  `json:"user_code"`
		URL        string  `json:"verification_uri"`
		WholeURL   string  `json:"verification_uri_complete"`
		ExpiresIn  float64 `json:"expires_in"`
		Interval   float64 `json:"interval"`
	}
	if err := c.post(ctx, s.DeviceURL, client, form, &answer); err != nil {
		return Device{}, err
	}
	d := Device{
		Code: answer.DeviceCode, UserCode: answer.UserCode, URL: answer.URL,
		Interval: seconds(answer.Interval, 5*time.Second, time.Minute), ExpiresAt: now.Add(seconds(answer.ExpiresIn, time.Minute, time.Hour)),
	}
	if protected(answer.WholeURL) {
		d.URL = answer.WholeURL
	}
	if !isToken(d.Code) || !isToken(d.UserCode) || len(d.UserCode) > 50 || !protected(d.URL) {
		return Device{}, fault.New(fault.Conflict, "%s answers with an invalid login for devices", host(s.Issuer))
	}
	return d, nil
}

func seconds(n float64, standard, most time.Duration) time.Duration {
	if n <= 0 {
		return standard
	}
	return time.Duration(min(n, most.Seconds()) * float64(time.Second))
}

// Poll asks for the tokens of a device. pending is set while the person has not
// decided; slower asks for longer pauses.
func (c *Client) Poll(ctx context.Context, s Server, client Registration, d Device, now time.Time) (t Tokens, pending, slower bool, err error) {
	t, err = granted(s)(c.request(ctx, s, client, url.Values{"grant_type": {grantDevice}, "device_code": {d.Code}}, now))
	if refused, ok := errors.AsType[*Refused](err); ok {
		switch refused.Code {
		case "authorization_pending":
			return Tokens{}, true, false, nil
		case "slow_down":
			return Tokens{}, true, true, nil
		}
	}
	return t, false, false, err
}
