package safehttp_test

import (
	"net/url"
	"testing"

	"github.com/countersign-dev/countersign/internal/safehttp"
)

func TestLocal(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.8.9.1": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.example.org": false, "example.org": false, "127.0.0.1.nip.io": false, "0.0.0.0": false, "::": false, "10.0.0.1": false,
		"2130706433": false, "0177.0.0.1": false, "[::1]": false, "127.0.0.1:80": false, "::ffff:10.0.0.1": false,
	} {
		if got := safehttp.Local(host); got != want {
			t.Errorf("Local(%q) = %t, want %t", host, got, want)
		}
	}
}

func TestProtected(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://example.org": true, "http://localhost:8080/x": true, "http://[::1]:8080": true, "http://127.0.0.1": true,
		"http://example.org": false, "http://localhost@example.org": false, "ftp://localhost": false, "localhost": false, "//localhost": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := safehttp.Protected(u); got != want {
			t.Errorf("Protected(%q) = %t, want %t", address, got, want)
		}
	}
}
