package builtin

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// Bounds of a request.
const (
	// defaultMaxBodyBytes is the default limit on the stored part of an answer's
	// body.
	defaultMaxBodyBytes = 1 << 20
	// maxHops bounds the redirects that are followed.
	maxHops = 5
)

// HTTPConfig configures the HTTP tools.
type HTTPConfig struct {
	// Allow are the allowed addresses, at least one.
	Allow []Allowed
	// Networks are allowed in addition to the public internet, such as
	// 10.1.0.0/16. Link-local addresses and others at which clouds serve
	// credentials stay forbidden.
	Networks []netip.Prefix
	// Header is sent to addresses in Allow with Credentials. Agents cannot set
	// its names.
	Header map[string]rest.Secret
	// CallTimeout bounds one call over all its redirects; 0 means
	// rest.DefaultCallTimeout.
	CallTimeout time.Duration
	// MaxBodyBytes bounds the stored part of an answer's body; 0 means
	// defaultMaxBodyBytes.
	MaxBodyBytes int
}

// web sends requests to allowed addresses.
type web struct {
	client  *rest.Client
	allow   []entry
	header  map[string]rest.Secret
	timeout time.Duration
}

func newWeb(cfg HTTPConfig, client *rest.Client) (*web, error) {
	if len(cfg.Allow) == 0 {
		return nil, fault.New(fault.Invalid, "http needs allowed addresses")
	}
	w := &web{client: client, header: make(map[string]rest.Secret), timeout: cmp.Or(max(cfg.CallTimeout, 0), rest.DefaultCallTimeout)}
	for _, a := range cfg.Allow {
		e, err := newEntry(a)
		if err != nil {
			return nil, err
		}
		w.allow = append(w.allow, e)
	}
	for name, value := range cfg.Header {
		if !httpguts.ValidHeaderFieldName(name) || !value.FitsHeader() {
			return nil, fault.New(fault.Invalid, "a header cannot be sent")
		}
		w.header[http.CanonicalHeaderKey(name)] = value
	}
	return w, nil
}

// document defines the HTTP tools.
//
//go:embed tools.json
var document []byte

// tools returns the tools that any address allows. The writing tool is of class
// keyed only if every host honours the key.
func (w *web) tools() ([]rest.Tool, error) {
	run := make(map[string]rest.Run)
	if slices.ContainsFunc(w.allow, func(e entry) bool { return slices.ContainsFunc(readMethods(), e.takes) }) {
		run[ToolHTTPGet] = rest.WithArgs(w.run)
	}
	if slices.ContainsFunc(w.allow, entry.writes) {
		run[ToolHTTPRequest] = rest.WithArgs(w.run)
	}
	tools, err := rest.ParseTools(document, run)
	once := slices.ContainsFunc(w.allow, func(e entry) bool { return e.writes() && !e.HonoursKey })
	for i := range tools {
		if once && tools[i].Name == ToolHTTPRequest {
			tools[i].Effect = envelope.EffectOnce
		}
	}
	return tools, err
}

// request holds the arguments of a call.
type request struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	JSON    json.RawMessage   `json:"json"`
	Body    *string           `json:"body"`
}

// run sends a request. It follows redirects to allowed addresses if nothing was
// executed yet.
func (w *web) run(ctx context.Context, call source.Call, in request) source.Observation {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	in.Method = cmp.Or(in.Method, http.MethodGet)
	at, err := url.Parse(in.URL)
	if err != nil {
		return source.Refuse(source.CodeInvalidArgs, "invalid url")
	}
	header, ok := w.parseHeaders(in)
	if !ok {
		return source.Refuse(source.CodeInvalidArgs, "a header is not allowed")
	}
	body := []byte(in.JSON)
	if in.Body != nil {
		body = []byte(*in.Body)
	}
	for hop := 0; ; hop++ {
		to, ok := w.find(at, in.Method)
		switch {
		case !ok && hop == 0:
			return source.Refuse(source.CodeRejected, "the address is not allowed")
		case !ok:
			return source.Refuse(source.CodeRedirected, "the host redirects to an address that is not allowed")
		case hop > maxHops:
			return source.Refuse(source.CodeRedirected, "the host redirects too often")
		}
		reply := w.client.Send(ctx, rest.Request{
			Method: in.Method, URL: at.String(), Header: w.addHeaders(header, to, call), Body: body,
		})
		next, follow := redirectTarget(reply, at, in.Method)
		if !follow {
			w.redactSecrets(&reply)
			return observe(reply, in.Method, to)
		}
		at = next
	}
}

// parseHeaders returns the headers in the arguments. It returns false if one is
// reserved: for credentials, the connection, or the key.
func (w *web) parseHeaders(in request) (http.Header, bool) {
	header := make(http.Header, len(in.Headers)+1)
	switch {
	case in.JSON != nil:
		header.Set("Content-Type", "application/json")
	case in.Body != nil:
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	for name, value := range in.Headers {
		key := http.CanonicalHeaderKey(name)
		_, ours := w.header[key]
		if ours || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) ||
			strings.HasPrefix(key, "Proxy-") {
			return nil, false
		}
		switch key {
		case "Authorization", "Connection", "Content-Length", "Cookie", "Expect", "Host", "Idempotency-Key", "Keep-Alive",
			"Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Idempotency-Key":
			return nil, false
		}
		header.Set(key, value)
	}
	return header, true
}

// addHeaders adds the headers that are configured for the destination.
func (w *web) addHeaders(given http.Header, to entry, call source.Call) http.Header {
	header := maps.Clone(given)
	if to.Credentials {
		for name, value := range w.header {
			header.Set(name, value.Reveal())
		}
	}
	if to.HonoursKey {
		header.Set("Idempotency-Key", call.Key)
	}
	return header
}

// redactSecrets removes credentials from an answer that echoes them. It ignores
// short ones, which could be any word.
func (w *web) redactSecrets(reply *rest.Reply) {
	const short, redacted = 8, "[REDACTED]"
	for _, value := range w.header {
		text := value.Reveal()
		_, token, _ := strings.Cut(text, " ")
		for _, secret := range []string{text, token} {
			if len(secret) < short {
				continue
			}
			reply.Body = bytes.ReplaceAll(reply.Body, []byte(secret), []byte(redacted))
			for _, values := range reply.Header {
				for i := range values {
					values[i] = strings.ReplaceAll(values[i], secret, redacted)
				}
			}
		}
	}
}

// find returns the entry with the longest prefix that covers a URL, if it allows
// the method.
func (w *web) find(at *url.URL, method string) (entry, bool) {
	var best entry
	found := false
	if !plain(at) {
		return best, false
	}
	for _, e := range w.allow {
		if e.covers(at) && e.takes(method) && (!found || len(e.path) > len(best.path)) {
			best, found = e, true
		}
	}
	return best, found
}

// redirectTarget returns the address to which a request is to be repeated. A
// read follows all redirects; a write follows only statuses that mean that
// nothing was executed and the same request is expected elsewhere.
func redirectTarget(reply rest.Reply, at *url.URL, method string) (*url.URL, bool) {
	switch reply.Status {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if !slices.Contains(readMethods(), method) {
			return nil, false
		}
	default:
		return nil, false
	}
	location := reply.Header.Get("Location")
	next, err := at.Parse(location)
	if err != nil || location == "" {
		return nil, false
	}
	next.Fragment, next.RawFragment = "", ""
	return next, true
}

// observe converts a final reply. Only its status decides whether the request
// succeeded.
func observe(reply rest.Reply, method string, to entry) source.Observation {
	o := reply.Observe()
	whole := reply.Code == "" || reply.Code == source.CodeOversized
	if reply.Status == 0 || !whole {
		o.Result = nil
		return o
	}
	o.Result = resultOf(reply)
	switch write := slices.Contains(writeMethods(), method); {
	case reply.Succeeded(), write && reply.Status == http.StatusSeeOther, !write && reply.Status == http.StatusNotModified:
		// The target of a 303 is the result of a write.
		return source.Observation{Written: true, Answered: true, Status: http.StatusOK, Result: o.Result}
	case write && (reply.Status == http.StatusMovedPermanently || reply.Status == http.StatusFound):
		// Some servers redirect after they executed the request, others instead
		// of it.
		return o.Unanswered(source.CodeRedirected)
	case reply.Status < 400:
		o.Code = source.CodeRedirected
	case reply.Status == http.StatusConflict && write && to.HonoursKey:
		// The first request with this key may still be running.
		return o.Unanswered(source.CodeConflict)
	case reply.Status == http.StatusConflict:
		// The status means that something prevents the change, not that it was
		// made.
		o.Status = 0
		return o.Permanently(source.CodeRejected)
	}
	return o
}

// resultOf returns the result of a reply.
func resultOf(reply rest.Reply) json.RawMessage {
	result := struct {
		Status    int               `json:"status"`
		Headers   map[string]string `json:"headers"`
		JSON      json.RawMessage   `json:"json,omitempty"`
		Text      *string           `json:"text,omitempty"`
		Base64    string            `json:"base64,omitzero"`
		Truncated bool              `json:"truncated,omitzero"`
	}{Status: reply.Status, Headers: make(map[string]string), Truncated: reply.Code == source.CodeOversized}
	for _, name := range []string{"Content-Type", "Etag", "Last-Modified", "Link", "Location", "Retry-After"} {
		if value := reply.Header.Get(name); value != "" {
			result.Headers[strings.ToLower(name)] = value
		}
	}
	media, _, err := mime.ParseMediaType(reply.Header.Get("Content-Type"))
	isJSON := err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
	body := reply.Body
	for n := 0; result.Truncated && n < utf8.UTFMax && !utf8.Valid(body) && len(body) > 0; n++ {
		body = body[:len(body)-1] // the cut may go through a character
	}
	switch {
	case len(reply.Body) == 0:
	case isJSON && !result.Truncated && json.Valid(reply.Body):
		result.JSON = reply.Body
	case utf8.Valid(body):
		result.Text = new(string(body))
	default:
		result.Base64 = base64.StdEncoding.EncodeToString(reply.Body)
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return nil
	}
	return raw
}
