package rest_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/server/rest/route"
)

// raw sends a request whose response is not decoded.
func (c *client) raw(at, accept string) answer {
	c.t.Helper()
	r, err := c.request(c.t.Context(), "GET", at, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if accept != "" {
		r.Header.Set("Accept-Encoding", accept)
	}
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, body}
}

func TestLongListsAreCompressed(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("gzip")
	id := f.mail(object{"to": strings.Repeat("ana@example.org ", 20)})
	for range 20 {
		f.mail(object{"to": strings.Repeat("ana@example.org ", 20)})
	}
	plain := f.operator.raw("/api/v1/inbox", "")
	for accept, want := range map[string]bool{
		"gzip": true, "br, gzip;q=0.5": true, "*": true, "GZIP": true,
		"": false, "br": false, "gzip;q=0": false, "gzip;q=0, *": false, "identity": false,
	} {
		a := f.operator.raw("/api/v1/inbox", accept)
		if got := a.header.Get("Content-Encoding") == "gzip"; got != want || a.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: encoding %q, Vary %q, want gzip %t", accept, a.header.Get("Content-Encoding"), a.header.Get("Vary"), want)
			continue
		}
		body := a.body
		if want {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
			if len(a.body) > len(plain.body)/5 {
				t.Errorf("%d bytes of %d are left", len(a.body), len(plain.body))
			}
		}
		if !bytes.Equal(body, plain.body) {
			t.Errorf("Accept-Encoding %q: the content differs", accept)
		}
	}
	again := f.operator.raw("/api/v1/inbox", "gzip")
	if a := f.operator.raw("/api/v1/inbox", "gzip"); len(a.body) != len(again.body) {
		t.Errorf("the same content has %d and %d bytes: whoever asks again and again would learn its length", len(a.body), len(again.body))
	}
	for _, at := range []string{path(id), "/api/v1/inbox?limit=1&view=summary&kind=unknown", "/api/v1/inbox?nonsense=1", "/api/v1/me"} {
		if a := f.operator.raw(at, "gzip"); a.header.Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed", at)
		}
	}
}

// Operations that create or list credentials or people, read mail, change
// something or stream are not compressed, nor are responses with an ETag.
func TestUncompressedOperations(t *testing.T) {
	t.Parallel()
	compressed := 0
	for _, rt := range route.Access() {
		if !route.IsCompressed(rt.Operation) {
			continue
		}
		compressed++
		method, at, _ := strings.Cut(rt.Pattern, " ")
		for _, never := range []string{"/auth/", "/token", "/me", "/login", "/operators", "/identity", "/triage", "/sources", "/subscriptions", "/export", "/events", "/notes"} {
			if method != "GET" || strings.Contains(at, never) {
				t.Errorf("%s is compressed", rt.Pattern)
			}
		}
	}
	if compressed < 10 {
		t.Errorf("%d operations are compressed", compressed)
	}
}
