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
	// freshFor is how long an issuer's keys are used before they are requested
	// again, and usableFor how long if the issuer does not answer.
	freshFor  = 15 * time.Minute
	usableFor = time.Hour
	// askEvery bounds the rate of requests to an issuer, regardless of the
	// number of tokens with unknown keys.
	askEvery = 10 * time.Second
	askFor   = 5 * time.Second
	// maxAnswer bounds the metadata of an issuer, in bytes; maxKeys its keys.
	maxAnswer = 1 << 20
	maxKeys   = 100
	// maxIssuers bounds the cached issuers.
	maxIssuers = 1000
	minRSABits = 2048
)

// issuers requests and caches the metadata of issuers. It is safe for concurrent
// use.
type issuers struct {
	client *http.Client

	mu    sync.Mutex
	known map[string]*issuer
	asked singleflight.Group
}

// issuer is the cached state of one issuer. The mutex of issuers guards it.
type issuer struct {
	metadata
	// got is the time at which the metadata was received, asked that of the last
	// request.
	got, asked time.Time
}

// metadata is an issuer's login endpoint and keys.
type metadata struct {
	keys []jose.JSONWebKey
	// endpoint is the login endpoint; empty if the issuer has none for browsers.
	endpoint oauth2.Endpoint
}

// newIssuers returns an empty cache of issuers on the public internet and in
// networks. Its client follows no redirects, uses no proxy, and limits the
// length of answers.
func newIssuers(networks []netip.Prefix) *issuers {
	guarded := safehttp.LimitBodies(safehttp.Guard{Networks: networks}.Transport(), maxAnswer)
	return &issuers{client: safehttp.NewClient(guarded, askFor), known: make(map[string]*issuer)}
}

// algorithms returns the accepted signature algorithms: those with a private key
// whose public key the issuer publishes. "none" and those with a shared secret
// are not among them.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// keysFor returns the keys of an issuer that may have signed a token with a
// header. fault.Busy means that the issuer does not answer.
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
		return nil, errUnavailable(nil)
	}
	fresh, err := i.ask(ctx, url, now)
	switch {
	case err == nil:
		return fitting(fresh.keys, header), nil
	case len(fit) > 0 && age < usableFor:
		return fit, nil
	}
	return nil, errUnavailable(err)
}

// endpointOf returns the login endpoint of an issuer. fault.Busy means that the
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

// errUnavailable is the error for an issuer that does not answer.
func errUnavailable(cause error) error {
	return fault.Wrap(cause, fault.Busy, "the issuer of the token does not answer; tokens of Countersign's own still work")
}

func (i *issuers) look(url string) (of metadata, got, asked time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if is := i.known[url]; is != nil {
		return is.metadata, is.got, is.asked
	}
	return metadata{}, time.Time{}, time.Time{}
}

// ask requests the metadata of an issuer once for all concurrent callers. The
// end of one caller's context does not end it for the others.
func (i *issuers) ask(ctx context.Context, url string, now time.Time) (metadata, error) {
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
		fresh, _ := a.Val.(metadata)
		return fresh, a.Err
	case <-ctx.Done():
		return metadata{}, ctx.Err()
	}
}

func (i *issuers) keep(url string, fresh metadata, now time.Time, came bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	is := i.known[url]
	if is == nil {
		if len(i.known) >= maxIssuers {
			clear(i.known) // the cache is full: all issuers are requested again
		}
		is = &issuer{}
		i.known[url] = is
	}
	is.asked = now
	if came {
		is.metadata, is.got = fresh, now
	}
}

// fetch requests the metadata of an issuer and its keys.
func (i *issuers) fetch(ctx context.Context, issuer string) (metadata, error) {
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), issuer)
	if errors.Is(err, safehttp.ErrForbidden) {
		return metadata{}, fmt.Errorf("ask for the issuer's discovery document: %w", err)
	}
	if err != nil {
		return metadata{}, errors.New("the issuer's discovery document is missing, or belongs to another issuer") // its own text quotes the answer
	}
	var more struct {
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&more); err != nil {
		return metadata{}, fmt.Errorf("read where the issuer's keys are: %w", err)
	}
	keys, err := fetchKeys(ctx, i.client, more.Keys)
	if err != nil {
		return metadata{}, err
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
	return metadata{keys, endpoint}, nil
}

// fetchKeys requests an issuer's keys at an address from its metadata.
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

// readKeys parses a JWKS, and skips keys that cannot have signed a token. A set
// without a usable key is an error.
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

// fitting returns the keys that may have signed a token with a header: those
// with its key id, if it has one, and for its algorithm, if the key specifies
// one.
func fitting(keys []jose.JSONWebKey, header jose.Header) []jose.JSONWebKey {
	return slices.DeleteFunc(slices.Clone(keys), func(k jose.JSONWebKey) bool {
		return header.KeyID != "" && k.KeyID != header.KeyID || k.Algorithm != "" && k.Algorithm != header.Algorithm
	})
}
