package web_test

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/web"
)

// ask sends a request that a browser would send, with headers over its own.
func ask(t *testing.T, page *web.Page, method, path string, headers map[string]string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	if !page.Wants(r) {
		return nil
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w.Result()
}

// newPage returns the page of this build and the path of its script.
func newPage(t *testing.T) (page *web.Page, script string) {
	t.Helper()
	page, err := web.New()
	if err != nil {
		t.Fatal(err)
	}
	document, err := io.ReadAll(ask(t, page, "GET", "/", browser()).Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`src="(/-/[A-Za-z0-9_-]{16}/app\.js)"`).FindSubmatch(document)
	if found == nil {
		t.Fatalf("the document names no script below its digest:\n%s", document)
	}
	if strings.Contains(string(document), `="./`) {
		t.Errorf("the document has a relative path:\n%s", document)
	}
	return page, string(found[1])
}

func browser() map[string]string {
	return map[string]string{"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	page, script := newPage(t)
	common := map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
			"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	}
	tests := map[string]struct {
		path string
		own  map[string]string
	}{
		"document": {"/inbox", map[string]string{"Cache-Control": "no-cache", "Content-Type": "text/html; charset=utf-8"}},
		"script": {script, map[string]string{
			"Cache-Control": "public, max-age=31536000, immutable", "Content-Type": "text/javascript; charset=utf-8",
		}},
		"style":    {strings.Replace(script, "app.js", "index.css", 1), map[string]string{"Content-Type": "text/css; charset=utf-8"}},
		"manifest": {strings.Replace(script, "app.js", "manifest.webmanifest", 1), map[string]string{"Content-Type": "application/manifest+json"}},
		"icon":     {strings.Replace(script, "app.js", "icon.svg", 1), map[string]string{"Content-Type": "image/svg+xml"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := maps.Clone(common)
			maps.Copy(want, test.own)
			answer, got := ask(t, page, "GET", test.path, browser()), map[string]string{}
			for name := range want {
				got[name] = answer.Header.Get(name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("headers of %s (-want +got):\n%s", test.path, diff)
			}
		})
	}
}

func TestWants(t *testing.T) {
	t.Parallel()
	page, script := newPage(t)
	tests := map[string]struct {
		method, path, accept string
		want                 bool
	}{
		"a view":                         {"GET", "/actions/1?tab=args", "text/html", true},
		"the first page":                 {"GET", "/", "text/html", true},
		"HEAD of a view":                 {"HEAD", "/inbox", "text/html", true},
		"a file of this build":           {"GET", script, "*/*", true},
		"a file of another build":        {"GET", "/-/0000000000000000/app.js", "text/html", false},
		"POST to a view":                 {"POST", "/inbox", "text/html", false},
		"a program that reads no HTML":   {"GET", "/inbox", "application/json", false},
		"a program that refuses HTML":    {"GET", "/inbox", "text/html;q=0, application/json", false},
		"any type":                       {"GET", "/inbox", "*/*", false},
		"the API":                        {"GET", "/api/v1/nothing", "text/html", false},
		"the API's root":                 {"GET", "/api", "text/html", false},
		"login":                          {"GET", "/auth/nothing", "text/html", false},
		"MCP":                            {"GET", "/mcp", "text/html", false},
		"health":                         {"GET", "/healthz", "text/html", false},
		"readiness":                      {"GET", "/readyz", "text/html", false},
		"metrics":                        {"GET", "/metrics", "text/html", false},
		"a view whose name begins alike": {"GET", "/apiary", "text/html", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ask(t, page, test.method, test.path, map[string]string{"Accept": test.accept}) != nil

			if got != test.want {
				t.Errorf("Wants(%s %s, Accept: %s) = %v, want %v", test.method, test.path, test.accept, got, test.want)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	page, script := newPage(t)
	t.Run("compressed and plain are the same script", func(t *testing.T) {
		t.Parallel()
		plain, err := io.ReadAll(ask(t, page, "GET", script, nil).Body)
		if err != nil {
			t.Fatal(err)
		}
		answer := ask(t, page, "GET", script, map[string]string{"Accept-Encoding": "br, gzip;q=0.5"})
		if got := answer.Header.Get("Content-Encoding"); got != "gzip" {
			t.Fatalf("Content-Encoding = %q, want gzip", got)
		}
		from, err := gzip.NewReader(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.ReadAll(from)
		if err != nil || string(unpacked) != string(plain) || len(plain) == 0 {
			t.Errorf("unpacked %d bytes (%v), want the %d plain ones", len(unpacked), err, len(plain))
		}
		if got := ask(t, page, "GET", script, map[string]string{"Accept-Encoding": "gzip;q=0"}).Header.Get("Content-Encoding"); got != "" {
			t.Errorf("Content-Encoding = %q for a client that refuses gzip", got)
		}
	})
	t.Run("HEAD has the length and no body", func(t *testing.T) {
		t.Parallel()
		answer := ask(t, page, "HEAD", "/inbox", browser())
		body, err := io.ReadAll(answer.Body)
		if err != nil || len(body) != 0 || answer.ContentLength <= 0 {
			t.Errorf("HEAD answers %d bytes (%v), Content-Length %d", len(body), err, answer.ContentLength)
		}
	})
	t.Run("a document that did not change is not sent again", func(t *testing.T) {
		t.Parallel()
		tag := ask(t, page, "GET", "/inbox", browser()).Header.Get("ETag")
		headers := browser()
		headers["If-None-Match"] = tag
		if got := ask(t, page, "GET", "/inbox", headers).StatusCode; got != http.StatusNotModified {
			t.Errorf("status = %d, want 304", got)
		}
	})
}
