package mail_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
)

// zone is a resolver of TXT records. Names in broken fail for now.
type zone struct {
	authenticate.Resolver
	txt    map[string]string
	broken bool
}

func (z zone) LookupTXT(_ context.Context, name string) ([]string, error) {
	if record, ok := z.txt[strings.TrimSuffix(name, ".")]; ok && !z.broken {
		return []string{record}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: !z.broken, IsTemporary: z.broken}
}

// signingKey returns the key of a domain.
func signingKey(domain string) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, domain)
	return ed25519.NewKeyFromSeed(seed)
}

// keys returns a resolver with the keys of domains.
func keys(domains ...string) zone {
	z := zone{txt: make(map[string]string)}
	for _, domain := range domains {
		public, _ := signingKey(domain).Public().(ed25519.PublicKey)
		z.txt["s1._domainkey."+domain] = "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)
	}
	return z
}

// newsletter is a mail of a list before it is sent.
type newsletter struct {
	fields []string
	// signer is the domain that signs, and covered the signed fields.
	signer  string
	covered []string
	expires time.Time
	// changed replaces a text after signing.
	changed [2]string
}

const oneClick = "List-Unsubscribe-Post: List-Unsubscribe=One-Click"

// standard returns a newsletter that permits to unsubscribe.
func standard() newsletter {
	return newsletter{
		fields: []string{
			"From: Garden <news@shop.example>", "To: " + owner, "Subject: hush subject", "Message-ID: <1@example.com>",
			"List-Unsubscribe: <mailto:leave@shop.example>, <https://example.com/leave?u=hush-token>", oneClick,
		},
		signer: "shop.example", covered: []string{"From", "Subject", "List-Unsubscribe", "List-Unsubscribe-Post"},
	}
}

// field replaces the field of the same name, or adds it. A field without a value
// is removed.
func (n newsletter) field(field string) newsletter {
	name, value, _ := strings.Cut(field, ":")
	var all []string
	for _, f := range n.fields {
		if !strings.HasPrefix(f, name+":") {
			all = append(all, f)
		}
	}
	if n.fields = all; strings.TrimSpace(value) != "" {
		n.fields = append(n.fields, field)
	}
	return n
}

// raw returns the bytes of the mail.
func (n newsletter) raw(t *testing.T) []byte {
	t.Helper()
	text := strings.Join(n.fields, "\r\n") + "\r\n\r\nhush body\r\n"
	if n.signer != "" {
		var out bytes.Buffer
		err := dkim.Sign(&out, strings.NewReader(text), &dkim.SignOptions{
			Domain: n.signer, Selector: "s1", Signer: signingKey(n.signer), HeaderKeys: n.covered, Expiration: n.expires,
			HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
		})
		if err != nil {
			t.Fatal(err)
		}
		text = out.String()
	}
	return []byte(strings.Replace(text, n.changed[0], n.changed[1], 1))
}

// request is a request as the server of a list received it.
type request struct {
	method, path, body string
	header             http.Header
}

// listServer is the server of a list at https://example.com, on a port of this
// machine.
type listServer struct {
	*httptest.Server
	transport *http.Transport
	mu        sync.Mutex
	requests  []request
}

// newListServer starts a server with an answer. guard is the guard over dialing.
func newListServer(t *testing.T, guard safehttp.Guard, answer http.HandlerFunc) *listServer {
	t.Helper()
	s := &listServer{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests = append(s.requests, request{r.Method, r.URL.String(), string(body), r.Header.Clone()})
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	s.transport = guard.Transport()
	s.transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	dial := s.transport.DialContext
	s.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasSuffix(address, ".example:443") || address == "example.com:443" {
			address = s.Listener.Addr().String()
		}
		return dial(ctx, network, address)
	}
	t.Cleanup(s.transport.CloseIdleConnections)
	return s
}

func (s *listServer) received() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func accepted(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }

// unsubscribe delivers a mail and unsubscribes from its list.
func (f *fixture) unsubscribe(n newsletter, folder string, flags ...string) source.Outcome {
	f.Helper()
	raw := n.raw(f.T)
	at := f.account.Deliver(folder, raw, flags...)
	return f.call(mail.ToolUnsubscribe, object{"account": "work", "message": ref(at, "1@example.com", raw)})
}

func withList(s *listServer, z authenticate.Resolver) func(*mail.Config) {
	return func(cfg *mail.Config) { cfg.Web, cfg.Resolver = s.transport, z }
}

var local = safehttp.Guard{Networks: safehttp.Loopback()}

func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	s := newListServer(t, local, func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "hush"})
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.Copy(w, strings.NewReader(strings.Repeat("hush", 1<<20)))
	})
	f := newFixture(t, withList(s, keys("shop.example", "mail.shop.example")))

	aligned := standard()
	aligned.signer = "mail.shop.example"
	for _, n := range []newsletter{standard(), aligned, standard().field("list-unsubscribe-post: List-Unsubscribe=One-Click").field("List-Unsubscribe-Post:")} {
		if result := f.answer(f.unsubscribe(n, "INBOX"), source.KindDone, ""); result["status"] != 202.0 {
			t.Errorf("result = %v", result)
		}
	}

	for _, r := range s.received() {
		if r.method != http.MethodPost || r.path != "/leave?u=hush-token" || r.body != "List-Unsubscribe=One-Click" {
			t.Errorf("request = %s %s %q", r.method, r.path, r.body)
		}
		names := maps.Clone(r.header)
		for _, known := range []string{"Content-Type", "Content-Length", "User-Agent", "Accept-Encoding"} {
			delete(names, known)
		}
		if len(names) > 0 || r.header.Get("Content-Type") != "application/x-www-form-urlencoded" {
			t.Errorf("the header has %v", r.header)
		}
	}
	if n := len(s.received()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// TestUnsubscribeIsRefused checks that no request is sent.
func TestUnsubscribeIsRefused(t *testing.T) {
	t.Parallel()
	with := func(change func(*newsletter)) newsletter {
		n := standard()
		change(&n)
		return n
	}
	list := func(value string) newsletter { return standard().field("List-Unsubscribe: " + value) }
	twice := func(field string) newsletter {
		return with(func(n *newsletter) { n.fields = append([]string{field}, n.fields...) })
	}
	const at = "<https://example.com/leave>"
	for name, test := range map[string]struct {
		mail  newsletter
		flags []string
		where string
		keys  []string
	}{
		"no List-Unsubscribe":          {mail: standard().field("List-Unsubscribe:")},
		"no List-Unsubscribe-Post":     {mail: standard().field("List-Unsubscribe-Post:")},
		"another value of it":          {mail: standard().field("List-Unsubscribe-Post: List-Unsubscribe=Two-Click")},
		"List-Unsubscribe twice":       {mail: twice("List-Unsubscribe: <https://evil.example/leave>")},
		"List-Unsubscribe-Post twice":  {mail: twice(oneClick)},
		"an address of mail alone":     {mail: list("<mailto:leave@shop.example>")},
		"http":                         {mail: list("<http://example.com/leave>")},
		"two https addresses":          {mail: list(at + ", <https://shop.example/leave>")},
		"no angle brackets":            {mail: list("https://example.com/leave")},
		"a user in the address":        {mail: list("<https://user:word@example.com/leave>")},
		"another port":                 {mail: list("<https://example.com:8443/leave>")},
		"a fragment":                   {mail: list("<https://example.com/leave#all>")},
		"an address of a machine":      {mail: list("<https://127.0.0.1/leave>")},
		"an address of a machine, v6":  {mail: list("<https://[::1]/leave>")},
		"a host without a domain":      {mail: list("<https://localhost/leave>")},
		"a space in the address":       {mail: list("<https://example.com/leave me>")},
		"a very long address":          {mail: list("<https://example.com/" + strings.Repeat("a", 2000) + ">")},
		"no signature":                 {mail: with(func(n *newsletter) { n.signer = "" })},
		"an uncovered address":         {mail: with(func(n *newsletter) { n.covered = []string{"From", "List-Unsubscribe-Post"} })},
		"an uncovered Post":            {mail: with(func(n *newsletter) { n.covered = []string{"From", "List-Unsubscribe"} })},
		"a changed address":            {mail: with(func(n *newsletter) { n.changed = [2]string{"u=hush-token", "u=hush-other"} })},
		"a changed body":               {mail: with(func(n *newsletter) { n.changed = [2]string{"hush body", "hush text"} })},
		"an expired signature":         {mail: with(func(n *newsletter) { n.expires = time.Now().Add(-time.Hour) })},
		"a key that is gone":           {mail: standard(), keys: []string{"other.example"}},
		"a signature of someone else":  {mail: with(func(n *newsletter) { n.signer = "evil.example" }), keys: []string{"evil.example"}},
		"two senders":                  {mail: standard().field("From: news@shop.example, boss@example.org")},
		"junk":                         {mail: standard(), where: "Junk"},
		"mail that a filter flagged":   {mail: standard(), flags: []string{"$Junk"}},
		"mail flagged as phishing":     {mail: standard(), flags: []string{"$Phishing"}},
		"a header that hides a second": {mail: with(func(n *newsletter) { n.fields = append(n.fields, slicesRepeat("X-Field: 1", 600)...) })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newListServer(t, local, accepted)
			if test.keys == nil {
				test.keys = []string{"shop.example"}
			}
			if test.where == "" {
				test.where = "INBOX"
			}
			f := newFixture(t, withList(s, keys(test.keys...)))

			f.answer(f.unsubscribe(test.mail, test.where, test.flags...), source.KindRefused, source.CodeRejected)

			if got := s.received(); len(got) > 0 {
				t.Errorf("the server received %v", got)
			}
		})
	}
}

func slicesRepeat(text string, n int) []string {
	return strings.Split(strings.TrimSuffix(strings.Repeat(text+"\n", n), "\n"), "\n")
}

// TestUnsubscribeGuardsItsConnection checks names that lead to an inner address,
// and a server that does not prove its name.
func TestUnsubscribeGuardsItsConnection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		guard safehttp.Guard
		at    string
	}{
		"inner address": {safehttp.Guard{}, "<https://example.com/leave>"},
		"certificate":   {local, "<https://lists.shop.example/leave>"},
	} {
		s := newListServer(t, test.guard, accepted)
		f := newFixture(t, withList(s, keys("shop.example")))

		f.answer(f.unsubscribe(standard().field("List-Unsubscribe: "+test.at), "INBOX"), source.KindRefused, source.CodeRejected)

		if got := s.received(); len(got) > 0 {
			t.Errorf("%s: the server received %v", name, got)
		}
	}
}

// TestUnsubscribeWithoutAnAnswer checks that every request that was sent and not
// confirmed is unknown, and sent once.
func TestUnsubscribeWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/other", http.StatusTemporaryRedirect)
		},
		"not here": http.NotFound,
		"busy":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"failure":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"cut":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"silence":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newListServer(t, local, answer)
			f := newFixture(t, withList(s, keys("shop.example")))
			raw := standard().raw(t)
			args, err := json.Marshal(object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw)})
			if err != nil {
				t.Fatal(err)
			}

			timeout := time.Minute
			if name == "silence" {
				timeout = 5 * time.Second // enough for the request to arrive
			}
			out := f.source.Execute(t.Context(), source.Call{
				Key: "key", Tool: mail.ToolUnsubscribe, Args: args, Effect: envelope.EffectOnce, Attempt: 1, Timeout: timeout,
			})

			if out.Kind != source.KindUnknown || out.SourceFailed() || len(s.received()) != 1 {
				t.Errorf("outcome = %s %q (%s) after %d requests, want unknown after 1", out.Kind, out.Code, out.Message, len(s.received()))
			}
		})
	}
}

// TestUnsubscribeWithoutDNS checks that a lookup that fails for now is repeated.
func TestUnsubscribeWithoutDNS(t *testing.T) {
	t.Parallel()
	s := newListServer(t, local, accepted)
	z := keys("shop.example")
	z.broken = true
	f := newFixture(t, withList(s, z))

	if out := f.unsubscribe(standard(), "INBOX"); out.Kind != source.KindRetry || len(s.received()) > 0 {
		t.Errorf("outcome = %s %q (%s)", out.Kind, out.Code, out.Message)
	}
}
