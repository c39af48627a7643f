package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
)

const (
	// freshFor is how long an issuer's keys are used without asking for them
	// again, and usableFor how long if it does not answer.
	freshFor  = 15 * time.Minute
	usableFor = time.Hour
	// askEvery bounds how often an issuer is asked, however many tokens come
	// that name a key nobody knows.
	askEvery = 10 * time.Second
	askFor   = 5 * time.Second
	// maxAnswer bounds the metadata of an issuer, in bytes; maxKeys its
	// keys.
	maxAnswer = 1 << 20
	maxKeys   = 100
	// maxIssuers bounds the issuers that are remembered at once.
	maxIssuers = 1000
	minRSABits = 2048
)

// issuers asks issuers for their keys, and remembers them. It is safe for
// concurrent use.
type issuers struct {
	client *http.Client

	mu    sync.Mutex
	known map[string]*issuer
	asked singleflight.Group
}

// issuer is the cached state of one. The mutex of issuers guards it.
type issuer struct {
	said
	// got is when the keys came, asked when they were last asked for.
	got, asked time.Time
}

// said is the metadata of an issuer.
type said struct {
	keys []jose.JSONWebKey
	// endpoint is where people log in; empty if they cannot in a browser.
	endpoint oauth2.Endpoint
}

// newIssuers returns issuers of whom nothing is known, on the public internet and
// in some networks. Their client follows no redirect, uses no proxy, and reads no
// long answer.
func newIssuers(networks []netip.Prefix) *issuers {
	guarded := safehttp.LimitBodies(safehttp.Guard{Networks: networks}.Transport(), maxAnswer)
	return &issuers{client: safehttp.NewClient(guarded, askFor), known: make(map[string]*issuer)}
}

// algorithms are those that a token may be signed with: with a private key
// whose public half the issuer publishes. None, and those with a shared secret,
// are not among them.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// keysFor returns the keys of an issuer that may have signed with a header.
// fault.Busy means that the issuer does not answer.
func (i *issuers) keysFor(ctx context.Context, url string, header jose.Header, now time.Time) ([]jose.JSONWebKey, error) {
	is, got, asked := i.look(url)
	fit := fitting(is.keys, header)
	age, pause := now.Sub(got), now.Sub(asked)
	switch {
	case len(fit) > 0 && age < freshFor:
		return fit, nil
	case pause >= askEvery:
		break
	case len(fit) > 0 && age < usableFor:
		return fit, nil
	case age < usableFor:
		return nil, ErrToken
	default:
		return nil, errSilent(nil)
	}
	fresh, err := i.ask(ctx, url, now)
	switch {
	case err == nil:
		return fitting(fresh.keys, header), nil
	case len(fit) > 0 && age < usableFor:
		return fit, nil
	}
	return nil, errSilent(err)
}

// endpointOf returns where people log in at an issuer. fault.Busy means that the
// issuer does not answer.
func (i *issuers) endpointOf(ctx context.Context, url string, now time.Time) (oauth2.Endpoint, error) {
	is, got, asked := i.look(url)
	age := now.Sub(got)
	var cause error
	if age >= freshFor && now.Sub(asked) >= askEvery {
		fresh, err := i.ask(ctx, url, now)
		if err == nil {
			return fresh.endpoint, nil
		}
		cause = err
	}
	if age < usableFor {
		return is.endpoint, nil
	}
	return oauth2.Endpoint{}, fault.WrapCoded(cause, wire.CodeIssuerUnavailable, fault.Busy, "the issuer does not answer; try again")
}

// errForbiddenIssuer is the error for an issuer in a network that the deployment
// does not allow.
var errForbiddenIssuer = errors.New("the issuer's address is not public; COUNTERSIGN_ISSUER_NETWORKS of the API can allow its network")

// errSilent reports whether nobody can say whether a token is an issuer's.
func errSilent(cause error) error {
	return fault.Wrap(cause, fault.Busy, "the issuer of the token does not answer; tokens of Countersign's own still work")
}

func (i *issuers) look(url string) (of said, got, asked time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if is := i.known[url]; is != nil {
		return is.said, is.got, is.asked
	}
	return said{}, time.Time{}, time.Time{}
}

// ask asks an issuer once for everybody who wants to know. Who leaves does not
// end it for the others.
func (i *issuers) ask(ctx context.Context, url string, now time.Time) (said, error) {
	answer := i.asked.DoChan(url, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askFor)
		defer cancel()
		fresh, err := i.fetch(ctx, url)
		if errors.Is(err, safehttp.ErrForbidden) {
			err = errForbiddenIssuer
		}
		i.keep(url, fresh, now, err == nil)
		return fresh, err
	})
	select {
	case a := <-answer:
		fresh, _ := a.Val.(said)
		return fresh, a.Err
	case <-ctx.Done():
		return said{}, ctx.Err()
	}
}

func (i *issuers) keep(url string, fresh said, now time.Time, came bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	is := i.known[url]
	if is == nil {
		if len(i.known) >= maxIssuers {
			clear(i.known) // more issuers at once than fit: each is asked again
		}
		is = &issuer{}
		i.known[url] = is
	}
	is.asked = now
	if came {
		is.said, is.got = fresh, now
	}
}

// fetch asks an issuer where people log in and where its keys are, and for them.
func (i *issuers) fetch(ctx context.Context, issuer string) (said, error) {
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), issuer)
	if errors.Is(err, safehttp.ErrForbidden) {
		return said{}, fmt.Errorf("ask for the issuer's discovery document: %w", err)
	}
	if err != nil {
		return said{}, errors.New("the issuer's discovery document is not there, or of another issuer") // its own text quotes the answer
	}
	var more struct {
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&more); err != nil {
		return said{}, fmt.Errorf("read where the issuer's keys are: %w", err)
	}
	keys, err := fetchKeys(ctx, i.client, more.Keys)
	if err != nil {
		return said{}, err
	}
	endpoint := found.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader // the standard's default
	if len(more.Methods) > 0 && !slices.Contains(more.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	for _, at := range []string{endpoint.AuthURL, endpoint.TokenURL} {
		if u, err := url.Parse(at); err != nil || !safehttp.Protected(u) {
			endpoint = oauth2.Endpoint{}
		}
	}
	return said{keys, endpoint}, nil
}

// fetchKeys asks for an issuer's keys at an address that the issuer named.
func fetchKeys(ctx context.Context, client *http.Client, at string) ([]jose.JSONWebKey, error) {
	where, err := url.Parse(at)
	if err != nil || !safehttp.Protected(where) {
		return nil, errors.New("the issuer's keys are neither at an https address nor on this machine")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the issuer's keys: %w", err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask for the issuer's keys: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for the issuer's keys: status %d", answer.StatusCode)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read the issuer's keys: %w", err)
	}
	return readKeys(text)
}

// readKeys reads a set of keys, and passes over those that cannot have signed
// a token. A set without one that can is an error.
func readKeys(text []byte) ([]jose.JSONWebKey, error) {
	var set struct{ Keys []json.RawMessage }
	if check.JSON(text) != nil || json.Unmarshal(text, &set) != nil {
		return nil, errors.New("invalid JWKS from issuer")
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys[:min(len(set.Keys), maxKeys)] {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) == nil && signs(key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the issuer has no key that signs")
	}
	return keys, nil
}

// fitting are the keys that may have signed with a header: of its name, if it
// has one, and for its algorithm, if they say for which they are.
func fitting(keys []jose.JSONWebKey, header jose.Header) []jose.JSONWebKey {
	return slices.DeleteFunc(slices.Clone(keys), func(k jose.JSONWebKey) bool {
		return header.KeyID != "" && k.KeyID != header.KeyID || k.Algorithm != "" && k.Algorithm != header.Algorithm
	})
}
