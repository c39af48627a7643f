package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/countersign-dev/countersign/internal/fault"
)

const (
	protocolVersion = "2025-11-25"

	resourcePath = "/.well-known/oauth-protected-resource"
	serverPath   = "/.well-known/oauth-authorization-server"
	openIDPath   = "/.well-known/openid-configuration"
)

// Discover finds the authorization server of a source. Scopes are those to ask for;
// without any, the source's own. More are added to them.
func (c *Client) Discover(ctx context.Context, source string, scopes []string, more ...string) (Server, error) {
	at, err := url.Parse(source)
	if err != nil || !protected(source) {
		return Server{}, fault.New(fault.Conflict, "a login needs a source with https, or on this machine")
	}
	asked, err := c.challenge(ctx, source)
	if err != nil {
		return Server{}, err
	}
	found, err := c.resource(ctx, at, asked.metadata)
	if err != nil {
		return Server{}, err
	}
	s, err := c.server(ctx, found.issuers, found.guessed)
	if err != nil {
		return Server{}, err
	}
	s.Resource = found.resource
	if len(scopes) == 0 {
		scopes = asked.scopes
	}
	if len(scopes) == 0 {
		scopes = found.scopes
	}
	if slices.Contains(s.supported, refreshScope) && !slices.Contains(scopes, refreshScope) {
		scopes = append(slices.Clone(scopes), refreshScope)
	}
	for _, scope := range more {
		if !slices.Contains(scopes, scope) {
			scopes = append(slices.Clip(scopes), scope)
		}
	}
	s.Scope = strings.Join(scopes, " ")
	return s.Server, nil
}

// Issuer returns the authorization server of an issuer, by its metadata, with scopes to
// ask for.
func (c *Client) Issuer(ctx context.Context, issuer string, scopes []string) (Server, error) {
	if !protected(issuer) {
		return Server{}, fault.New(fault.Invalid, "an authorization server needs https, or to be on this machine")
	}
	found, err := c.server(ctx, []string{issuer}, false)
	if slices.Contains(found.supported, refreshScope) && !slices.Contains(scopes, refreshScope) {
		scopes = append(slices.Clone(scopes), refreshScope)
	}
	found.Scope = strings.Join(scopes, " ")
	return found.Server, err
}

// challenge is the part of a 401 that a login needs.
type challenge struct {
	// metadata is the address of the metadata of the resource, or empty.
	metadata string
	scopes   []string
}

// The requests of a challenge. Some servers initialize without a token.
const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + protocolVersion + `","capabilities":{},"clientInfo":{"name":"countersign","version":"1"}}}`
	listTools  = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`
)

// challenge sends requests without a token until one is rejected. Answers other than
// 401 have no challenge: the metadata may exist nonetheless.
func (c *Client) challenge(ctx context.Context, source string) (found challenge, err error) {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	var resp *http.Response
	for _, body := range []string{initialize, listTools} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, source, strings.NewReader(body))
		if err != nil {
			return found, unavailable(source, err)
		}
		req.Header = header
		if resp, err = c.http.Do(req); err != nil {
			return found, unavailable(source, err)
		}
		_ = resp.Body.Close() // the headers are enough
		if resp.StatusCode != http.StatusOK {
			break
		}
		header = header.Clone()
		header.Set("Mcp-Protocol-Version", protocolVersion)
		if session := resp.Header.Get("Mcp-Session-Id"); session != "" {
			header.Set("Mcp-Session-Id", session)
		}
	}
	all, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return found, nil // as without one
	}
	for _, of := range all {
		if of.Scheme != "bearer" {
			continue
		}
		if found.metadata == "" {
			found.metadata = of.Params["resource_metadata"]
		}
		if len(found.scopes) == 0 && len(of.Params["scope"]) <= maxURL {
			found.scopes = strings.Fields(of.Params["scope"])
		}
	}
	return found, nil
}

// resource is the metadata of a source (RFC 9728).
type resource struct {
	resource        string
	issuers, scopes []string
	// guessed reports whether the source has no metadata, so that its host is taken
	// for the server, as before that was specified.
	guessed bool
}

// resource reads the metadata of a source: where the challenge names it, at the path
// of the source, or at the root.
func (c *Client) resource(ctx context.Context, source *url.URL, named string) (resource, error) {
	root := url.URL{Scheme: source.Scheme, Host: source.Host}
	places := []string{root.String() + resourcePath + strings.TrimSuffix(source.EscapedPath(), "/"), root.String() + resourcePath}
	if named != "" {
		if !protected(named) {
			return resource{}, fault.New(fault.Conflict, "the source names metadata at an address without https")
		}
		places = append([]string{named}, places...)
	}
	for _, at := range slices.Compact(places) {
		var m oauthex.ProtectedResourceMetadata
		status, err := c.getJSON(ctx, at, &m)
		switch {
		case err != nil:
			return resource{}, err
		case status >= 500:
			return resource{}, unavailable(at, errStatus)
		case status != http.StatusOK:
			continue
		case !covers(m.Resource, source):
			return resource{}, fault.New(fault.Conflict, "the metadata of the source is about another resource")
		case len(m.AuthorizationServers) == 0:
			return resource{}, fault.New(fault.Conflict, "the metadata of the source names no authorization server")
		}
		return resource{resource: m.Resource, issuers: m.AuthorizationServers, scopes: m.ScopesSupported}, nil
	}
	whole := *source
	whole.Fragment = ""
	return resource{resource: whole.String(), issuers: []string{root.String()}, guessed: true}, nil
}

var errStatus = errors.New("status of a failure")

// covers reports whether a resource is a source, or a path above it at the same host:
// some servers have one resource for all their paths.
func covers(named string, source *url.URL) bool {
	u, err := url.Parse(named)
	if err != nil || !protected(named) || u.Scheme != source.Scheme || u.Host != source.Host || u.RawQuery != "" && u.RawQuery != source.RawQuery {
		return false
	}
	above := strings.TrimSuffix(u.EscapedPath(), "/")
	path := source.EscapedPath()
	return path == above || strings.HasPrefix(path, above+"/")
}

// foundServer is a server with the scopes that it announces.
type foundServer struct {
	Server
	supported []string
}

// server reads the metadata of the first of some issuers that has any. A guessed
// issuer may have none; its endpoints are then those of MCP of March 2025.
func (c *Client) server(ctx context.Context, issuers []string, guessed bool) (foundServer, error) {
	const most = 5
	for _, issuer := range issuers[:min(len(issuers), most)] {
		if !protected(issuer) {
			return foundServer{}, fault.New(fault.Conflict, "the source names an authorization server without https")
		}
		for _, at := range metadataPlaces(issuer) {
			var m struct {
				oauthex.AuthServerMeta
				DeviceURL string `json:"device_authorization_endpoint"`
			}
			status, err := c.getJSON(ctx, at, &m)
			switch {
			case err != nil:
				return foundServer{}, err
			case status >= 500:
				return foundServer{}, unavailable(at, errStatus)
			case status == http.StatusOK:
				return checked(issuer, m.AuthServerMeta, m.DeviceURL)
			}
		}
	}
	if !guessed {
		return foundServer{}, fault.New(fault.Conflict, "the authorization server has no metadata")
	}
	at := issuers[0]
	return foundServer{Server: Server{Issuer: at, AuthorizeURL: at + "/authorize", TokenURL: at + "/token", RegisterURL: at + "/register"}}, nil
}

// metadataPlaces returns where an issuer may have its metadata, in order.
func metadataPlaces(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	root, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	if path == "" {
		return []string{root + serverPath, root + openIDPath}
	}
	return []string{root + serverPath + path, root + openIDPath + path, root + path + openIDPath}
}

// checked returns a server by its metadata, if a login is safe with it.
func checked(issuer string, m oauthex.AuthServerMeta, device string) (foundServer, error) {
	named := host(issuer)
	switch {
	case m.Issuer != issuer && strings.TrimSuffix(m.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
		return foundServer{}, fault.New(fault.Conflict, "the metadata of %s is about another issuer", named)
	case !slices.Contains(m.CodeChallengeMethodsSupported, "S256"):
		return foundServer{}, fault.New(fault.Conflict, "%s does not support PKCE with S256", named)
	case !protected(m.TokenEndpoint):
		return foundServer{}, fault.New(fault.Conflict, "%s names a token endpoint without https", named)
	}
	s := foundServer{Server: Server{
		Issuer: m.Issuer, TokenURL: m.TokenEndpoint, Methods: m.TokenEndpointAuthMethodsSupported,
		Documents: m.ClientIDMetadataDocumentSupported, NamesIssuer: m.AuthorizationResponseIssParameterSupported,
	}, supported: m.ScopesSupported}
	for _, of := range []struct {
		from string
		to   *string
	}{{m.AuthorizationEndpoint, &s.AuthorizeURL}, {m.RegistrationEndpoint, &s.RegisterURL}, {device, &s.DeviceURL}, {m.RevocationEndpoint, &s.RevokeURL}} {
		if of.from != "" && !protected(of.from) {
			return foundServer{}, fault.New(fault.Conflict, "%s names an endpoint without https", named)
		}
		*of.to = of.from
	}
	return s, nil
}
