// Package login owns the logins of sources towards authorization servers: those that
// began, the clients by issuer, the encrypted tokens, and their renewal by one worker
// for the fleet. The requests are those of source/oauth. It does not decide who may
// log in, and tokens leave it only for calls of their source.
package login

import (
	"cmp"
	"context"
	"encoding/base64"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/mcp"
	"github.com/countersign-dev/countersign/internal/source/oauth"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// beginFor is the time that a person has at the authorization server.
const beginFor = 10 * time.Minute

// Logins begins, finishes and renews logins of sources. It is safe for concurrent
// use.
type Logins struct {
	db     postgres.Begins
	cipher connection.Cipher
	client *oauth.Client
	log    *slog.Logger
}

// New returns Logins that reach the public internet and networks.
func New(db postgres.Begins, cipher connection.Cipher, networks []netip.Prefix, log *slog.Logger) *Logins {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Logins{db: db, cipher: cipher, client: oauth.New(networks), log: log}
}

// stored is a login as it is encrypted.
type stored struct {
	// URL is the source to which the tokens are sent, and to no other.
	URL      string             `json:"url"`
	Server   oauth.Server       `json:"server"`
	Client   oauth.Registration `json:"client"`
	Tokens   oauth.Tokens       `json:"tokens"`
	IssuedAt time.Time          `json:"issued_at"`
}

// begun is a login that has no tokens yet.
type begun struct {
	stored
	Source   string `json:"source"`
	Verifier string `json:"verifier,omitzero"`
	// Device is set for a login without a browser.
	Device *oauth.Device `json:"device,omitempty"`
	// KeepClient is set if Client is to be stored, and Configured if a person
	// registered it.
	KeepClient bool `json:"keep_client,omitzero"`
	Configured bool `json:"configured,omitzero"`
}

// Options are the choices of a person who logs in.
type Options struct {
	// Redirect is where the browser comes back, and Document the address of the
	// client's metadata document; empty if the API has no public address.
	Redirect, Document string
	// Device logs in without a browser.
	Device bool
	// Page names the source in the state, for the operator's page: see SourceOf.
	Page bool
	// Scopes are those to ask for; without any the source's own, those of the login,
	// and those that it lacks.
	Scopes []string
	// ClientID and ClientSecret are those of a client that the person registered.
	ClientID, ClientSecret string
}

// Begun is a login that waits for a person.
type Begun struct {
	// State names the login. URL is where the person goes, and UserCode what the
	// person enters there for a device.
	State, URL, UserCode string
	Issuer               string
	Interval             time.Duration
	ExpiresAt            time.Time
}

// Begin begins a login of a source. Only by can finish it.
func (l *Logins) Begin(ctx context.Context, tenant envelope.TenantID, by uuid.UUID, src catalog.Source, o Options, now time.Time) (Begun, error) {
	at, err := addressOf(src)
	switch {
	case err != nil:
		return Begun{}, err
	case !l.cipher.HasKey():
		return Begun{}, fault.New(fault.Conflict, "storing a login needs COUNTERSIGN_SECRET_KEY to be set")
	case !o.Device && o.Redirect == "":
		return Begun{}, fault.New(fault.Conflict, "a login in a browser needs COUNTERSIGN_PUBLIC_URL of the API to be set; log in with --device")
	}
	if o.Device {
		o.Redirect = ""
	}
	b := begun{stored: stored{URL: at}, Source: src.ID}
	var more []string
	if src.Login != nil && len(o.Scopes) == 0 && len(src.Login.NeededScopes) > 0 {
		more = append(strings.Fields(src.Login.Scope), src.Login.NeededScopes...)
	}
	if b.Server, err = l.server(ctx, src, at, o.Scopes, more); err != nil {
		return Begun{}, err
	}
	if err := l.setClient(ctx, tenant, &b, o, now); err != nil {
		return Begun{}, err
	}
	made := Begun{State: stateFor(src.ID, o.Page), Issuer: b.Server.Issuer, ExpiresAt: now.Add(beginFor)}
	if o.Device {
		device, err := l.client.StartDevice(ctx, b.Server, b.Client, now)
		if err != nil {
			return Begun{}, err
		}
		b.Device = &device
		made.URL, made.UserCode, made.Interval, made.ExpiresAt = device.URL, device.UserCode, device.Interval, device.ExpiresAt
	} else {
		if b.Server.AuthorizeURL == "" {
			return Begun{}, fault.New(fault.Conflict, "the authorization server has no page to log in; log in with --device")
		}
		b.Verifier = oauth.NewVerifier()
		made.URL = b.Server.AuthorizationURL(b.Client, made.State, b.Verifier)
	}
	return made, postgres.InTx(ctx, l.db, postgres.API(tenant), func(tx pgx.Tx) error {
		return l.putState(ctx, tx, tenant, made.State, by, b, made.ExpiresAt)
	})
}

// server returns the authorization server of a source: of a mailbox the one in its
// configuration, else the one that is discovered.
func (l *Logins) server(ctx context.Context, src catalog.Source, at string, scopes, more []string) (oauth.Server, error) {
	if src.Kind != catalog.KindMail {
		return l.client.Discover(ctx, at, scopes, more...)
	}
	of, err := connection.MailLogin(src)
	if err != nil {
		return oauth.Server{}, err
	}
	is := oauth.Server{
		Issuer: of.OAuth.Issuer, AuthorizeURL: of.OAuth.AuthorizeURL, TokenURL: of.OAuth.TokenURL, DeviceURL: of.OAuth.DeviceURL, Offline: of.OAuth.Offline,
		Scope: cmp.Or(strings.Join(scopes, " "), of.OAuth.Scope),
	}
	return is, is.Check()
}

// pageState begins the states of logins that began on the operator's page.
const pageState = "page."

func stateFor(source string, page bool) string {
	if page {
		return pageState + source + "." + oauth.NewVerifier()
	}
	return oauth.NewVerifier()
}

// SourceOf returns the source of a login that began on the operator's page, by its
// state, and empty for other logins. Anybody can write a state: only Finish knows
// whether it is one of a login.
func SourceOf(state string) string {
	rest, page := strings.CutPrefix(state, pageState)
	if i := strings.LastIndexByte(rest, '.'); page && i > 0 {
		return rest[:i]
	}
	return ""
}

// addressOf returns the address of a source that can log in.
func addressOf(src catalog.Source) (string, error) {
	if src.Kind == catalog.KindMail {
		of, err := connection.MailLogin(src)
		return of.Address(), err
	}
	if src.Kind != catalog.KindMCP {
		return "", fault.New(fault.Conflict, "only sources of the kinds mcp and mail log in; give the credentials of this one: countersign source set --credentials")
	}
	cfg, err := connection.ParseMCPConfig(src.Config)
	if err != nil {
		return "", err
	}
	if cfg.Transport != mcp.TransportHTTP {
		return "", fault.New(fault.Conflict, "a source that starts a program does not log in")
	}
	return cfg.URL, nil
}

// setClient sets the client of a login: a configured one, else the metadata document,
// else the client that was registered before, else a new one.
func (l *Logins) setClient(ctx context.Context, tenant envelope.TenantID, b *begun, o Options, now time.Time) error {
	if o.ClientID != "" {
		b.Client, b.KeepClient, b.Configured = b.Server.Configured(o.ClientID, o.ClientSecret, o.Redirect), true, true
		return nil
	}
	var known oauth.Registration
	var configured, ok bool
	err := postgres.InTx(ctx, l.db, postgres.API(tenant), func(tx pgx.Tx) (err error) {
		known, configured, ok, err = l.storedClient(ctx, tx, tenant, b.Server.Issuer)
		return err
	})
	switch {
	case err != nil:
		return err
	case configured:
		b.Client = b.Server.Configured(known.ID, known.Secret, o.Redirect)
	case b.Server.Documents && strings.HasPrefix(o.Document, "https://"):
		b.Client = oauth.Registration{ID: o.Document, RedirectURI: o.Redirect}
	case ok && !known.Expired(now) && known.RedirectURI == o.Redirect:
		b.Client = known
	default:
		b.Client, err = l.client.Register(ctx, b.Server, o.Redirect, o.Device)
		b.KeepClient = true // once somebody has logged in with it: servers forget unused ones
	}
	return err
}

// Made is a login with tokens, to be stored.
type Made struct {
	stored
	Source string

	keepClient, configured bool
	device                 bool
	state                  string
	by                     uuid.UUID
}

// Finish finishes a login that by began. The answer is the parameters with which the
// browser came back, or those of Pending for a device. pending is set while the
// person at the other device has not decided.
func (l *Logins) Finish(ctx context.Context, tenant envelope.TenantID, by uuid.UUID, src catalog.Source, answer url.Values, now time.Time) (m Made, pending time.Duration, err error) {
	state := answer.Get("state")
	var b begun
	err = postgres.InTx(ctx, l.db, postgres.API(tenant), func(tx pgx.Tx) (err error) {
		if b, err = l.state(ctx, tx, tenant, state, by); err != nil || b.Device != nil {
			return err
		}
		return takeState(ctx, tx, tenant, state, by)
	})
	if err != nil {
		return m, 0, err
	}
	if at, err := addressOf(src); err != nil || b.Source != src.ID || at != b.URL {
		return m, 0, fault.New(fault.Conflict, "the address of the source changed since the login began; begin again")
	}
	m = Made{stored: b.stored, Source: b.Source, keepClient: b.KeepClient, configured: b.Configured, state: state, by: by, device: b.Device != nil}
	m.IssuedAt = now
	if b.Device != nil {
		var waits, slower bool
		m.Tokens, waits, slower, err = l.client.Poll(ctx, b.Server, b.Client, *b.Device, now)
		if waits {
			pending = b.Device.Interval
			if slower {
				pending += 5 * time.Second
			}
		}
		return m, pending, err
	}
	for _, values := range answer {
		if len(values) != 1 {
			return m, 0, fault.New(fault.Invalid, "the answer has a parameter twice; begin again")
		}
	}
	if err := b.Server.CheckIssuer(answer.Get("iss")); err != nil {
		return m, 0, err
	}
	if answer.Has("error") || answer.Get("code") == "" {
		return m, 0, fault.New(fault.Denied, "the login was refused at the authorization server; begin again")
	}
	m.Tokens, err = l.client.Exchange(ctx, b.Server, b.Client, answer.Get("code"), b.Verifier, now)
	return m, 0, err
}

// Answer returns the text with which a person finishes a login from another program
// than the browser: the parameters with which the browser came back.
func Answer(query url.Values) string {
	kept := url.Values{}
	for _, name := range []string{"state", "code", "iss", "error"} {
		if values := query[name]; len(values) > 0 {
			kept[name] = values
		}
	}
	return base64.RawURLEncoding.EncodeToString([]byte(kept.Encode()))
}

// ParseAnswer parses the result of Answer, or the address to which the browser came
// back.
func ParseAnswer(text string) (url.Values, error) {
	invalid := fault.New(fault.Invalid, "not the answer of a login; copy the whole text that the browser shows")
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "http") {
		u, err := url.Parse(text)
		if err != nil {
			return nil, invalid
		}
		return u.Query(), nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, invalid
	}
	values, err := url.ParseQuery(string(raw))
	if err != nil || values.Get("state") == "" {
		return nil, invalid
	}
	return values, nil
}
