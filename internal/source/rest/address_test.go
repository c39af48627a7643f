package rest_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

func TestParseBase(t *testing.T) {
	t.Parallel()
	for address, valid := range map[string]bool{
		"https://a": true, "http://a:8085/x/": true, "https://[::1]/": true,
		"": false, "a/b": false, "//a": false, "ftp://a": false, "https://hush@a": false, "https://a?hush": false, "https://a?": false,
		"https://a#hush": false, "https://": false, "https://a b hush": false,
	} {
		_, err := rest.ParseBase(address)

		if (err == nil) != valid || err != nil && (!errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("ParseBase(%q) = %v, want it to be valid: %t", address, err, valid)
		}
	}
}

func TestURLKeepsSegmentsApart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		base     string
		query    url.Values
		segments []string
		want     string
	}{
		{"https://a", nil, []string{"x", "y"}, "https://a/x/y"},
		{"https://a/b/", nil, []string{"x"}, "https://a/b/x"},
		{"https://a/b", nil, nil, "https://a/b"},
		{"https://a", nil, []string{"x", ""}, "https://a/x/"},
		{"https://a", url.Values{"q": {"1&2"}}, []string{"x"}, "https://a/x?q=1%262"},
		{"https://a", nil, []string{"x/../y", "%2e", "a?b#c"}, "https://a/x%2F..%2Fy/%252e/a%3Fb%23c"},
		{"https://a", nil, []string{"..", "y"}, ""},
		{"https://a", nil, []string{"."}, ""},
		{"https://a", nil, []string{"", "y"}, ""},
	} {
		base, err := rest.ParseBase(test.base)
		if err != nil {
			t.Fatal(err)
		}

		got, ok := base.URL(test.query, test.segments...)

		if got != test.want || ok != (test.want != "") {
			t.Errorf("URL(%q) = %q, %t, want %q", test.segments, got, ok, test.want)
		}
	}
}

func FuzzURL(f *testing.F) {
	f.Add("a", "b")
	f.Add("..", "%2e%2e")
	f.Add("a/../..", "?x#y")
	base, err := rest.ParseBase("https://example.com/api")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		got, ok := base.URL(nil, one, two, "end")
		if !ok {
			return
		}
		u, err := url.Parse(got)
		if err != nil {
			t.Fatalf("URL(%q, %q) = %q: %v", one, two, got, err)
		}
		parts := strings.Split(u.EscapedPath(), "/")
		if u.Host != "example.com" || len(parts) != 5 || parts[1] != "api" || parts[4] != "end" || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("URL(%q, %q) = %q, want two segments between api and end", one, two, got)
		}
	})
}
