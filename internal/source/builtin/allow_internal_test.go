package builtin

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

func FuzzCovers(f *testing.F) {
	e, err := newEntry(Allowed{Prefix: "https://api.example.com/v1"})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		"https://api.example.com/v1/x?y=z", "https://API.example.com:443/v1", "https://api.example.com/v1/../admin",
		"https://api.example.com/v1/%2e%2e/admin", "https://api.example.com@evil/v1", `https://api.example.com\@evil/v1`,
		"https://api.example.com/v1%2f..%2fadmin", "//api.example.com/v1", "https://api.example.com/v1/..;/x", "https://api.example.com./v1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := url.Parse(address)
		if err != nil || !plain(u) || !e.covers(u) {
			return
		}
		// Parse it again, like the client that sends the request.
		again, err := url.Parse(u.String())
		if err != nil {
			t.Fatalf("%q is covered and cannot be read again: %v", address, err)
		}
		clean := path.Clean(again.Path)
		if again.Scheme != "https" || !strings.EqualFold(again.Hostname(), "api.example.com") || again.User != nil ||
			again.Port() != "" && again.Port() != "443" || clean != "/v1" && !strings.HasPrefix(clean, "/v1/") {
			t.Errorf("%q is covered, and is %s", address, again)
		}
	})
}
