package identity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBrowsers(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:8080/login#code=x"
	for _, tt := range []struct {
		named string
		want  [][]string
	}{
		{"firefox", [][]string{{"firefox", address}}},
		{"firefox --new-window %s:w3m", [][]string{{"firefox", "--new-window", address}, {"w3m", address}}},
		{"open --url=%s --quiet", [][]string{{"open", "--url=" + address, "--quiet"}}},
		{": firefox :", [][]string{{"firefox", address}}},
	} {
		if diff := cmp.Diff(tt.want, browsers(tt.named, address)); diff != "" {
			t.Errorf("browsers(%q) (-want +got):\n%s", tt.named, diff)
		}
	}
	for _, none := range []string{"", ":", "  "} {
		if got := browsers(none, address); len(got) != 1 || got[0][len(got[0])-1] != address {
			t.Errorf("browsers(%q) = %q, want the system's program", none, got)
		}
	}
}
