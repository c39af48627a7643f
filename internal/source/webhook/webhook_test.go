package webhook_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/resttest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/source/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Signing secrets for these tests.
const (
	current  = "whsec_" + "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	previous = "whsec_" + "YWJjZGVmZ2hpamFiY2RlZmdoaWphYmNkZWZnaGlqYWI="
)

// receiver behaves as receivers should: a message id has its effect once. A
// message of the type "status <n>" is answered with that status.
func receiver(s *resttest.Server) http.Handler {
	seen := make(chan map[string]bool, 1)
	seen <- map[string]bool{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message struct{ Type string }
		if json.NewDecoder(r.Body).Decode(&message) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if message.Type == "bad" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		known := <-seen
		if id := r.Header.Get("Webhook-Id"); !known[id] {
			known[id] = true
			s.Effect(r)
		}
		seen <- known
		_, _ = io.WriteString(w, "thanks") // the client may be gone
	})
}

func message(kind string) sourcetest.Invocation {
	return sourcetest.Invocation{Tool: webhook.ToolDeliver, Args: json.RawMessage(`{"type":"` + kind + `","timestamp":"2026-01-02T03:04:05Z","data":{}}`)}
}

func secrets(texts ...string) []rest.Secret {
	all := make([]rest.Secret, len(texts))
	for i, text := range texts {
		all[i] = rest.NewSecret(text)
	}
	return all
}

func open(t *testing.T, cfg webhook.Config) *rest.Source {
	t.Helper()
	cfg.Name = "hooks"
	if cfg.Secrets == nil {
		cfg.Secrets = secrets(current)
	}
	src, err := webhook.New(cfg)
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return src
}

func deliver(t *testing.T, src source.Source, key, kind string) source.Outcome {
	t.Helper()
	in := message(kind)
	return src.Execute(t.Context(), source.Call{Key: key, Tool: in.Tool, Args: in.Args, Effect: envelope.EffectKeyed, Attempt: 1})
}

func TestConform(t *testing.T) {
	t.Parallel()
	sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
		s := resttest.New(t, receiver)
		src := open(t, webhook.Config{URL: s.URL, Transport: resttest.Config(t).Transport})
		return sourcetest.Harness{
			Source: resttest.Keyed(src), Count: s.Count, Act: message("a"),
			BadArgs: sourcetest.Invocation{Tool: webhook.ToolDeliver, Args: json.RawMessage(`{"type":"a"}`)},
			Hang:    message(resttest.MarkerHang), Lose: message(resttest.MarkerLose),
			Refused: []sourcetest.Invocation{message(resttest.MarkerRefused)},
			Limited: message(resttest.MarkerLimited), RetryAfter: 7 * time.Second,
			Without: map[sourcetest.Feature]string{
				sourcetest.ToolErrors: "a receiver says only by its status whether it failed",
				sourcetest.Restarts:   "a receiver keeps nothing of its clients",
			},
		}
	})
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		kind   source.Kind
		code   string
		after  time.Duration
	}{
		"taken":                   {status(200), source.KindDone, "", 0},
		"taken without a body":    {status(204), source.KindDone, "", 0},
		"taken, with a long body": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) }, source.KindDone, "", 0},
		"taken, and cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // the status is out
			panic(http.ErrAbortHandler)
		}, source.KindDone, "", 0},
		"wants no more":          {status(410), source.KindRefused, source.CodeGone, 0},
		"not found":              {status(404), source.KindRefused, source.CodeNotFound, 0},
		"not accepted":           {status(401), source.KindRefused, source.CodeUnauthorized, 0},
		"asks for patience":      {status(429, "Retry-After", "9"), source.KindRetry, source.CodeRateLimited, 9 * time.Second},
		"ails":                   {status(500), source.KindRetry, source.CodeServerError, 0},
		"ails, and says until":   {status(503, "Retry-After", "11"), source.KindRetry, source.CodeServerError, 11 * time.Second},
		"cut before the answer":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, source.KindRetry, source.CodeLost, 0},
		"points somewhere else":  {status(307, "Location", "http://127.0.0.1:1/"), source.KindRefused, source.CodeRejected, 0},
		"points to the metadata": {status(302, "Location", "http://169.254.169.254/"), source.KindRefused, source.CodeRejected, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				test.answer(w, r)
			}))
			t.Cleanup(s.Close)
			src := open(t, webhook.Config{URL: s.URL + "/in?token=hush-hush", Networks: loopback()})

			got := deliver(t, src, "k", "a")

			if got.Kind != test.kind || got.Code != test.code || got.RetryAfter != test.after || asked.Load() != 1 {
				t.Errorf("Execute() = %s %q after %v (%s), asked %d times; want %s %q after %v, once",
					got.Kind, got.Code, got.RetryAfter, got.Message, asked.Load(), test.kind, test.code, test.after)
			}
			resttest.NotShown(t, "hush-hush", got)
		})
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

// TestConnectsOnlyToTheConfiguredAddress includes names that resolve to other
// than public addresses: the address is checked when it is dialed, not when it
// is configured.
func TestConnectsOnlyToTheConfiguredAddress(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	t.Cleanup(s.Close)
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, cfg := range []webhook.Config{
		{URL: s.URL},
		{URL: "http://localhost" + port},
		{URL: "https://localhost" + port},
		{URL: "https://127.0.0.1" + port},
		{URL: "https://[::ffff:127.0.0.1]" + port},
		{URL: "https://10.0.0.1" + port},
		{URL: "https://169.254.169.254/latest"},
		{URL: "https://169.254.169.254/latest", Networks: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16")}},
		{URL: "https://[fe80::1]/"},
		{URL: "https://0.0.0.0" + port},
	} {
		got := deliver(t, open(t, cfg), "k", "a")

		if got.Kind != source.KindRefused || got.Code != source.CodeRejected || asked.Load() {
			t.Errorf("a delivery to %s = %s %q, asked: %t; want it refused unasked", cfg.URL, got.Kind, got.Code, asked.Load())
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	const fine = "https://hooks.example.com/in"
	for name, cfg := range map[string]webhook.Config{
		"no address":                 {Secrets: secrets(current)},
		"http to elsewhere":          {URL: "http://hooks.example.com/", Secrets: secrets(current)},
		"http to a private address":  {URL: "http://10.0.0.1/", Secrets: secrets(current)},
		"another scheme":             {URL: "file:///etc/passwd", Secrets: secrets(current)},
		"a user":                     {URL: "https://u:hush-hush@example.com/", Secrets: secrets(current)},
		"a fragment":                 {URL: fine + "#x", Secrets: secrets(current)},
		"no secret":                  {URL: fine},
		"a secret without its mark":  {URL: fine, Secrets: secrets("hush-hush")},
		"a secret that is too short": {URL: fine, Secrets: secrets("whsec_aHVzaC1odXNo")},
		"a previous one that is bad": {URL: fine, Secrets: secrets(current, "hush-hush")},
		"a network with loose bits":  {URL: fine, Secrets: secrets(current), Networks: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/8")}},
	} {
		cfg.Name = "hooks"

		_, err := webhook.New(cfg)

		if fault.KindOf(err) != fault.Invalid || strings.Contains(err.Error(), "hush-hush") {
			t.Errorf("New with %s = %v, want fault.Invalid without the secret", name, err)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{"https://a.example/x?y=z", "http://localhost:1", "http://[::1]/", "http://localhost.evil.example/", "http://127.0.0.1@evil.example/", `http://127.0.0.1\@evil/`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if webhook.CheckURL(address) != nil {
			return
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)
		if err != nil {
			return // net/http does not take it
		}
		host := strings.ToLower(r.URL.Hostname())
		addr, err := netip.ParseAddr(host)
		if r.URL.Scheme == "http" && host != "localhost" && (err != nil || !addr.Unmap().IsLoopback()) {
			t.Errorf("http to %q is taken", host)
		}
	})
}
