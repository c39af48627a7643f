package dav_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/dav"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/resttest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const password = "hush secret"

// collection behaves as RFC 4918 and RFC 7232 demand of one collection.
func collection(s *resttest.Server) http.Handler {
	var mu sync.Mutex
	items := make(map[string]string)
	etag := func(text string) string { return fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(text))) }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		now, exists := items[r.URL.Path]
		_, given, _ := r.BasicAuth()
		switch {
		case given != password:
			w.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("If-None-Match") == "*" && exists, r.Header.Get("If-Match") != "" && r.Header.Get("If-Match") != etag(now):
			w.WriteHeader(http.StatusPreconditionFailed)
		case r.Method == http.MethodPut:
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			items[r.URL.Path] = string(body)
			s.Effect(r)
			w.Header().Set("ETag", etag(string(body)))
			w.WriteHeader(http.StatusCreated)
		case !exists:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodDelete:
			delete(items, r.URL.Path)
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("ETag", etag(now))
			_, _ = io.WriteString(w, now) // the client may be gone
		}
	})
}

func open(t *testing.T, cfg dav.Config) source.Source {
	t.Helper()
	cfg.Name = "home"
	if cfg.HTTP.Transport == nil {
		cfg.HTTP = resttest.Config(t)
	}
	src, err := dav.New(cfg)
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return resttest.Keyed(src)
}

func at(s *resttest.Server) dav.Config {
	return dav.Config{Calendars: map[string]string{"work": s.URL + "/work/"}, AddressBooks: map[string]string{"family": s.URL + "/family"}, User: "ann", Password: rest.NewSecret(password)}
}

func remind(summary string) sourcetest.Invocation {
	return sourcetest.Invocation{Tool: dav.ToolReminder, Args: json.RawMessage(`{"summary":"` + summary + `","start":"2026-02-15","end":"2026-02-15"}`)}
}

func TestConform(t *testing.T) {
	t.Parallel()
	sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
		s := resttest.New(t, collection)
		return sourcetest.Harness{
			Source: open(t, at(s)), Count: s.Count, Act: remind("Pay"),
			BadArgs: sourcetest.Invocation{Tool: dav.ToolReminder, Args: json.RawMessage(`{"summary":"Pay","start":"tomorrow","end":"2026-02-15"}`)},
			Hang:    remind(resttest.MarkerHang), Lose: remind(resttest.MarkerLose),
			Refused: []sourcetest.Invocation{remind(resttest.MarkerRefused)},
			Limited: remind(resttest.MarkerLimited), RetryAfter: 7 * time.Second,
			Without: map[sourcetest.Feature]string{
				sourcetest.ToolErrors: "WebDAV fails with a status",
				sourcetest.Restarts:   "WebDAV has no sessions",
			},
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	resttest.Faults(t, func(t *testing.T) resttest.Fixture {
		s := resttest.New(t, collection)
		return resttest.Fixture{Server: s, Source: open(t, at(s)), Act: remind("Pay"), Secret: "hush"}
	})
}

// TestLostAnswer checks an item whose creation was not answered: the next attempt
// finds it, and its ETag can be used for the deletion.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, collection)
	src := open(t, at(s))
	call := source.Call{Key: "k", Tool: dav.ToolReminder, Args: remind(resttest.MarkerLose).Args, Effect: envelope.EffectKeyed}
	lost := src.Execute(t.Context(), call)
	call.Args, call.Unsure = remind("Pay").Args, true

	again := src.Execute(t.Context(), call)

	if lost.Kind != source.KindRetry || !lost.Unsure || again.Kind != source.KindConflict || s.Count("k") != 1 {
		t.Fatalf("Execute() = %s, then %s with %d effects, want retry, then conflict with 1", lost.Kind, again.Kind, s.Count("k"))
	}
	if got := src.Execute(t.Context(), source.Call{Key: "d", Tool: dav.ToolDelete, Args: again.Result}); got.Kind != source.KindDone {
		t.Errorf("Execute(delete) = %s %q (%s), want done", got.Kind, got.Code, got.Message)
	}
}

// TestServerWithoutETag checks a server that stores other bytes than it received,
// and so answers a PUT without an ETag.
func TestServerWithoutETag(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, collection)
	s.Intercept(func(w http.ResponseWriter, r *http.Request, provider http.Handler) {
		if r.Method == http.MethodPut {
			provider.ServeHTTP(withoutETag{w}, r)
			return
		}
		provider.ServeHTTP(w, r)
	})
	src := open(t, at(s))

	got := src.Execute(t.Context(), source.Call{Key: "k", Tool: dav.ToolReminder, Args: remind("Pay").Args, Effect: envelope.EffectKeyed})

	var result struct{ ETag string }
	if err := json.Unmarshal(got.Result, &result); err != nil || got.Kind != source.KindDone || len(result.ETag) < 3 {
		t.Errorf("Execute() = %s with %s, want done with the ETag of a GET", got.Kind, got.Result)
	}
}

type withoutETag struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w withoutETag) WriteHeader(status int) {
	w.Header().Del("ETag")
	w.ResponseWriter.WriteHeader(status)
}

// TestRejectedByTheServer checks answers that have another meaning in WebDAV than
// elsewhere.
func TestRejectedByTheServer(t *testing.T) {
	t.Parallel()
	for status, test := range map[int]struct {
		kind source.Kind
		code string
	}{
		http.StatusConflict:            {source.KindRefused, source.CodeNotFound},
		http.StatusInsufficientStorage: {source.KindRetry, source.CodeServerError},
		http.StatusPreconditionFailed:  {source.KindRefused, source.CodeNotFound},
	} {
		s := resttest.New(t, collection)
		s.Intercept(func(w http.ResponseWriter, r *http.Request, provider http.Handler) {
			if r.Method == http.MethodPut {
				w.WriteHeader(status)
				return
			}
			provider.ServeHTTP(w, r)
		})

		got := open(t, at(s)).Execute(t.Context(), source.Call{Key: "k", Tool: dav.ToolReminder, Args: remind("Pay").Args, Effect: envelope.EffectKeyed})

		if got.Kind != test.kind || got.Code != test.code {
			t.Errorf("Execute() with status %d = %s %q, want %s %q", status, got.Kind, got.Code, test.kind, test.code)
		}
	}
}

func TestCollections(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, collection)
	for name, test := range map[string]struct {
		calendars []string
		named     string
		want      string
	}{
		"the only one":         {[]string{"work"}, "", "work"},
		"named":                {[]string{"work", "home"}, "home", "home"},
		"the default":          {[]string{"work", "default"}, "", "default"},
		"none of several":      {[]string{"work", "home"}, "", ""},
		"an unknown one":       {[]string{"work"}, "home", ""},
		"not an address book":  {[]string{"work"}, "family", ""},
		"a name like a folder": {[]string{"work"}, "..", ""},
	} {
		cfg := at(s)
		cfg.Calendars = make(map[string]string)
		for _, c := range test.calendars {
			cfg.Calendars[c] = s.URL + "/" + c
		}
		args := map[string]string{"summary": "Pay", "start": "2026-02-15", "end": "2026-02-15"}
		if test.named != "" {
			args["calendar"] = test.named
		}
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}

		got := open(t, cfg).Execute(t.Context(), source.Call{Key: name, Tool: dav.ToolReminder, Args: raw, Effect: envelope.EffectKeyed})

		var result struct{ Collection string }
		if _ = json.Unmarshal(got.Result, &result); result.Collection != test.want || (got.Code == source.CodeNotFound) != (test.want == "") {
			t.Errorf("%s: Execute() = %s %q in %q, want %q", name, got.Kind, got.Code, result.Collection, test.want)
		}
	}
}

// TestTextOfArguments checks that no value can add a line to an item.
func TestTextOfArguments(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"\r", "\n", "\r\n", "\u2028", "\u0085", "\x00"} {
		evil := "x" + text + "ATTENDEE:mailto:eve@example.com"
		for tool, args := range map[string]map[string]any{
			dav.ToolReminder: {"summary": evil, "start": "2026-02-15", "end": "2026-02-15"},
			dav.ToolContact:  {"formatted_name": evil, "emails": []string{"ann@example.com"}},
		} {
			s := resttest.New(t, collection)
			raw, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}

			got := open(t, at(s)).Execute(t.Context(), source.Call{Key: "k", Tool: tool, Args: raw, Effect: envelope.EffectKeyed})

			if got.Kind != source.KindRefused || got.Code != source.CodeInvalidArgs || s.Count("k") != 0 {
				t.Errorf("Execute(%s) with %q = %s %q, want refused invalid_args", tool, text, got.Kind, got.Code)
			}
		}
	}
}

func TestAddressesAreGuarded(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, collection)
	cfg := at(s)
	cfg.HTTP = rest.Config{Transport: (safehttp.Guard{}).Transport()}

	got := open(t, cfg).Execute(t.Context(), source.Call{Key: "k", Tool: dav.ToolReminder, Args: remind("Pay").Args, Effect: envelope.EffectKeyed})

	if got.Kind != source.KindRefused || got.Code != source.CodeRejected {
		t.Errorf("Execute() = %s %q, want refused: the address is not public", got.Kind, got.Code)
	}
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	secret := rest.NewSecret(password)
	for name, cfg := range map[string]dav.Config{
		"no collection":        {User: "ann", Password: secret},
		"no credentials":       {Calendars: map[string]string{"a": "https://dav.example/a"}},
		"a user alone":         {Calendars: map[string]string{"a": "https://dav.example/a"}, User: "ann"},
		"a password alone":     {Calendars: map[string]string{"a": "https://dav.example/a"}, Password: secret},
		"password and token":   {Calendars: map[string]string{"a": "https://dav.example/a"}, User: "ann", Password: secret, Token: secret},
		"a token of two lines": {Calendars: map[string]string{"a": "https://dav.example/a"}, Token: rest.NewSecret("hush\n")},
		"http":                 {AddressBooks: map[string]string{"a": "http://dav.example/a"}, User: "ann", Password: secret},
		"a user in an address": {AddressBooks: map[string]string{"a": "https://hush@dav.example/a"}, User: "ann", Password: secret},
		"a relative address":   {AddressBooks: map[string]string{"a": "/a"}, User: "ann", Password: secret},
	} {
		_, err := dav.New(cfg)

		if !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("New() with %s = %v, want fault.Invalid without secrets", name, err)
		}
	}
	cfg := dav.Config{Calendars: map[string]string{"a": "https://dav.example/a"}, Token: secret}
	src, err := dav.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	resttest.NotShown(t, "hush", cfg, src)
	tools, err := src.List(t.Context())
	if err != nil || len(tools) != 3 {
		t.Errorf("List() = %d tools, %v, want none for contacts", len(tools), err)
	}
}
